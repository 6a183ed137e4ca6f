// Package slots limits concurrent work, in total and per organization, and lets callers wait for their turn.
package slots

import (
	"errors"
	"sync"
)

// Why there is no slot: the organization has reached its limit, or the remaining slots are reserved for others.
var (
	ErrOrganization = errors.New("the organization has too many under way")
	ErrTotal        = errors.New("too many are under way")
)

// Slots limits work by organization. It is safe for concurrent use.
type Slots struct {
	total, perOrganization int

	mu    sync.Mutex
	all   int
	taken map[string]int
}

// New returns total slots, of which one organization gets at most perOrganization.
func New(total, perOrganization int) *Slots {
	return &Slots{total: total, perOrganization: perOrganization, taken: map[string]int{}}
}

// Take takes a slot. The caller gives it back by calling free once. An organization with n slots gets another only
// while more than n are free, so that slots remain for organizations with fewer, and a few organizations cannot shut
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

// InUse returns how many slots are taken.
func (s *Slots) InUse() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}
