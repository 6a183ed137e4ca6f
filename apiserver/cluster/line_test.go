package cluster

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/appsec-dev/findings-operator/test/harness"
)

var hot = types.NamespacedName{Namespace: "org-acme", Name: "f-1"}

func init() { SetDefaultEventuallyTimeout(30 * time.Second) }

// waitingFor returns how many writers wait for a finding; -1 if it has no line.
func (l *lines) waitingFor(finding types.NamespacedName) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if its := l.all[finding]; its != nil {
		return len(its.waiting)
	}
	return -1
}

func TestWritersHaveAFindingOneAtATimeInTheOrderInWhichTheyCame(t *testing.T) {
	g := NewWithT(t)
	l := newLines(maxWriters, noPause)
	leave, err := l.enter(t.Context(), hot)
	g.Expect(err).NotTo(HaveOccurred())
	const writers = 20
	var order []int
	var having int
	var wait sync.WaitGroup
	for n := range writers {
		wait.Go(func() {
			leave, err := l.enter(t.Context(), hot)
			if err != nil {
				t.Error(err)
				return
			}
			if having++; having != 1 { // the race detector checks too
				t.Errorf("%d have the finding", having)
			}
			order = append(order, n)
			having--
			leave()
		})
		g.Eventually(func() int { return l.waitingFor(hot) }).Should(Equal(n + 1))
	}
	leave()
	wait.Wait()
	if !slices.IsSorted(order) || len(order) != writers {
		t.Errorf("they had it in the order %v", order)
	}
	g.Eventually(func() int { return l.waitingFor(hot) }).Should(Equal(-1), "the line is kept")
}

// After each round, which is as long as the line was, the finding is left to other replicas. Within a round,
// and if nobody waits, there is no pause.
func TestAFindingIsLeftToOtherReplicasAfterEachRound(t *testing.T) {
	g := NewWithT(t)
	pauses := 0 // guarded by the lines' mutex
	l := newLines(maxWriters, func() time.Duration { pauses++; return 0 })
	paused := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return pauses
	}
	for range 3 {
		leave, err := l.enter(t.Context(), hot)
		g.Expect(err).NotTo(HaveOccurred())
		leave()
	}
	g.Eventually(func() int { return l.waitingFor(hot) }).Should(Equal(-1))
	g.Expect(paused()).To(Equal(0), "nobody waited")

	first, err := l.enter(t.Context(), hot)
	g.Expect(err).NotTo(HaveOccurred())
	entered := make(chan func())
	for n := range 4 {
		go func() {
			leave, err := l.enter(t.Context(), hot)
			harness.NoError(t, "enter", err)
			entered <- leave
		}()
		g.Eventually(func() int { return l.waitingFor(hot) }).Should(Equal(n + 1))
	}
	first()
	for range 4 {
		leave := <-entered
		g.Expect(paused()).To(Equal(1), "one round of one, and one of four")
		leave()
	}
}

// A writer that gives up takes no other writer's turn, whatever happens at that moment, and leaves nothing
// behind.
func TestWhoGivesUpLeavesTheLine(t *testing.T) {
	g := NewWithT(t)
	l := newLines(maxWriters, noPause)
	for range 200 {
		leave, err := l.enter(t.Context(), hot)
		g.Expect(err).NotTo(HaveOccurred())
		var wait sync.WaitGroup
		for range 5 {
			ctx, cancel := context.WithCancel(t.Context())
			wait.Go(func() {
				leave, err := l.enter(ctx, hot)
				if err == nil {
					leave()
				} else if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
			wait.Go(cancel)
		}
		wait.Go(leave)
		wait.Wait()
	}
	g.Eventually(func() int { return l.waitingFor(hot) }).Should(Equal(-1), "the line is kept")
}

func TestALineIsBoundedAndNoOtherFindingsWritersStandInIt(t *testing.T) {
	g := NewWithT(t)
	l := newLines(maxWriters, noPause)
	leave, err := l.enter(t.Context(), hot)
	g.Expect(err).NotTo(HaveOccurred())
	ctx, giveUp := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	for range maxWriters {
		wait.Go(func() { _, _ = l.enter(ctx, hot) }) //nolint:errcheck // they give up
	}
	g.Eventually(func() int { return l.waitingFor(hot) }).Should(Equal(maxWriters))
	_, err = l.enter(t.Context(), hot)
	g.Expect(err).To(MatchError(errLongLine))
	other, err := l.enter(t.Context(), types.NamespacedName{Namespace: "org-globex", Name: "f-1"})
	g.Expect(err).NotTo(HaveOccurred())
	other()
	giveUp()
	wait.Wait()
	leave()
	g.Eventually(func() int { return l.waitingFor(hot) }).Should(Equal(-1))
}

// A writer that gets its turn just as it gives up passes it on.
func TestWhoGivesUpAsItsTurnComesPassesItOn(t *testing.T) {
	g := NewWithT(t)
	for range 50 {
		l := newLines(maxWriters, noPause)
		_, err := l.enter(t.Context(), hot) // has it from now on; next passes it on below
		g.Expect(err).NotTo(HaveOccurred())
		ctx, giveUp := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		wait.Go(func() {
			if leave, err := l.enter(ctx, hot); err == nil {
				leave()
			}
		})
		g.Eventually(func() int { return l.waitingFor(hot) }).Should(Equal(1))
		l.mu.Lock()
		giveUp()
		l.next(hot)
		l.mu.Unlock()
		wait.Wait()
		g.Eventually(func() int { return l.waitingFor(hot) }).Should(Equal(-1), "nobody has the finding, and nobody can get it")
	}
}
