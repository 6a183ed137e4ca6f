package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"

	rules "github.com/appsec-dev/findings-operator/internal/triageoperation"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// It counts what was tried, and an outage or a dry run writes nothing.
func TestTheProgressClaimsNoWrites(t *testing.T) {
	var says strings.Builder
	p := newProgress(&says, false, "findings")
	p.printed = time.Now().Add(-plainInterval)
	p.at(416, 2000)
	harness.Same(t, "standard error", "processed: 416 of 2000 findings\n", says.String())
}

func TestForEachIsBoundedAndStops(t *testing.T) {
	const n, concurrency, stopAt = 200, 4, 50
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var running, most, begun atomic.Int64
	var mu sync.Mutex
	outcomes := forEach(ctx, n, concurrency, func(int, int) {}, func(i int) (bool, error) {
		defer running.Add(-1)
		now := running.Add(1)
		mu.Lock()
		most.Store(max(most.Load(), now))
		mu.Unlock()
		switch number := begun.Add(1); {
		case number == stopAt:
			stop()
		case number > stopAt:
			<-ctx.Done() // the one that stops it may be slow to do so
		}
		if i%2 == 1 {
			return false, errors.New("odd")
		}
		return true, nil
	})
	if most.Load() > concurrency {
		t.Errorf("%d at the same time, want at most %d", most.Load(), concurrency)
	}
	tried := 0
	for i, e := range outcomes {
		if e.tried {
			tried++
		}
		if e.tried && (e.err != nil) != (i%2 == 1) {
			t.Errorf("number %d ended with %v", i, e.err)
		}
	}
	if int64(tried) != begun.Load() || tried < stopAt || tried > stopAt+concurrency {
		t.Errorf("%d were begun and %d have an outcome, of %d until it was stopped", begun.Load(), tried, stopAt)
	}
}

func TestWhatWasOnlyReadWhenTheCommandWasStoppedIsNotTried(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	outcomes := forEach(ctx, 3, 1, func(int, int) {}, func(i int) (bool, error) {
		if i == 0 {
			return true, nil
		}
		stop()
		return false, fmt.Errorf("read: %w", ctx.Err())
	})
	if !outcomes[0].tried || outcomes[1].tried || outcomes[2].tried {
		t.Errorf("got %+v", outcomes)
	}
}

func TestAWebhooksDenialIsFinalWhateverItsCode(t *testing.T) {
	for _, code := range []int32{http.StatusConflict, http.StatusRequestTimeout, http.StatusServiceUnavailable} {
		err := webhookerrors.ToStatusErr("hold.example.com", &metav1.Status{Code: code})
		harness.Same(t, fmt.Sprintf("%d may go away by itself", code), false, isTemporary(err))
	}
}

// If packets are dropped each attempt takes half a minute to fail.
func TestRetryingEnds(t *testing.T) {
	for reason, tc := range map[string]struct {
		takes    time.Duration
		attempts int
	}{
		"each fails at once":    {0, backoff.Steps},
		"no connection in time": {30 * time.Second, 3},
		"no answer in time":     {callTimeout, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			attempts := 0
			err := withRetries(t.Context(), func() error {
				attempts++
				<-time.After(tc.takes)
				return &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
			})
			if err == nil || attempts != tc.attempts {
				t.Errorf("%s: %d attempts, want %d; the error is %v", reason, attempts, tc.attempts, err)
			}
		})
	}
}

func TestAnInterruptedPauseEndsWithoutAnotherAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithTimeout(t.Context(), backoff.Duration/2)
		defer interrupt()
		attempts, begun := 0, time.Now()
		err := withRetries(ctx, func() error {
			attempts++
			return &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
		})
		if err == nil || attempts != 1 || time.Since(begun) != backoff.Duration/2 {
			t.Errorf("%d attempts within %s; the error is %v", attempts, time.Since(begun), err)
		}
	})
}

func TestASummaryAddsUpAndSaysWhetherItFailed(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	failed := outcome{tried: true, err: errors.New("no\x1b[2J")}
	for reason, tc := range map[string]struct {
		outcomes   []outcome
		text, fail string
	}{
		"all done":     {[]outcome{{true, true, nil}, {true, true, nil}, {true, false, nil}, {true, true, nil}}, "findings: 3 muted, 1 unchanged, 0 failed\n", ""},
		"one fails":    {[]outcome{{true, true, nil}, failed, {true, true, nil}, {true, true, nil}}, "failed b: no\\x1b[2J\nfindings: 3 muted, 0 unchanged, 1 failed\n", "1 of 4 findings failed"},
		"it is ended":  {[]outcome{{true, true, nil}, failed, {}, {}}, "not tried: c, d\nfindings: 1 muted, 0 unchanged, 1 failed, 2 not tried\n", "interrupted after 2 of 4 findings"},
		"at the start": {[]outcome{{}, {}, {}, {}}, "not tried: a, b, c, d\nfindings: 0 muted, 0 unchanged, 0 failed, 4 not tried\n", "interrupted after 0 of 4 findings"},
	} {
		s := &bulkSummary{Action: "muted", what: "findings"}
		s.count(names, tc.outcomes)
		if got := string(s.text()); !strings.HasSuffix(got, tc.text) {
			t.Errorf("%s: the summary is\n%swant\n%s", reason, got, tc.text)
		}
		harness.ErrorContains(t, reason, s.err(), tc.fail)
	}
	for reason, tc := range map[string]struct {
		outcomes   []rules.Outcome
		text, fail string
	}{
		"a conflict": {[]rules.Outcome{rules.Changed, rules.Conflicted},
			"conflicted b: it was changed in the meantime\nfindings: 1 muted, 0 unchanged, 1 conflicted, 0 failed\n", "1 of 2 findings conflicted"},
		"a conflict and failures": {[]rules.Outcome{rules.Failed, rules.Conflicted, rules.Unchanged, rules.Failed},
			"findings: 0 muted, 1 unchanged, 1 conflicted, 2 failed\n", "2 of 4 findings failed, 1 conflicted"},
	} {
		s := &bulkSummary{Action: "muted", what: "findings"}
		for i, outcome := range tc.outcomes {
			s.add(names[i], outcome, "")
		}
		if got := string(s.text()); !strings.HasSuffix(got, tc.text) {
			t.Errorf("%s: the summary is\n%swant\n%s", reason, got, tc.text)
		}
		harness.ErrorContains(t, reason, s.err(), tc.fail)
	}
}
