package findings

import (
	"bytes"
	"html"

	"github.com/alecthomas/chroma/v2"
	formatter "github.com/alecthomas/chroma/v2/formatters/html"
	"github.com/alecthomas/chroma/v2/lexers"
	chromastyles "github.com/alecthomas/chroma/v2/styles"
	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
)

// What scanners write is hostile: Markdown goes through a sanitiser that knows nothing but text, lists, code and links,
// and raw HTML in it is dropped before.
var (
	markdown  = goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.Linkify))
	sanitiser = newSanitiser()
)

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

// prose is the HTML of a text in Markdown.
func prose(text string) string {
	var out bytes.Buffer
	if err := markdown.Convert([]byte(text), &out); err != nil {
		return html.EscapeString(text)
	}
	return string(sanitiser.SanitizeBytes(out.Bytes()))
}

// maxHighlighted bounds the code that is coloured: beyond it colours cost more than they help.
const maxHighlighted = 64 << 10

// highlighted is the HTML of code, with the numbers of its lines and colours by classes.
func highlighted(path, code string, line int32) string {
	lexer := lexers.Match(path)
	if lexer == nil || len(code) > maxHighlighted {
		lexer = lexers.Fallback
	}
	tokens, err := chroma.Coalesce(lexer).Tokenise(nil, code)
	if err != nil {
		return "<pre>" + html.EscapeString(code) + "</pre>"
	}
	var out bytes.Buffer
	format := formatter.New(formatter.WithClasses(true), formatter.WithLineNumbers(true), formatter.BaseLineNumber(max(int(line), 1)))
	if err := format.Format(&out, chromastyles.Fallback, tokens); err != nil {
		return "<pre>" + html.EscapeString(code) + "</pre>"
	}
	return out.String()
}
