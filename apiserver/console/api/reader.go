package api

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Reader goes through an answer once, and steps over what nobody asks for: most of a page of findings is text that a
// list does not show, and reading it was the larger part of what the list took. It checks no more than it needs to find
// its way, because the service itself wrote the answer. What it cannot read is an error, and never a panic.
//
// A value that is null reads as if it were not there.
type Reader struct {
	text []byte
	at   int
	err  error
}

// Taker is a value that takes what it needs from an answer, in place of all of it.
type Taker interface{ TakeFrom(*Reader) }

// take has the value take what it needs from the whole text.
func take(text []byte, into Taker) error {
	r := &Reader{text: text}
	r.space()
	into.TakeFrom(r)
	if r.space(); r.err == nil && r.at < len(r.text) {
		r.expected("the end")
	}
	return r.err
}

// Members yields the names of an object's members. The loop reads the value of each, or leaves it. It must not be left
// before its end.
func (r *Reader) Members() iter.Seq[[]byte] {
	return func(yield func(name []byte) bool) {
		for more := r.enter('{', '}'); more; more = r.next('}') {
			name := r.name()
			value := r.at
			if r.err != nil || !yield(name) {
				return
			}
			if r.at == value {
				r.skip()
			}
		}
	}
}

// Items yields for each item of an array. The loop reads it, or leaves it. It must not be left before its end.
func (r *Reader) Items() iter.Seq[struct{}] {
	return func(yield func(struct{}) bool) {
		for more := r.enter('[', ']'); more; more = r.next(']') {
			value := r.at
			if !yield(struct{}{}) {
				return
			}
			if r.at == value {
				r.skip()
			}
		}
	}
}

// Text reads a text.
func (r *Reader) Text() string {
	if r.null() {
		return ""
	}
	return r.unquoted(r.quoted())
}

// Optional reads a text that may be null.
func (r *Reader) Optional() *string {
	if r.null() {
		return nil
	}
	text := r.Text()
	return &text
}

// Moment reads a time that may be null.
func (r *Reader) Moment() *time.Time {
	if r.null() {
		return nil
	}
	var at time.Time
	if err := at.UnmarshalText([]byte(r.Text())); err != nil {
		r.fail(err)
	}
	return &at
}

// Int reads a number without a fraction.
func (r *Reader) Int() int {
	if r.null() {
		return 0
	}
	n, err := strconv.Atoi(string(r.literal()))
	if err != nil {
		r.fail(err)
	}
	return n
}

// Bool reads a truth value.
func (r *Reader) Bool() bool {
	switch literal := r.literal(); string(literal) {
	case "true":
		return true
	case "false", "null":
	default:
		r.fail(fmt.Errorf("%q is no truth value", literal))
	}
	return false
}

// fail ends the reading.
func (r *Reader) fail(err error) {
	if r.err == nil {
		r.err = fmt.Errorf("at byte %d: %w", r.at, err)
	}
	r.at = len(r.text)
}

func (r *Reader) expected(what string) { r.fail(errors.New("expected " + what)) }

// peek is the next byte, 0 at the end.
func (r *Reader) peek() byte {
	if r.at < len(r.text) {
		return r.text[r.at]
	}
	return 0
}

func (r *Reader) space() {
	for r.at < len(r.text) && isSpace(r.text[r.at]) {
		r.at++
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// null steps over a null.
func (r *Reader) null() bool {
	if r.peek() != 'n' {
		return false
	}
	return string(r.literal()) == "null"
}

// enter begins an object or an array, and reports whether there is anything in it.
func (r *Reader) enter(opening, closing byte) bool {
	if r.null() {
		return false
	}
	if r.peek() != opening {
		r.expected(string(opening))
		return false
	}
	r.at++
	if r.space(); r.peek() == closing {
		r.at++
		return false
	}
	return true
}

// next goes on in an object or an array, and reports whether there is more in it.
func (r *Reader) next(closing byte) bool {
	r.space()
	switch r.peek() {
	case ',':
		r.at++
		r.space()
		return true
	case closing:
		r.at++
	default:
		r.expected("a comma or " + string(closing))
	}
	return false
}

// name steps over the name of a member, and to its value.
func (r *Reader) name() []byte {
	name := r.quoted()
	switch {
	case isPlain(name):
		name = name[1 : len(name)-1]
	case r.err == nil:
		name = []byte(r.unquoted(name))
	}
	if r.space(); r.peek() != ':' {
		r.expected("a colon")
		return nil
	}
	r.at++
	r.space()
	return name
}

// quoted steps over a text, and returns it as it is, with its quotes.
func (r *Reader) quoted() []byte {
	if r.peek() != '"' {
		r.expected("a text")
		return nil
	}
	start := r.at
	for end := start + 1; ; end++ {
		quote := bytes.IndexByte(r.text[end:], '"')
		if quote < 0 {
			r.expected("the end of a text")
			return nil
		}
		if end += quote; !escaped(r.text[start:end]) {
			r.at = end + 1
			return r.text[start:r.at]
		}
	}
}

// escaped reports whether what comes after the text is escaped by it.
func escaped(text []byte) bool {
	end := len(text)
	for end > 0 && text[end-1] == '\\' {
		end--
	}
	return (len(text)-end)%2 == 1
}

// isPlain reports whether a quoted text has no escapes.
func isPlain(quoted []byte) bool { return len(quoted) > 1 && bytes.IndexByte(quoted, '\\') < 0 }

func (r *Reader) unquoted(quoted []byte) string {
	if isPlain(quoted) && utf8.Valid(quoted) {
		return string(quoted[1 : len(quoted)-1])
	}
	text, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil {
		r.fail(err)
	}
	return string(text)
}

// literal steps over a number, a truth value or a null.
func (r *Reader) literal() []byte {
	start := r.at
	for r.at < len(r.text) && isLiteral(r.text[r.at]) {
		r.at++
	}
	if r.at == start {
		r.expected("a value")
	}
	return r.text[start:r.at]
}

func isLiteral(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'E'
}

// skip steps over a value.
func (r *Reader) skip() {
	switch r.peek() {
	case '"':
		r.quoted()
	case '{', '[':
		r.skipNested()
	default:
		r.literal()
	}
}

// skipNested steps over an object or an array, at whose beginning it is.
func (r *Reader) skipNested() {
	for depth := 0; r.at < len(r.text); {
		switch r.text[r.at] {
		case '"':
			r.quoted()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		r.at++
		if depth == 0 {
			return
		}
	}
	r.expected("the end of an object or an array")
}
