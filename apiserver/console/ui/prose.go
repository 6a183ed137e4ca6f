package ui

import (
	"bytes"
	"html"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// Text from scanners is hostile: raw HTML in Markdown is dropped, and the result goes through a sanitiser that only
// allows text, lists, tables, code and links.
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

// prose returns the HTML of a Markdown text. All its headings get the same level, because the text is only a part of a
// section of the page.
func prose(written string, heading int) string {
	source := []byte(written)
	document := markdown.Parser().Parse(text.NewReader(source))
	_ = ast.Walk(document, func(node ast.Node, _ bool) (ast.WalkStatus, error) { // the callback returns no error
		if h, ok := node.(*ast.Heading); ok {
			h.Level = heading
		}
		return ast.WalkContinue, nil
	})
	var out bytes.Buffer
	if err := markdown.Renderer().Render(&out, source, document); err != nil {
		return html.EscapeString(written)
	}
	return string(sanitiser.SanitizeBytes(out.Bytes()))
}
