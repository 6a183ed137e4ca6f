package render

import (
	"bytes"
	"strconv"
	"unique"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
)

// writer writes the JSON of a finding's shapes member by member. For data of other objects, and for texts written
// before, it leaves a hole, where one part ends and the next begins.
type writer struct {
	buffer *bytes.Buffer
	// first is set if the next member or item is the first of its object or array.
	first bool
	// texts are the places of the texts that both shapes show.
	texts  [textCount]span
	common common
	// holes in order, and where the part before each hole ends in the buffer.
	holes []filling
	ends  []uint32
}

// common holds the JSON of what many findings share.
type common [ownCount - textCount]unique.Handle[string]

func (c *common) of(which filling) string { return c[which-textCount].Value() }

// span is a range of the buffer. No text is empty as JSON, so the zero value means no text.
type span struct{ start, end uint32 }

// write writes an object.
func (w *writer) write(members func()) {
	w.buffer.WriteByte('{')
	w.first = true
	members()
	w.buffer.WriteByte('}')
	w.first = false
}

// separate writes a comma unless the next member is the first.
func (w *writer) separate() {
	if !w.first {
		w.buffer.WriteByte(',')
	}
	w.first = false
}

// name begins a member. Names need no escaping.
func (w *writer) name(name string) {
	w.separate()
	w.buffer.WriteByte('"')
	w.buffer.WriteString(name)
	w.buffer.WriteString(`":`)
}

func (w *writer) text(name, value string) {
	w.name(name)
	appendText(w.buffer, value)
}

// enum writes an enumerated value, null if it is not known.
func (w *writer) enum(name, value string) {
	if value == "" {
		w.null(name)
		return
	}
	w.text(name, value)
}

func (w *writer) time(name string, value *v1alpha1.Time) {
	if value.IsZero() {
		w.null(name)
		return
	}
	w.text(name, Timestamp(value.Time))
}

func (w *writer) number(name string, value int32) {
	w.name(name)
	w.buffer.WriteString(strconv.Itoa(int(value)))
}

// score writes a score with one digit after the point, null if it is not known.
func (w *writer) score(name, value string) {
	tenths, ok := findingquery.Tenths(value)
	if !ok {
		w.null(name)
		return
	}
	w.name(name)
	w.buffer.WriteString(strconv.FormatFloat(float64(tenths)/10, 'f', -1, 64))
}

func (w *writer) null(name string) {
	w.name(name)
	w.buffer.WriteString("null")
}

func (w *writer) object(name string, members func()) {
	w.name(name)
	w.write(members)
}

// objects writes a member that is an array of objects.
func objects[T any](w *writer, name string, items []T, members func(T)) {
	w.name(name)
	w.buffer.WriteByte('[')
	w.first = true
	for _, item := range items {
		w.separate()
		w.write(func() { members(item) })
	}
	w.buffer.WriteByte(']')
	w.first = false
}

// shared writes a text that both shapes show: the first shape holds it, the second has a hole.
func (w *writer) shared(name string, which filling, value string) {
	w.name(name)
	if w.texts[which] != (span{}) {
		w.cut(which)
		return
	}
	start := end(w.buffer)
	appendText(w.buffer, value)
	w.texts[which] = span{start, end(w.buffer)}
}

// sharedByMany writes a member whose value many findings share: it is stored once, and both shapes have a hole.
func (w *writer) sharedByMany(name string, which filling, value func()) {
	w.name(name)
	start := w.buffer.Len()
	value()
	w.common[which-textCount] = unique.Make(string(w.buffer.Bytes()[start:]))
	w.buffer.Truncate(start)
	w.cut(which)
}

// hole writes a member whose value is inserted when the shape is sent.
func (w *writer) hole(name string, of filling) {
	w.name(name)
	w.cut(of)
}

// members writes several members that are inserted together when the shape is sent.
func (w *writer) members(of filling) {
	w.separate()
	w.cut(of)
}

func (w *writer) cut(of filling) {
	w.holes = append(w.holes, of)
	w.ends = append(w.ends, end(w.buffer))
}

// appendText writes a text as JSON. Most texts need no escaping, and an encoder takes ten times as long for those.
func appendText(buffer *bytes.Buffer, text string) {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= 0x80 || c == '"' || c == '\\' {
			buffer.Write(mustEncode(text))
			return
		}
	}
	buffer.WriteByte('"')
	buffer.WriteString(text)
	buffer.WriteByte('"')
}

func end(buffer *bytes.Buffer) uint32 { return uint32(buffer.Len()) } //nolint:gosec // an object is far below 4 GiB
