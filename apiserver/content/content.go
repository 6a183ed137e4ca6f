// Package content defines the parts of a response body.
package content

// Part is a piece of a response body that is ready to be sent. It never changes. Two parts are the same only if
// their pointers are equal.
type Part interface {
	// Len returns how many bytes AppendTo appends.
	Len() int
	// AppendTo appends the piece.
	AppendTo(to []byte) []byte
}

// Bytes is a piece that is already rendered.
type Bytes []byte

var _ Part = (*Bytes)(nil)

// Of returns a piece with these bytes. They must not be changed afterwards.
func Of(bytes []byte) *Bytes { return (*Bytes)(&bytes) }

// Len implements Part.
func (b *Bytes) Len() int { return len(*b) }

// AppendTo implements Part.
func (b *Bytes) AppendTo(to []byte) []byte { return append(to, *b...) }
