package uploads

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/slots"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
)

// Limits bound the concurrent uploads of a process.
type Limits struct {
	// Total is the maximum number of uploads, PerOrganization that of one organization.
	Total, PerOrganization int
	// Bytes bounds the decompressed SARIF held by all uploads together. The uploads of one organization may
	// hold half of it. A single upload that exceeds its organization's share is refused.
	Bytes int64
}

// share returns how many bytes the uploads of one organization may hold.
func (l Limits) share() int64 { return l.Bytes / 2 }

// DefaultLimits fit the memory that the chart gives to a replica.
var DefaultLimits = Limits{Total: 8, PerOrganization: 4, Bytes: 128 << 20}

// maxComparing is how many uploads are compared with existing findings at the same time, at most one per organization:
// meanwhile each of them holds all findings of a tool in a project or repository.
const maxComparing = 2

// textWaited is the message for a dry run that waited for its turns as long as it may.
var textWaited = fmt.Sprintf("the dry run waited %s in all while other uploads were compared with existing "+
	"findings; an import without dry_run waits longer", dryRunPatience)

// maxTurn is how long the scans of a branch, or the tools of a pull request, are compared before other organizations
// that wait come first.
const maxTurn = 10 * time.Second

// turn is the importer.Turn of an upload.
type turn struct {
	turns *slots.Turns
	begun time.Time
	end   func()
}

func (t *turn) Over() bool { return time.Since(t.begun) > maxTurn && t.turns.Wanted() }

func (t *turn) End() { t.end() }

// waitForTurn returns the function with which the job's client waits. An import waits until its time is over: its Scans
// are recorded and show that it runs. A dry run has none, so it does not wait long for all its turns together: if it
// gives up a turn that lasted long, it waits for the next out of the same time, and may lose what it has compared.
func (s *Service) waitForTurn(j *job) func(ctx context.Context) (importer.Turn, error) {
	patience := dryRunPatience
	return func(ctx context.Context) (importer.Turn, error) {
		asked := time.Now()
		if j.DryRun {
			waiting, cancel := context.WithTimeoutCause(ctx, patience, problem.Busy(textWaited, busyRetryAfter))
			defer cancel()
			ctx = waiting
		}
		s.metrics.waiting.Inc()
		end, err := s.turns.Take(ctx, j.Organization)
		s.metrics.waiting.Dec()
		if err != nil {
			return nil, err
		}
		begun := time.Now()
		patience -= begun.Sub(asked)
		return &turn{turns: s.turns, begun: begun, end: end}, nil
	}
}

// takeSlot takes a slot for an upload. The caller gives it back by calling free once.
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

// memory counts the bytes of SARIF in memory.
type memory struct {
	mu     sync.Mutex
	limits Limits
	all    int64
	taken  map[string]int64 // by organization
}

// Why an upload does not fit in memory: because of the uploads of all organizations, or of its own.
var (
	errNoMemory = errors.New("too much is being uploaded")
	errNoShare  = errors.New("the organization uploads too much")
)

// take reserves n more bytes for an upload that already holds some. If it refuses, it gives these back before another
// upload can ask, so that uploads that do not fit together are never all refused: the last one always fits.
func (m *memory) take(organization string, held, n int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.taken[organization]+n > m.limits.share():
		m.drop(organization, held)
		return errNoShare
	case m.all+n > m.limits.Bytes:
		m.drop(organization, held)
		return errNoMemory
	}
	m.all += n
	m.taken[organization] += n
	return nil
}

func (m *memory) give(organization string, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(organization, n)
}

// drop gives n bytes back. It is called with the lock held.
func (m *memory) drop(organization string, n int64) {
	m.all -= n
	if m.taken[organization] -= n; m.taken[organization] == 0 {
		delete(m.taken, organization)
	}
}

// hold is the memory reserved by one upload.
type hold struct {
	memory       *memory
	organization string
	taken        int64
}

// take reserves n more bytes, or gives back all that it holds and returns why there is no room. It reserves nothing
// beyond the organization's share: the reader refuses an upload that is too large by itself, and one with many small
// results and rules is to be accepted.
func (h *hold) take(n int) error {
	if h.taken+int64(n) > h.memory.limits.share() {
		return nil
	}
	if err := h.memory.take(h.organization, h.taken, int64(n)); err != nil {
		h.taken = 0
		return err
	}
	h.taken += int64(n)
	return nil
}

func (h *hold) release() {
	h.memory.give(h.organization, h.taken)
	h.taken = 0
}
