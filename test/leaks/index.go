package leaks

import (
	"bytes"
	"encoding/binary"
	"iter"
)

// index finds many needles in one pass over a text, by their first bytes. A bit table lets most positions of a
// text pass quickly. A run has hundreds of secrets and hundreds of megabytes of text.
type index struct {
	begins [1 << 16]bool
	by     map[[minLength]byte][]string
}

// newIndex returns the index of needles of at least minLength bytes.
func newIndex(needles iter.Seq[string]) *index {
	x := &index{by: map[[minLength]byte][]string{}}
	for needle := range needles {
		begin := [minLength]byte([]byte(needle))
		x.begins[bucket(begin[:])] = true
		x.by[begin] = append(x.by[begin], needle)
	}
	return x
}

// find returns the position of the first occurrence of each needle that is in the text.
func (x *index) find(text []byte) map[string]int {
	found := map[string]int{}
	for at := 0; at+minLength <= len(text); at++ {
		if !x.begins[bucket(text[at:])] {
			continue
		}
		for _, needle := range x.by[[minLength]byte(text[at:at+minLength])] {
			if _, known := found[needle]; !known && bytes.HasPrefix(text[at:], []byte(needle)) {
				found[needle] = at
			}
		}
	}
	return found
}

// bucket hashes eight bytes.
func bucket(text []byte) uint16 {
	const odd = 0x9e3779b97f4a7c15
	return uint16(binary.LittleEndian.Uint64(text) * odd >> 48) //nolint:gosec // 16 bits are left
}
