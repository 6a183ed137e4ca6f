package apiserver

import (
	"bytes"
	"hash/maphash"
	"sync"

	"github.com/golang/groupcache/lru"

	"github.com/appsec-dev/findings-operator/apiserver/content"
)

// readyBytes bounds the bodies that are kept ready, by the length of their parts; in one piece and
// compressed they take at most about as much again.
const readyBytes = 32 << 20

// ready are the bodies that were asked for more than once lately, of all organizations: pages that
// everybody looks at. A body is known by the very parts that it is made of, which are one
// organization's own, and never change: what is kept is never out of date, and nobody else's.
var ready = newReadyBodies(readyBytes)

// form is the form in which a body is kept.
type form int

const (
	plain form = iota
	compressed
	forms
)

// readyBodies keeps bodies in one piece, and forgets what was asked for longest ago. A body is
// noted when it is asked for, and kept from the second time on, so that a walk through a list
// neither fills the memory nor takes the time.
type readyBodies struct {
	limit int
	seed  maphash.Seed

	mu sync.Mutex
	// noted has a *readyBody for the hash of its parts. It is bounded by length, below.
	noted *lru.Cache
	// length of all that is noted, in bytes.
	length int
}

type readyBody struct {
	parts  []content.Part
	length int
	forms  [forms][]byte
	asked  [forms]bool
}

func newReadyBodies(limit int) *readyBodies {
	b := &readyBodies{limit: limit, seed: maphash.MakeSeed(), noted: lru.New(0)}
	b.noted.OnEvicted = func(_ lru.Key, gone any) { b.length -= gone.(*readyBody).length }
	return b
}

// get returns a body of that length in a form that is kept, or make's result where it is time to
// keep it. nil: it is neither. The parts of what is noted stay in memory, so their length counts.
func (b *readyBodies) get(parts []content.Part, length int, of form, make func() []byte) []byte {
	if length > b.limit/8 || len(parts) < 2 {
		return nil
	}
	hash := b.hash(parts)
	kept, again := b.note(hash, parts, length, of)
	if kept != nil || !again {
		return kept
	}
	made := make()
	b.keep(hash, parts, of, made)
	return made
}

// note returns the body if it is kept, and whether it was asked for before.
func (b *readyBodies) note(hash uint64, parts []content.Part, length int, of form) (kept []byte, again bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	body := b.find(hash, parts)
	if body == nil {
		body = &readyBody{parts: parts, length: length}
		b.noted.Remove(hash)
		b.noted.Add(hash, body)
		for b.length += length; b.length > b.limit; {
			b.noted.RemoveOldest()
		}
	}
	again, body.asked[of] = body.asked[of], true
	return body.forms[of], again
}

// keep holds the form of a body that is still noted.
func (b *readyBodies) keep(hash uint64, parts []content.Part, of form, made []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if body := b.find(hash, parts); body != nil {
		body.forms[of] = made
	}
}

// find returns the body that is made of these parts; nil: none is noted.
func (b *readyBodies) find(hash uint64, parts []content.Part) *readyBody {
	if found, ok := b.noted.Get(hash); ok && same(found.(*readyBody).parts, parts) {
		return found.(*readyBody)
	}
	return nil
}

// hash is the same for bodies that are the same; it leaves the last part out, which a list makes
// anew for each answer.
func (b *readyBodies) hash(parts []content.Part) uint64 {
	var hash maphash.Hash
	hash.SetSeed(b.seed)
	for _, part := range parts[:len(parts)-1] {
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
