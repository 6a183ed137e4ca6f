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

// Reader reads a JSON response once, and skips what the caller does not read: most of a page of findings is text that a
// list does not show, and decoding it took most of the list's time. It only checks as much syntax as it needs, because
// the service itself wrote the response. Input that it cannot read is an error, and never a panic.
//
// A null value reads like a missing one.
type Reader struct {
	text []byte
	at   int
	err  error
}

// Taker is a value that reads only what it needs from a response.
type Taker interface{ TakeFrom(*Reader) }

// take makes the value read what it needs from the whole text.
func take(text []byte, into Taker) error {
	r := &Reader{text: text}
	r.space()
	into.TakeFrom(r)
	if r.space(); r.err == nil && r.at < len(r.text) {
		r.expected("the end")
	}
	return r.err
}

// Members yields the names of an object's members. The loop body reads the value, or ignores it. The loop must not end
// early.
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

// Items yields once per item of an array. The loop body reads the item, or ignores it. The loop must not end early.
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

// Text reads a string.
func (r *Reader) Text() string {
	if r.null() {
		return ""
	}
	if text, ok := r.short(); ok {
		return string(text)
	}
	return r.unquoted(r.quoted())
}

// shortBytes is the length up to which one look at each byte is faster than the searches of quoted and unquoted.
const shortBytes = 48

// short reads a string that is short, of ASCII and without escapes, as most are; otherwise it reads nothing.
func (r *Reader) short() (text []byte, ok bool) {
	if r.peek() != '"' {
		return nil, false
	}
	rest := r.text[r.at+1:]
	for i, c := range rest[:min(len(rest), shortBytes)] {
		switch {
		case c == '"':
			r.at += i + 2
			return rest[:i], true
		case c == '\\', c < ' ', c >= utf8.RuneSelf:
			return nil, false
		}
	}
	return nil, false
}

// Optional reads a string that may be null.
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

// Int reads an integer.
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

// Float reads a number.
func (r *Reader) Float() float32 {
	if r.null() {
		return 0
	}
	n, err := strconv.ParseFloat(string(r.literal()), 32)
	if err != nil {
		r.fail(err)
	}
	return float32(n)
}

// Bool reads a boolean.
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

// fail records the first error and stops reading.
func (r *Reader) fail(err error) {
	if r.err == nil {
		r.err = fmt.Errorf("at byte %d: %w", r.at, err)
	}
	r.at = len(r.text)
}

func (r *Reader) expected(what string) { r.fail(errors.New("expected " + what)) }

// peek returns the next byte, or 0 at the end.
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

// null skips a null, and reports whether there was one.
func (r *Reader) null() bool {
	if r.peek() != 'n' {
		return false
	}
	return string(r.literal()) == "null"
}

// enter begins an object or an array, and reports whether it has any content.
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

// next advances in an object or an array, and reports whether there is more content.
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

// name reads the name of a member, and advances to its value.
func (r *Reader) name() []byte {
	name, ok := r.short()
	if !ok {
		name = []byte(r.unquoted(r.quoted()))
	}
	if r.space(); r.peek() != ':' {
		r.expected("a colon")
		return nil
	}
	r.at++
	r.space()
	return name
}

// quoted skips a string, and returns it unchanged, with its quotes.
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

// escaped reports whether the text escapes the character after it.
func escaped(text []byte) bool {
	end := len(text)
	for end > 0 && text[end-1] == '\\' {
		end--
	}
	return (len(text)-end)%2 == 1
}

// isPlain reports whether a quoted string has no escapes.
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

// literal skips a number, a boolean or a null, and returns it.
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

// skip skips a value.
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

// skipNested skips the object or array that begins at the current position.
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
