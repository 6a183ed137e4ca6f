package findings

import (
	"bytes"
	"html"

	"github.com/alecthomas/chroma/v2"
	formatter "github.com/alecthomas/chroma/v2/formatters/html"
	"github.com/alecthomas/chroma/v2/lexers"
	chromastyles "github.com/alecthomas/chroma/v2/styles"
)

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
	format := formatter.New(formatter.WithClasses(true), formatter.WithLineNumbers(true),
		formatter.BaseLineNumber(max(int(line), 1)), formatter.WithPreWrapper(frame{}))
	if err := format.Format(&out, chromastyles.Fallback, tokens); err != nil {
		return "<pre>" + html.EscapeString(code) + "</pre>"
	}
	return out.String()
}

// frame is the element around code. It scrolls where there is no room, and so can be reached by keyboard.
type frame struct{}

func (frame) Start(_ bool, attributes string) string {
	return `<pre tabindex="0"` + attributes + `><code>`
}

func (frame) End(bool) string { return `</code></pre>` }
