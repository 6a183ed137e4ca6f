package ui

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Text from scanners is hostile: its tags are shown as text, and the result goes through a sanitiser that only allows
// text, lists, tables, code and links.
var (
	markdown      = newMarkdown(extension.Table, extension.Strikethrough, extension.Linkify)
	withoutTables = newMarkdown(extension.Strikethrough, extension.Linkify)
	sanitiser     = newSanitiser()
)

const (
	// maxCells bounds the cells of a text's tables. goldmark fills every row up to the width of the header, so 16 kB of
	// text can become gigabytes of cells.
	maxCells = 10_000
	// maxDepth, maxBrackets and maxDelimiters bound the quotes and lists that a line can begin with, and the brackets of
	// links and delimiters of emphasis in a text. goldmark takes up to a second for 16 kB with more of them.
	maxDepth      = 20
	maxBrackets   = 2_000
	maxDelimiters = 4_000
	// maxHTML bounds the HTML of a text in bytes: each use of a link's reference repeats the whole address.
	maxHTML = 256 << 10
	// textsTime is how long the texts of a page may take. goldmark cannot be interrupted, so the page's last text may
	// exceed it.
	textsTime = 500 * time.Millisecond
)

// tooDeep matches a text with a line that begins with more than maxDepth quotes and lists.
var tooDeep = regexp.MustCompile(fmt.Sprintf(`(?m)^(?:[ \t]*(?:>|(?:[-+*]|\d{1,9}[.)])[ \t])){%d}`, maxDepth+1))

// rendering is held while a text is rendered: hostile texts occupy one CPU, however many pages show them.
var rendering = make(chan struct{}, 1)

// webLinks parses <http://...> and <https://...> as links. Others, such as vector<std::string> and <soap:Envelope>,
// would lose their brackets.
type webLinks struct{ parser.InlineParser }

func (w webLinks) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	line, _ := block.PeekLine()
	if !bytes.HasPrefix(line, []byte("<http://")) && !bytes.HasPrefix(line, []byte("<https://")) {
		return nil
	}
	return w.InlineParser.Parse(parent, block, pc)
}

// newMarkdown returns Markdown without HTML. Most texts are not written as Markdown. What looks like a tag in them is
// evidence, a type or a placeholder, and would vanish.
func newMarkdown(extensions ...goldmark.Extender) goldmark.Markdown {
	ofTags := func(p util.PrioritizedValue) bool {
		return p.Value == parser.NewHTMLBlockParser() || p.Value == parser.NewRawHTMLParser() ||
			p.Value == parser.NewAutoLinkParser()
	}
	inline := append(slices.DeleteFunc(parser.DefaultInlineParsers(), ofTags),
		util.Prioritized(webLinks{parser.NewAutoLinkParser()}, 300)) // its default priority
	return goldmark.New(goldmark.WithExtensions(extensions...), goldmark.WithParser(parser.NewParser(
		parser.WithBlockParsers(slices.DeleteFunc(parser.DefaultBlockParsers(), ofTags)...),
		parser.WithInlineParsers(inline...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
	)))
}

func newSanitiser() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "em", "strong", "del", "code", "pre", "blockquote", "ul", "ol", "li",
		"h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td")
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes("http", "https")
	p.RequireParseableURLs(true)
	p.RequireNoReferrerOnLinks(true)
	p.RequireNoFollowOnLinks(true)
	return p
}

// Texts renders the Markdown texts of one page. Once they have taken too long, the others are shown as plain text. The
// zero value is ready for use; it is not safe for concurrent use.
type Texts struct {
	// spent is how long the texts so far have taken, including waiting for those of other pages.
	spent time.Duration
}

// prose returns the HTML of a Markdown text. All its headings get the same level, because the text is only a part of a
// section of the page.
func (t *Texts) prose(written string, heading int) string {
	start := time.Now()
	defer func() { t.spent += time.Since(start) }()
	if t.spent >= textsTime || isSlow(written) {
		return plain(written)
	}
	select {
	case rendering <- struct{}{}:
		defer func() { <-rendering }()
	case <-time.After(textsTime - t.spent):
		return plain(written)
	}
	return rendered(written, heading)
}

// isSlow reports whether the text has more brackets, delimiters or nesting than goldmark renders quickly.
func isSlow(written string) bool {
	count := func(char string) int { return strings.Count(written, char) }
	return count("[")+count("]") > maxBrackets || count("*")+count("_")+count("~") > maxDelimiters || tooDeep.MatchString(written)
}

func rendered(written string, heading int) string {
	source, dialect := []byte(written), dialectOf(written)
	document := dialect.Parser().Parse(text.NewReader(source))
	_ = ast.Walk(document, func(node ast.Node, _ bool) (ast.WalkStatus, error) { // the callback returns no error
		if h, ok := node.(*ast.Heading); ok {
			h.Level = heading
		}
		return ast.WalkContinue, nil
	})
	var out bounded
	if err := dialect.Renderer().Render(&out, source, document); err != nil {
		return plain(written)
	}
	return string(sanitiser.SanitizeBytes(out.html))
}

// dialectOf returns the Markdown with tables, unless those of the text could have too many cells.
func dialectOf(written string) goldmark.Markdown {
	lines, columns := 0, 0
	for line := range strings.Lines(written) {
		lines, columns = lines+1, max(columns, strings.Count(line, "|"))
	}
	if lines*columns > maxCells {
		return withoutTables
	}
	return markdown
}

func plain(written string) string { return "<pre>" + html.EscapeString(written) + "</pre>" }

var errTooLong = errors.New("the text's HTML is too long")

// bounded is a writer that refuses more than maxHTML bytes.
type bounded struct{ html []byte }

func (b *bounded) Write(p []byte) (int, error) {
	if len(b.html)+len(p) > maxHTML {
		return 0, errTooLong
	}
	b.html = append(b.html, p...)
	return len(p), nil
}
