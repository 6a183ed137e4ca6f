package faults

import "time"

// The guaranteed times of docs/faults.md.
const (
	writesWithin      = 20 * time.Second
	readsWithin       = 30 * time.Second
	controllersWithin = 90 * time.Second
	// revokedWithin applies while the API server answers.
	revokedWithin = time.Second
)

// checkRevoked disables a key, and checks that it is not served for longer than the bound.
func (s *trial) checkRevoked(when, name, token string, want int, within time.Duration) {
	s.t.Helper()
	took, code := s.revoke(name, token)
	s.t.Logf("%s a revoked key was served for %s (promised: %s), then answered with %d", when, short(took), within, code)
	if code != want || took > within+noise {
		s.verdict.wrong("%s a revoked key was served for %s, and answered with %d; want %d within %s (+%s for a busy machine)", when, took, code, want, within, noise)
	}
}

// checkBounds checks how soon the service worked again after a fault.
func (s *trial) checkBounds(o outcome) {
	s.t.Helper()
	if o.writes > writesWithin || o.reads > readsWithin || o.controllers > controllersWithin {
		s.verdict.wrong("after %q it took longer than promised (%s, %s, %s): %s", o.name, writesWithin, readsWithin, controllersWithin, o)
	}
}
