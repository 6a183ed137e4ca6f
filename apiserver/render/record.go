package render

import (
	"bytes"
	"fmt"

	"github.com/appsec-dev/findings-operator/apiserver/content"
)

// Shape is one of the shapes of a Record.
type Shape int

// The shapes of a Record.
const (
	// Documented is the shape that the contract documents.
	Documented Shape = iota
	// Full has additional members after the documented ones.
	Full
)

// Record is the JSON of a resource that is shown in two shapes. It never changes.
type Record struct {
	full content.Bytes
	// documented is the length of the documented shape in it, without the closing brace.
	documented int
}

// newRecord renders the documented members of a resource, and then the additional ones of the full shape. The kind and
// the name identify the resource in an error.
func newRecord(kind, name string, documented any, more func(*writer)) (Record, error) {
	buffer := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buffer)
	buffer.Reset()
	if err := encodeTo(buffer, documented); err != nil {
		return Record{}, fmt.Errorf("encode %s %s: %w", kind, name, err)
	}
	buffer.Truncate(buffer.Len() - len("}"))
	length := buffer.Len()
	more(&writer{buffer: buffer})
	buffer.WriteByte('}')
	return Record{bytes.Clone(buffer.Bytes()), length}, nil
}

// JSON returns the record in the full shape. It must not be changed.
func (r *Record) JSON() []byte { return r.full }

// In returns the record in a shape.
func (r *Record) In(shape Shape) content.Part {
	if shape == Full {
		return &r.full
	}
	return (*documentedRecord)(r)
}

type documentedRecord Record

// Len implements content.Part.
func (r *documentedRecord) Len() int { return r.documented + len("}") }

// AppendTo implements content.Part.
func (r *documentedRecord) AppendTo(to []byte) []byte {
	return append(append(to, r.full[:r.documented]...), '}')
}
