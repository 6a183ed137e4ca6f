package slots

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/test/harness"
)

const hot = "org-acme/f-1"

// enter returns the turn that a caller gets.
func enter(t *testing.T, l *Lines[string], key string) (leave func()) {
	t.Helper()
	leave, err := l.Enter(t.Context(), key)
	harness.Must(t, err)
	return leave
}

// forgotten fails the test if a line is kept although nobody needs it.
func forgotten(t *testing.T, l *Lines[string]) {
	t.Helper()
	synctest.Wait()
	harness.Same(t, "lines that are kept", 0, len(l.all))
}

func TestCallersOfAKeyHaveTheirTurnsOneAtATimeInTheOrderInWhichTheyCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers = 20
		l := &Lines[string]{Most: callers}
		leave := enter(t, l, hot)
		var order []int
		having := 0
		for n := range callers {
			go func() {
				leave, err := l.Enter(t.Context(), hot)
				if err != nil {
					t.Error(err)
					return
				}
				if having++; having != 1 { // the race detector checks too
					t.Errorf("%d have a turn", having)
				}
				order = append(order, n)
				having--
				leave()
			}()
			synctest.Wait()
		}
		harness.Same(t, "turns beside the first", 0, len(order))
		leave()
		forgotten(t, l)
		if !slices.IsSorted(order) || len(order) != callers {
			t.Errorf("they had their turns in the order %v", order)
		}
	})
}

// After each round, which is as long as the line was, the key is left to other replicas. Within a round, and if nobody
// waits, there is no pause.
func TestAKeyIsLeftToOtherReplicasAfterEachRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pause = time.Second
		l := &Lines[string]{Most: 9, Pause: func() time.Duration { return pause }}
		begun := time.Now()
		paused := func(reason string, want time.Duration) {
			t.Helper()
			harness.Same(t, "pauses: "+reason, want, time.Since(begun))
		}
		for range 3 {
			enter(t, l, hot)()
		}
		forgotten(t, l)
		first := enter(t, l, hot)
		paused("nobody waited", 0)
		entered := make(chan func())
		come := func(callers int) {
			for range callers {
				go func() {
					leave, err := l.Enter(t.Context(), hot)
					harness.NoError(t, "enter", err)
					entered <- leave
				}()
			}
			synctest.Wait()
		}
		come(3)
		first()
		synctest.Wait()
		harness.Same(t, "turns during the pause", 0, len(entered))
		come(1)
		for n := range 4 {
			leave := <-entered
			paused("one round of one, and one of those that came before the end of the pause", pause)
			if n == 0 {
				come(2)
			}
			leave()
		}
		for range 2 {
			leave := <-entered
			paused("those that came during the round have another", 2*pause)
			leave()
		}
		forgotten(t, l)
	})
}

// A caller that gives up takes no other caller's turn, whatever happens at that moment, and leaves nothing behind.
func TestWhoGivesUpLeavesTheLine(t *testing.T) {
	l := &Lines[string]{Most: 9, Pause: func() time.Duration { return 0 }}
	for range 200 {
		leave := enter(t, l, hot)
		var wait sync.WaitGroup
		for range 5 {
			ctx, cancel := context.WithCancelCause(t.Context())
			gone := errors.New("the client is gone")
			wait.Go(func() {
				leave, err := l.Enter(ctx, hot)
				if err == nil {
					leave()
				} else if !errors.Is(err, gone) {
					t.Error(err)
				}
			})
			wait.Go(func() { cancel(gone) })
		}
		wait.Go(leave)
		wait.Wait()
	}
	harness.Eventually(t, func(g gomega.Gomega) {
		l.mu.Lock()
		defer l.mu.Unlock()
		g.Expect(l.all).To(gomega.BeEmpty())
	})
}

func TestALineIsBoundedAndCallersOfOtherKeysDoNotWaitInIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 3
		l := &Lines[string]{Most: most, Pause: func() time.Duration { return time.Second }}
		leave := enter(t, l, hot)
		ctx, giveUp := context.WithCancel(t.Context())
		wait := func() { _, _ = l.Enter(ctx, hot) } //nolint:errcheck // they give up
		busy := func(reason string) {
			t.Helper()
			synctest.Wait()
			_, err := l.Enter(t.Context(), hot)
			harness.Same(t, "busy: "+reason, true, errors.Is(err, ErrBusy))
		}
		for range most {
			go wait()
		}
		busy("as many wait as may")
		enter(t, l, "org-globex/f-1")()
		leave()
		busy("during the pause")
		giveUp()
		<-time.After(time.Second)
		forgotten(t, l)
	})
}

func TestACallerWaitsOnlyAsLongAsItsPatienceAndItsContextLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &Lines[string]{Most: 9, Patience: 10 * time.Second}
		leave := enter(t, l, hot)
		waits := func(ctx context.Context, reason string, want time.Duration, because error) {
			t.Helper()
			begun := time.Now()
			_, err := l.Enter(ctx, hot)
			harness.Same(t, reason, want, time.Since(begun))
			harness.Same(t, reason+": its error", true, errors.Is(err, because))
		}
		waits(t.Context(), "patience", 10*time.Second, ErrBusy)
		gone := errors.New("the client is gone")
		ctx, stop := context.WithTimeoutCause(t.Context(), time.Second, gone)
		defer stop()
		waits(ctx, "context", time.Second, gone)
		leave()
		forgotten(t, l)
	})
}
