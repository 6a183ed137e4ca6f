package readmodel

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/slots"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestFewRequestsWaitForACountOrATrendAndNotForLong(t *testing.T) {
	for name, c := range map[string]struct {
		lines func(*Model) *slots.Lines[*view]
		ask   func(*Model, context.Context, string) error
	}{
		"counts": {func(m *Model) *slots.Lines[*view] { return &m.counts }, func(m *Model, ctx context.Context, of string) error {
			_, err := m.CountFindings(ctx, of, CountQuery{})
			return err
		}},
		"trends": {func(m *Model) *slots.Lines[*view] { return &m.trends }, func(m *Model, ctx context.Context, of string) error {
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
				leave, err := c.lines(m).Enter(t.Context(), view)
				harness.Must(t, err)
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
					if err := <-answers; !errors.Is(err, slots.ErrBusy) {
						t.Errorf("a request that gets no turn gets %v", err)
					}
				}
				leave()
				harness.Must(t, c.ask(m, t.Context(), acme))
			})
		})
	}
}
