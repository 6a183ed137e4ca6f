package apiserver

import (
	"bytes"
	"container/list"
	"hash/maphash"
	"sync"

	"github.com/appsec-dev/findings-operator/apiserver/content"
)

// compressedBytes bounds the bodies whose compressed form is kept, by their length as they are:
// the parts of a body that is kept stay in memory even where the model has newer ones.
const compressedBytes = 32 << 20

// compressed are the bodies that were compressed lately, of all organizations: a body is known by
// the very parts that it is made of, which are an organization's own.
var compressed = newCompressedBodies(compressedBytes)

// compressedBodies keeps the compressed form of bodies, and forgets what was asked for longest ago.
// Parts never change, so what is kept is never out of date.
type compressedBodies struct {
	limit int
	seed  maphash.Seed

	mu     sync.Mutex
	bodies map[uint64]*list.Element
	// recent holds compressedBody values, what was asked for last in front.
	recent *list.List
	length int
}

type compressedBody struct {
	hash   uint64
	parts  []content.Part
	length int
	gzip   []byte
}

func newCompressedBodies(limit int) *compressedBodies {
	return &compressedBodies{limit: limit, seed: maphash.MakeSeed(), bodies: map[uint64]*list.Element{}, recent: list.New()}
}

// takes reports whether a body of that length may be kept.
func (b *compressedBodies) takes(length int) bool { return length <= b.limit/8 }

// get returns the compressed form of a body; nil where it is not kept.
func (b *compressedBodies) get(parts []content.Part) []byte {
	hash := b.hash(parts)
	b.mu.Lock()
	defer b.mu.Unlock()
	element := b.bodies[hash]
	if element == nil {
		return nil
	}
	body := element.Value.(*compressedBody)
	if !same(body.parts, parts) {
		return nil
	}
	b.recent.MoveToFront(element)
	return body.gzip
}

// put keeps the compressed form of a body.
func (b *compressedBodies) put(parts []content.Part, length int, gzip []byte) {
	body := &compressedBody{hash: b.hash(parts), parts: parts, length: length, gzip: gzip}
	b.mu.Lock()
	defer b.mu.Unlock()
	if element := b.bodies[body.hash]; element != nil {
		b.forget(element)
	}
	b.bodies[body.hash] = b.recent.PushFront(body)
	b.length += length
	for b.length > b.limit {
		b.forget(b.recent.Back())
	}
}

func (b *compressedBodies) forget(element *list.Element) {
	body := b.recent.Remove(element).(*compressedBody)
	delete(b.bodies, body.hash)
	b.length -= body.length
}

// hash is the same for bodies that are the same; it leaves the last of several parts out, which a
// list makes anew for each answer.
func (b *compressedBodies) hash(parts []content.Part) uint64 {
	var hash maphash.Hash
	hash.SetSeed(b.seed)
	for _, part := range parts[:max(1, len(parts)-1)] {
		maphash.WriteComparable(&hash, part)
	}
	return hash.Sum64()
}

// same reports whether two bodies are made of the same parts, or of parts that hold the same.
func same(a, b []content.Part) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] && !sameBytes(a[i], b[i]) {
			return false
		}
	}
	return true
}

func sameBytes(a, b content.Part) bool {
	x, ok := a.(*content.Bytes)
	y, too := b.(*content.Bytes)
	return ok && too && bytes.Equal(*x, *y)
}
