//go:build faults

package faults

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/test/faults/internal/rig"
)

// resting are the kinds that the facade watches, each with a list that is served from it; "" if no list is.
var resting = map[string]string{
	"organizations": "/v1/findings?size=1", "repositories": "/v2/repos?size=1", "projects": "/v2/repos?size=1",
	"findings": "/v1/findings?size=1", "reviews": "/v1/reviews?size=1", "reviewissues": "/v1/reviews?size=1", "webhookdeliveries": "",
}

// The watches of one kind start but deliver nothing, not even a bookmark; each kind is tested on
// its own replica.
func TestEachKindGoesDeafAlone(t *testing.T) {
	s := start(t, rig.Options{KeyStaleness: staleness, Controllers: 1})
	never := make(chan struct{})
	var replicas sync.WaitGroup
	for kind, path := range resting {
		replica, err := s.NewFacade(t.Context(), "deaf-to-"+kind)
		s.must(err)
		t.Cleanup(func() { replica.Kill(); replica.Door.Close() })
		s.must(replica.AwaitReady(t.Context(), "http://"+replica.HealthAddress+"/readyz"))
		s.must(replica.Door.Intercept(func(r *http.Request) rig.Verdict {
			if rig.Of(r, "WATCH", kind) {
				return rig.Verdict{Body: never}
			}
			return rig.Verdict{}
		}))
		replicas.Go(func() { s.isFoundDeaf(replica, kind, path) })
	}
	replicas.Wait()
}

// isFoundDeaf waits until a replica reports the kind, and no other, as silent, and marks the lists
// that are served from it.
func (s *trial) isFoundDeaf(replica *rig.Replica, kind, path string) {
	caller := &restClient{base: "http://" + replica.Address, token: s.rest.token, http: &http.Client{Timeout: requestTimeout}}
	began := time.Now()
	err := await(s.t.Context(), "the facade says that it hears nothing of "+kind, func(ctx context.Context) error {
		status, report, err := fetch(ctx, "http://"+replica.HealthAddress+"/readyz")
		if err != nil || status != http.StatusOK || !strings.Contains(report, "[!] "+kind+": no data for ") {
			return fmt.Errorf("/readyz answers %d %s: %w", status, report, err)
		}
		if strings.Count(report, "[!]") != 1 {
			s.verdict.wrong("deaf to %s alone, it reports %s", kind, report)
			return nil
		}
		if path == "" {
			return nil
		}
		if _, got, err := caller.call(ctx, http.MethodGet, path, nil); err != nil || got.header.Get("X-Data-Age") == "" {
			return fmt.Errorf("%s is answered without x-data-age: %s: %w", path, got.body, err)
		}
		return nil
	})
	if err != nil {
		s.verdict.wrong("%v", err)
	}
	s.verdict.injected(1)
	s.t.Logf("deaf to %s: seen after %s", kind, short(time.Since(began)))
}
