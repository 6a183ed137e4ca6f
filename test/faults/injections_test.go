package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/faults/internal/rig"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// killFacade kills the facade and starts it again.
func (s *trial) killFacade() {
	s.t.Helper()
	s.verdict.injected(1)
	s.must(s.monitor.killFacade())
}

// leader returns the controller that leads.
func (s *trial) leader() *rig.Replica {
	s.t.Helper()
	if len(s.Controllers) == 1 {
		return s.Controllers[0]
	}
	return s.awaitLeader(nil)
}

// awaitLeader waits until a controller other than the former leader leads, and returns it.
func (s *trial) awaitLeader(former *rig.Replica) (leads *rig.Replica) {
	s.t.Helper()
	s.eventually("a controller leads", func(ctx context.Context) error {
		for _, c := range s.Controllers {
			if c != former && c.Running() && isLeader(ctx, c) {
				leads = c
				return nil
			}
		}
		return errors.New("none does")
	})
	return leads
}

func isLeader(ctx context.Context, c *rig.Replica) bool {
	leads, err := metric(ctx, c, "leader_election_master_status")
	return err == nil && leads > 0
}

// killAPIServer kills the API server and starts it again.
func (s *trial) killAPIServer() {
	s.t.Helper()
	s.verdict.injected(1)
	s.must(s.APIServer.Restart())
	s.must(s.AwaitReady(s.t.Context()))
}

// awaitRefusal waits until reads are refused because the authorization data is stale. The facade stays ready
// nevertheless.
func (s *trial) awaitRefusal() {
	s.t.Helper()
	s.eventually("reads are refused", func(ctx context.Context) error {
		code, got, err := s.rest.call(ctx, http.MethodGet, "/v1/findings?size=1", nil)
		if err != nil || code != http.StatusInternalServerError || got.detail() != "authorization data is stale" {
			return fmt.Errorf("a read is answered with %d: %w", code, err)
		}
		if ready, err := s.monitor.isReady(ctx); !ready || err != nil {
			return fmt.Errorf("the facade says that it is not ready: %w", err)
		}
		return nil
	})
}

// answering answers all of the facade's writes and every other read with the status, until some
// writes were refused.
func (s *trial) answering(status, retryAfter int) {
	s.t.Helper()
	s.verdict.injected(1)
	var reads atomic.Int64
	s.must(s.Facade.Door.Intercept(func(r *http.Request) rig.Verdict {
		if r.Method == http.MethodGet && reads.Add(1)%2 == 0 {
			return rig.Verdict{}
		}
		return rig.Verdict{Status: status, RetryAfter: retryAfter}
	}))
	target := s.journal.counted("refusals that say what to do") + warmUp
	s.eventually("writes are refused", func(context.Context) error {
		if s.journal.counted("refusals that say what to do") < target {
			return errors.New("too few are")
		}
		return nil
	})
	s.must(s.Facade.Door.Heal(s.t.Context()))
}

// stallWatches lets the facade's watches start but withholds their events until do returns; then
// all events arrive at once.
func (s *trial) stallWatches(do func()) {
	s.t.Helper()
	s.verdict.injected(1)
	release := make(chan struct{})
	s.must(s.Facade.Door.Intercept(func(r *http.Request) rig.Verdict {
		if rig.IsWatch(r) {
			return rig.Verdict{Body: release}
		}
		return rig.Verdict{}
	}))
	s.eventually("the watches have begun anew", func(context.Context) error {
		if got := s.Facade.Door.Interceptor.Intercepted.Load(); got < watchedByFacade {
			return fmt.Errorf("%d have", got)
		}
		return nil
	})
	do()
	close(release)
	s.awaitProgress(coolDown)
	s.must(s.Facade.Door.Heal(s.t.Context()))
}

// watchedByFacade is the minimum number of watches that the facade holds: seven for the kinds that
// it serves, and three for keys.
const watchedByFacade = 10

// revoke disables a key and returns how long it was served after the API server had accepted the
// change, and the status of the first refusal.
func (s *trial) revoke(name, token string) (time.Duration, int) {
	s.t.Helper()
	caller := &restClient{base: s.URL, token: token, http: &http.Client{Timeout: requestTimeout}}
	key := &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	s.must(s.Client.Patch(s.t.Context(), key, testenv.MergePatch(`{"spec":{"disabled":true}}`)))
	begun := time.Now()
	var code int
	s.eventually("the key "+name+" is not served any longer", func(ctx context.Context) error {
		var err error
		if code, _, err = caller.call(ctx, http.MethodGet, "/v1/findings?size=1", nil); err != nil || code == http.StatusOK {
			return fmt.Errorf("it is: %w", err)
		}
		return nil
	})
	return time.Since(begun), code
}

// spareKey creates a key that the facade has observed.
func (s *trial) spareKey(name string) string {
	s.t.Helper()
	token := s.newKey(name)
	caller := &restClient{base: s.URL, token: token, http: &http.Client{Timeout: requestTimeout}}
	s.eventually("the facade knows the key "+name, func(ctx context.Context) error {
		if code, _, err := caller.call(ctx, http.MethodGet, "/v1/findings?size=1", nil); err != nil || code != http.StatusOK {
			return fmt.Errorf("it answers %d: %w", code, err)
		}
		return nil
	})
	return token
}

// moment is a request of the controllers that is intercepted.
type moment struct {
	name string
	// rule intercepts the request: it is held until the doors are healed.
	rule func(r *http.Request, never <-chan struct{}) rig.Verdict
}

// moments returns the moments between the recording of a transition and the recording of its
// delivery.
func moments() []moment {
	var made atomic.Bool
	return []moment{
		{"before a delivery is stored", func(r *http.Request, never <-chan struct{}) rig.Verdict {
			if rig.Of(r, http.MethodPost, "webhookdeliveries") {
				return rig.Verdict{Before: never}
			}
			return rig.Verdict{}
		}},
		{"before it is known that a delivery is stored", func(r *http.Request, never <-chan struct{}) rig.Verdict {
			if rig.Of(r, http.MethodPost, "webhookdeliveries") {
				return rig.Verdict{After: never}
			}
			return rig.Verdict{}
		}},
		{"before it is recorded that deliveries are made", func(r *http.Request, never <-chan struct{}) rig.Verdict {
			switch {
			case rig.Of(r, http.MethodPost, "webhookdeliveries"):
				made.Store(true)
			case made.Load() && (rig.Of(r, http.MethodPatch, "findings/status") || rig.Of(r, http.MethodPatch, "scans/status")):
				return rig.Verdict{Before: never}
			}
			return rig.Verdict{}
		}},
	}
}

// killAt kills the leader at the moment.
func (s *trial) killAt(m moment) {
	s.t.Helper()
	s.verdict.injected(1)
	never := make(chan struct{})
	caught := make(chan struct{}, 1)
	for _, c := range s.Controllers {
		s.must(c.Door.Intercept(func(r *http.Request) rig.Verdict {
			v := m.rule(r, never)
			if v != (rig.Verdict{}) {
				select {
				case caught <- struct{}{}:
				default:
				}
			}
			return v
		}))
	}
	s.awaitSignal("a request is caught "+m.name, caught)
	leader := s.leader()
	leader.Kill()
	for _, c := range s.Controllers {
		s.must(c.Door.Heal(s.t.Context()))
	}
	s.must(leader.Start())
}

func (s *trial) awaitSignal(what string, signal <-chan struct{}) {
	s.t.Helper()
	select {
	case <-signal:
	case <-s.t.Context().Done():
		s.must(s.t.Context().Err())
	case <-time.After(settleTimeout):
		s.must(fmt.Errorf("it did not happen that %s", what))
	}
}
