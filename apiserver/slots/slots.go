// Package slots bounds how many of what takes long are under way at a time, in all and for each organization.
package slots

import (
	"errors"
	"sync"
)

// Why there is no slot: the organization has as many as it may, or what is left is for others.
var (
	ErrOrganization = errors.New("the organization has too many under way")
	ErrTotal        = errors.New("too many are under way")
)

// Slots are given to organizations. They may be taken concurrently.
type Slots struct {
	total, perOrganization int

	mu    sync.Mutex
	all   int
	taken map[string]int
}

// New returns so many slots, of which one organization has at most so many.
func New(total, perOrganization int) *Slots {
	return &Slots{total: total, perOrganization: perOrganization, taken: map[string]int{}}
}

// Take takes a slot, which is given back once by calling free. An organization that has some already takes another only
// while more than that are free: so what is left is for those that have fewer, and a few organizations cannot shut
// out the others. The errors are ErrOrganization and ErrTotal.
func (s *Slots) Take(organization string) (free func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.taken[organization]
	switch {
	case own >= s.perOrganization:
		return nil, ErrOrganization
	case s.total-s.all <= own:
		return nil, ErrTotal
	}
	s.all++
	s.taken[organization]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		if s.taken[organization]--; s.taken[organization] == 0 {
			delete(s.taken, organization)
		}
	}, nil
}

// InUse returns how many are taken.
func (s *Slots) InUse() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}
