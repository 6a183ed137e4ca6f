package uploads

import (
	"errors"
	"sync"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/slots"
)

// Limits bound the uploads that a process works on at a time.
type Limits struct {
	// Total is how many there may be, PerOrganization how many of one organization.
	Total, PerOrganization int
	// Bytes is how much SARIF, unfolded, all of them together may hold, and those of one organization half of it. One
	// that is larger by itself is refused.
	Bytes int64
}

// share is how many bytes those of one organization may hold.
func (l Limits) share() int64 { return l.Bytes / 2 }

// DefaultLimits fit the memory that the chart gives to a replica.
var DefaultLimits = Limits{Total: 8, PerOrganization: 4, Bytes: 128 << 20}

// takeSlot takes a slot for an upload, which is given back once by calling free.
func (s *Service) takeSlot(organization string) (free func(), err error) {
	free, err = s.slots.Take(organization)
	switch {
	case errors.Is(err, slots.ErrOrganization):
		return nil, &refusal{
			problem.Busy("the organization has too many uploads under way", busyRetryAfter), reasonOrganizationLimit,
		}
	case err != nil:
		return nil, &refusal{problem.Busy("too many uploads are under way", busyRetryAfter), reasonReplicaLimit}
	}
	return free, nil
}

// memory counts the bytes of SARIF that are held.
type memory struct {
	mu     sync.Mutex
	limits Limits
	all    int64
	taken  map[string]int64 // by organization
}

// Why an upload has no room beside the others: those of all organizations, or of its own.
var (
	errNoMemory = errors.New("too much is being uploaded")
	errNoShare  = errors.New("the organization uploads too much")
)

func (m *memory) take(organization string, n int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.taken[organization]+n > m.limits.share():
		return errNoShare
	case m.all+n > m.limits.Bytes:
		return errNoMemory
	}
	m.all += n
	m.taken[organization] += n
	return nil
}

func (m *memory) give(organization string, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all -= n
	if m.taken[organization] -= n; m.taken[organization] == 0 {
		delete(m.taken, organization)
	}
}

// hold is what one upload has taken of the memory.
type hold struct {
	memory       *memory
	organization string
	taken        int64
}

// take takes room for n more bytes. Whether an upload by itself holds too much is for its reader to say.
func (h *hold) take(n int) error {
	if h.taken+int64(n) > h.memory.limits.share() {
		return nil
	}
	if err := h.memory.take(h.organization, int64(n)); err != nil {
		return err
	}
	h.taken += int64(n)
	return nil
}

func (h *hold) release() {
	h.memory.give(h.organization, h.taken)
	h.taken = 0
}
