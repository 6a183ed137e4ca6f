// Package content defines the parts of an answer's body.
package content

// Part is a piece of an answer's body that is ready to be sent. It never changes, and is the
// same piece as another only if both are the same pointer.
type Part interface {
	// Len is how many bytes AppendTo appends.
	Len() int
	// AppendTo appends the piece.
	AppendTo(to []byte) []byte
}

// Bytes are a piece whose bytes are already rendered.
type Bytes []byte

var _ Part = (*Bytes)(nil)

// Of returns the piece that these bytes are. They must not be changed afterwards.
func Of(bytes []byte) *Bytes { return (*Bytes)(&bytes) }

// Len implements Part.
func (b *Bytes) Len() int { return len(*b) }

// AppendTo implements Part.
func (b *Bytes) AppendTo(to []byte) []byte { return append(to, *b...) }
