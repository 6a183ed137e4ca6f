package openapi

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/strictjson"
	"github.com/appsec-dev/findings-operator/internal/truncate"
)

// streamedExtension marks the member of a JSON body that is read as it arrives: a base64 string.
const streamedExtension = "x-streamed"

// maxEnvelopeBytes is how long the body may be without the streamed member.
const maxEnvelopeBytes = 64 << 10

// streamedMember returns the name of the member that is read as it arrives; empty if there is none.
func streamedMember(ref *openapi3.SchemaRef) string {
	for name, property := range ref.Value.Properties {
		if streamed, _ := property.Value.Extensions[streamedExtension].(bool); streamed {
			return name
		}
	}
	return ""
}

// Envelope is a JSON body with a base64 member that is never held in memory. Reading it returns the decoded
// value of that member. Its errors are InvalidErrors, or those of the connection.
type Envelope struct {
	schema *bodySchema
	budget *budgeted
	// rest is the unread rest of the body.
	rest    *bufio.Reader
	value   io.Reader
	text    *jsonString
	values  map[string]any
	given   map[string]bool
	ended   bool
	failure error
}

// OpenEnvelope returns an Envelope for the body of an operation with a streamed member.
func (o *Operation) OpenEnvelope(body io.Reader) *Envelope {
	budget := &budgeted{reader: body, left: maxEnvelopeBytes}
	return &Envelope{
		schema: o.body, budget: budget, rest: bufio.NewReaderSize(budget, 4096),
		values: map[string]any{}, given: map[string]bool{},
	}
}

// Body returns the other members. They are complete once Read has returned io.EOF.
func (e *Envelope) Body() (Body, error) {
	switch {
	case e.failure != nil:
		return Body{}, e.failure
	case !e.ended:
		return Body{}, errors.New("the body has not been read to its end")
	}
	return Body{members: e.values}, nil
}

// Read reads the decoded value of the streamed member.
func (e *Envelope) Read(p []byte) (n int, err error) {
	switch {
	case e.failure != nil:
		return 0, e.failure
	case e.ended:
		return 0, io.EOF
	case e.value == nil:
		if err := e.begin(); err != nil {
			return 0, e.fail(err)
		}
	}
	n, err = e.value.Read(p)
	switch {
	case e.text.err != nil:
		return n, e.fail(e.text.err)
	case errors.Is(err, io.EOF):
		if err := e.end(); err != nil {
			return n, e.fail(err)
		}
		return n, io.EOF
	case err != nil:
		return n, e.fail(invalid(e.schema.streamed, problem.CodeMalformed, "%s is not base64, or is cut off",
			e.schema.streamed))
	}
	return n, nil
}

func (e *Envelope) fail(err error) error {
	var known *InvalidError
	switch {
	case e.budget.err != nil:
		err = e.budget.err
	case !errors.As(err, &known):
		err = invalid("", problem.CodeMalformed, "the body is not exactly one JSON object")
	}
	e.failure = err
	return err
}

// begin reads the members before the streamed one.
func (e *Envelope) begin() error {
	streamed, err := e.members()
	if err != nil {
		return err
	}
	if !streamed {
		return e.incomplete()
	}
	e.budget.pause(true)
	e.text = &jsonString{reader: e.rest}
	e.value = base64.NewDecoder(base64.StdEncoding, e.text)
	return nil
}

// end reads the members after the streamed one.
func (e *Envelope) end() error {
	if !e.text.closed {
		return io.ErrUnexpectedEOF
	}
	e.budget.pause(false)
	next, err := nextByte(e.rest)
	if err != nil {
		return err
	}
	switch next {
	case '}':
		if _, err := nextByte(e.rest); !errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
	case ',':
		if first, err := nextByte(e.rest); err != nil || first != '"' {
			return errors.Join(err, io.ErrUnexpectedEOF)
		}
		// The rest is an object without its beginning.
		e.rest = bufio.NewReader(io.MultiReader(strings.NewReader(`{"`), e.rest))
		if _, err := e.members(); err != nil {
			return err
		}
	default:
		return io.ErrUnexpectedEOF
	}
	e.ended = true
	return e.incomplete()
}

func (e *Envelope) incomplete() error {
	for _, name := range e.schema.required {
		if !e.given[name] {
			return invalid(name, problem.CodeMissing, "%s is required", name)
		}
	}
	return nil
}

// members reads an object up to its end, or up to and including the opening quote of the streamed member's
// value.
func (e *Envelope) members() (streamed bool, err error) {
	decoder := json.NewDecoder(e.rest)
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return false, errors.Join(err, io.ErrUnexpectedEOF)
	}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return false, err
		}
		name, _ := token.(string)
		if e.given[name] {
			return false, invalid(known(e.schema, name), problem.CodeRepeated, "a member is given twice: %s",
				quote(name))
		}
		e.given[name] = true
		if name == e.schema.streamed {
			e.rest = bufio.NewReader(io.MultiReader(decoder.Buffered(), e.rest))
			return true, e.openString(name)
		}
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return false, err
		}
		if err := e.take(name, raw); err != nil {
			return false, err
		}
	}
	if _, err := decoder.Token(); err != nil {
		return false, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return false, io.ErrUnexpectedEOF
	}
	return false, nil
}

// known returns the name if the contract describes it, else "".
func known(schema *bodySchema, name string) string {
	if _, described := schema.members[name]; described || name == schema.streamed {
		return name
	}
	return ""
}

// quote quotes the beginning of a client's text for an error.
func quote(text string) string { return strconv.Quote(truncate.To(text, 64)) }

// openString reads the colon and the quote before a string.
func (e *Envelope) openString(name string) error {
	for _, want := range []byte{':', '"'} {
		next, err := nextByte(e.rest)
		if err != nil {
			return err
		}
		if next != want {
			return invalid(name, problem.CodeInvalid, "%s must be a string", name)
		}
	}
	return nil
}

// take reads a member that the contract describes. As with GitHub, null counts as not given. So does an empty text,
// which an unset variable in a script becomes, unless the member is required: then it is refused as empty.
func (e *Envelope) take(name string, raw json.RawMessage) error {
	schema, described := e.schema.members[name]
	if !described {
		return nil
	}
	if string(raw) == "null" {
		delete(e.given, name)
		return nil
	}
	// Wrapped in an object, so that the same JSON is refused here as in other bodies.
	if _, err := strictjson.Object(slices.Concat([]byte(`{"":`), raw, []byte("}"))); err != nil {
		return invalid(name, problem.CodeMalformed, "%s: %v", name, err)
	}
	if string(raw) == `""` && schema.kind != booleanValue {
		if slices.Contains(e.schema.required, name) {
			return invalid(name, problem.CodeMissing, "%s is empty: give a value", name)
		}
		return nil
	}
	value, err := schema.value(name, raw)
	if err != nil {
		return err
	}
	e.values[name] = value
	return nil
}

// nextByte skips white space.
func nextByte(r *bufio.Reader) (byte, error) {
	for {
		b, err := r.ReadByte()
		if err != nil || !strings.ContainsRune(" \t\r\n", rune(b)) {
			return b, err
		}
	}
}

// jsonString reads the characters of a JSON string of base64 up to its closing quote.
type jsonString struct {
	reader *bufio.Reader
	closed bool
	err    error
}

func (s *jsonString) Read(p []byte) (n int, err error) {
	for n < len(p) && !s.closed && s.err == nil {
		b, err := s.reader.ReadByte()
		switch {
		case err != nil:
			s.err = errors.Join(io.ErrUnexpectedEOF, err)
		case b == '"':
			s.closed = true
		case b == '\\':
			p[n] = s.escaped()
			n++
		case b < ' ':
			s.err = io.ErrUnexpectedEOF
		default:
			p[n] = b
			n++
		}
	}
	switch {
	case s.err != nil:
		return n, s.err
	case s.closed && n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// escaped reads the character of an escape sequence, as far as it occurs in base64: some encoders escape the
// slash and the plus sign.
func (s *jsonString) escaped() byte {
	b, err := s.reader.ReadByte()
	if err != nil {
		s.err = errors.Join(io.ErrUnexpectedEOF, err)
		return 0
	}
	switch b {
	case '/':
		return '/'
	case 'n', 'r':
		return '\n' // which the base64 decoder skips
	case 'u':
		var digits [4]byte
		if _, err := io.ReadFull(s.reader, digits[:]); err != nil {
			s.err = errors.Join(io.ErrUnexpectedEOF, err)
			return 0
		}
		if value, err := strconv.ParseUint(string(digits[:]), 16, 16); err == nil && value < 0x80 {
			return byte(value)
		}
	}
	return '\\' // which is invalid in base64
}

// budgeted bounds how much of a body is read, except while it is paused, and keeps the error of its source.
type budgeted struct {
	reader io.Reader
	left   int64
	paused bool
	err    error
}

// pause suspends or resumes counting.
func (b *budgeted) pause(paused bool) { b.paused = paused }

func (b *budgeted) Read(p []byte) (int, error) {
	if !b.paused && b.left <= 0 {
		b.err = invalid("", problem.CodeTooLong, "all members but the file must together be at most %d bytes",
			maxEnvelopeBytes)
		return 0, b.err
	}
	if !b.paused {
		p = p[:min(int64(len(p)), b.left)]
	}
	n, err := b.reader.Read(p)
	if !b.paused {
		b.left -= int64(n)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}
