package findings

import (
	"bytes"
	"html"
	"time"

	"github.com/alecthomas/chroma/v2"
	formatter "github.com/alecthomas/chroma/v2/formatters/html"
	"github.com/alecthomas/chroma/v2/lexers"
	chromastyles "github.com/alecthomas/chroma/v2/styles"

	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
)

// The content of code determines how long a lexer's regular expressions take, and anybody may have written it. So only
// one text at a time is highlighted in the whole process, for at most this long. Others are shown without colours.
const colouringTime = 100 * time.Millisecond

var colouring = make(chan struct{}, 1)

// highlighted returns the HTML of code, with classes for colours. It has no line numbers: a scanner may quote lines
// before the finding's own, and nothing tells how many.
func highlighted(path, code string) string {
	code = ui.Visible(code)
	tokens := coloured(lexers.Match(path), code)
	if tokens == nil {
		tokens = []chroma.Token{{Type: chroma.Text, Value: code}}
	}
	var out bytes.Buffer
	format := formatter.New(formatter.WithClasses(true), formatter.WithPreWrapper(frame{}))
	if err := format.Format(&out, chromastyles.Fallback, chroma.Literator(tokens...)); err != nil {
		return "<pre>" + html.EscapeString(code) + "</pre>"
	}
	return out.String()
}

// coloured returns the tokens of the code, or nil if lexing takes too long.
func coloured(lexer chroma.Lexer, code string) (tokens []chroma.Token) {
	if lexer == nil {
		return nil
	}
	select {
	case colouring <- struct{}{}:
		defer func() { <-colouring }()
	default:
		return nil
	}
	next, err := lexer.Tokenise(nil, code)
	if err != nil {
		return nil
	}
	end := time.Now().Add(colouringTime)
	for token := next(); token != chroma.EOF; token = next() {
		if time.Now().After(end) {
			return nil
		}
		if last := len(tokens) - 1; last >= 0 && tokens[last].Type == token.Type {
			tokens[last].Value += token.Value
			continue
		}
		tokens = append(tokens, token)
	}
	return tokens
}

// frame is the element around code. It scrolls if there is no room, so it must be focusable by keyboard.
type frame struct{}

func (frame) Start(_ bool, attributes string) string {
	return `<pre tabindex="0"` + attributes + `><code>`
}

func (frame) End(bool) string { return `</code></pre>` }
