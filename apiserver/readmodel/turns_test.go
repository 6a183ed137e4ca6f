package readmodel

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestFewRequestsWaitForACountOrATrendAndNotForLong(t *testing.T) {
	for name, c := range map[string]struct {
		turns func(*view) *turns
		ask   func(*Model, context.Context, string) error
	}{
		"counts": {func(v *view) *turns { return v.counting }, func(m *Model, ctx context.Context, of string) error {
			_, err := m.CountFindings(ctx, of, CountQuery{})
			return err
		}},
		"trends": {func(v *view) *turns { return v.trending }, func(m *Model, ctx context.Context, of string) error {
			_, err := m.Trends(ctx, of, TrendQuery{From: "2026-03-01", To: "2026-03-31"})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, _ := newAcme(t)
				feed(t, m, organizations, organization("other", "org-other", 2))
				settle(m)
				view, err := m.view(acme)
				harness.Must(t, err)
				harness.Must(t, c.turns(view).enter(t.Context()))
				answers := make(chan error, maxWaiting+2)
				for range maxWaiting + 1 {
					go func() { answers <- c.ask(m, t.Context(), acme) }()
				}
				synctest.Wait()
				harness.Same(t, "answers while the longest line waits", 1, len(answers))
				harness.Must(t, c.ask(m, t.Context(), "other"))
				<-time.After(turnPatience)
				synctest.Wait()
				harness.Same(t, "answers after the longest wait", maxWaiting+1, len(answers))
				for range maxWaiting + 1 {
					if err := <-answers; !errors.Is(err, ErrBusy) {
						t.Errorf("a request that gets no turn gets %v", err)
					}
				}
				c.turns(view).leave()
				harness.Must(t, c.ask(m, t.Context(), acme))
			})
		})
	}
}
