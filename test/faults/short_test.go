//go:build !faults

package faults

import (
	"net/http"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/test/faults/internal/rig"
	"github.com/appsec-dev/findings-operator/test/harness"
)

const (
	// shortStaleness keeps the test short.
	shortStaleness = 8 * time.Second
	// noise is the delay that the tests of other packages may add.
	noise = 10 * time.Second
)

// TestNothingAcknowledgedIsLostOverSomeFaults injects some of the faults that -tags=faults injects.
func TestNothingAcknowledgedIsLostOverSomeFaults(t *testing.T) {
	t.Parallel()
	s := start(t, rig.Options{
		KeyStaleness: shortStaleness, Controllers: 1,
		// No fault here ends etcd. With -tags=faults both processes run as they do elsewhere.
		Env: harness.CollectLess(), EtcdFlags: []string{"--unsafe-no-fsync"},
	})
	stalled, black := s.spareKey("stalled"), s.spareKey("black-hole")

	s.phase("facade killed three times", func() {
		for range 2 {
			s.killFacade()
			s.awaitProgress(coolDown)
		}
		s.killFacade()
	})
	for _, m := range moments()[:2] {
		s.phase("controller killed "+m.name, func() { s.killAt(m) })
	}
	if failed := s.journal.failedImports; len(failed) > 0 { // the load has stopped
		s.verdict.wrong("imports failed though the API server ran: %v", failed)
	}
	s.phase("API server answers 500, then stalls watches", func() {
		s.answering(http.StatusInternalServerError, 0)
		s.stallWatches(func() {
			s.checkRevoked("while the watches show nothing", "stalled", stalled, http.StatusUnauthorized, revokedWithin)
			s.awaitProgress(coolDown)
		})
	})
	s.phase("API server killed", func() { s.killAPIServer() })
	s.phase("connections black-holed", func() {
		s.verdict.injected(1)
		s.must(s.Facade.Door.BlackHole())
		s.checkRevoked("behind a black hole", "black-hole", black, http.StatusInternalServerError, shortStaleness)
		s.awaitRefusal()
		s.must(s.Facade.Door.Heal(t.Context()))
	})
	s.checkReceived()
	s.uploads(uploadsPlan{organizations: 2, projects: 2, results: 150})
	t.Log(s.verdict.summary(s.journal.sum()))
}
