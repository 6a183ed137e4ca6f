package readmodel

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestLagIsTheAgeOfWhatReadersDoNotSee(t *testing.T) {
	m, clock := newTestModel(t)
	registry := prometheus.NewRegistry()
	m.register(registry)
	lag := func(want time.Duration, reason string) {
		t.Helper()
		harness.Same(t, reason, want, m.lag())
	}
	lag(0, "nothing has come in")
	feed(t, m, organizations, organization(acme, acmeNamespace, 1))
	feed(t, m, repositories, repository("shop", 2))
	clock.Step(2 * time.Second)
	feed(t, m, findings, finding("f-1", 3))
	lag(2*time.Second, "the oldest counts")
	publish(m)
	lag(2*time.Second, "the finding is published, and the repository is not joined")
	settle(m)
	lag(0, "all is joined and published")
	clock.Step(time.Minute)
	lag(0, "time alone makes no lag")
	feed(t, m, findings, finding("f-1", 3))
	clock.Step(time.Second)
	lag(time.Second, "nobody has found out yet that it is no news")
	settle(m)
	lag(0, "it is none")

	m.mu.Lock()
	waiting := make(chan error)
	go func() { waiting <- m.add(change{kind: findings, object: finding("f-1", 4)}) }()
	for m.metrics.behind.Load() == nil {
		select {
		case err := <-waiting:
			t.Fatalf("the change did not wait for its turn: %v", err)
		default:
		}
	}
	clock.Step(3 * time.Second)
	lag(3*time.Second, "a change that waits for its turn")
	m.publishAll() // publishes the changes before it
	m.mu.Unlock()
	harness.Must(t, <-waiting)
	lag(3*time.Second, "it is still to be seen")
	settle(m)
	lag(0, "all is seen again")

	feedDeletion(t, m, findings, finding("f-1", 5))
	settle(m)
	want := `
# HELP findings_read_model_items Objects that the read model holds.
# TYPE findings_read_model_items gauge
findings_read_model_items{kind="findings"} 0
findings_read_model_items{kind="findingtrends"} 0
findings_read_model_items{kind="organizations"} 1
findings_read_model_items{kind="projects"} 0
findings_read_model_items{kind="repositories"} 1
findings_read_model_items{kind="reviewissues"} 0
findings_read_model_items{kind="reviews"} 0
findings_read_model_items{kind="scans"} 0
findings_read_model_items{kind="triageoperations"} 0
findings_read_model_items{kind="webhookdeliveries"} 0
`
	harness.NoError(t, "metrics", testutil.GatherAndCompare(registry, strings.NewReader(want), "findings_read_model_items"))
	if n, err := testutil.GatherAndCount(registry, "findings_read_model_catch_up_seconds"); err != nil || n != 1 {
		t.Errorf("the histogram is there %d times, %v", n, err)
	}
}

// Its changes are seen one after the other, though the queue is never empty.
func TestAnOrganizationThatKeepsChangingMakesNoGrowingLag(t *testing.T) {
	m, clock := newAcme(t)
	change := func(n int) {
		changed := repository("shop", n)
		changed.Spec.FullName = fmt.Sprint("acme/shop-", n)
		feed(t, m, repositories, changed)
	}
	change(2)
	for n := range 10 {
		clock.Step(time.Second)
		for m.joinNext(testContext) {
		}
		change(3 + n)
		m.joinNext(testContext) // the repository, but not what refers to it
		m.mu.Lock()
		if m.queue.empty() {
			t.Fatal("nothing is left to be joined")
		}
		m.publishAll()
		m.mu.Unlock()
		if lag := m.lag(); lag > 2*time.Second {
			t.Fatalf("after %d changes, one per second: %s", n+2, lag)
		}
	}
	settle(m)
	harness.Same(t, "all is seen", time.Duration(0), m.lag())
}

func TestAProjectThatKeepsChangingMakesNoGrowingLag(t *testing.T) {
	m, clock := newAcme(t)
	show(t, m, repositories, repository("shop", 2))
	for n := range 30 {
		clock.Step(time.Second)
		feed(t, m, projects, countedProject("api", 10+2*n))
		m.joinNext(testContext)
		feed(t, m, projects, countedProject("api", 11+2*n)) // the queue never runs out of single rows
		publish(m)
		if lag := m.lag(); lag > 3*time.Second {
			t.Fatalf("after %d changes, one per second: %s", n+1, lag)
		}
	}
}

func silence(m *Model, k kind) time.Duration {
	_, silence := m.Silence(k.String())
	return silence
}

func TestWhateverComesInIsHeard(t *testing.T) {
	m, clock := newTestModel(t)
	nothing := make(chan struct{})
	close(nothing)
	s := &store{model: m, kind: findings, before: nothing, listed: make(chan struct{})}
	harness.Same(t, "before anything", time.Duration(math.MaxInt64), silence(m, findings))
	for _, c := range []struct {
		reason string
		do     func() error
	}{
		{"a list", func() error { return s.Replace(nil, "1") }},
		{"an object", func() error { return s.Add(finding("f-1", 2)) }},
		{"a change", func() error { return s.Update(finding("f-1", 3)) }},
		{"a bookmark", func() error { return s.Bookmark("4") }},
		{"a deletion", func() error { return s.Delete(finding("f-1", 5)) }},
	} {
		clock.Step(time.Minute)
		harness.Must(t, c.do())
		harness.Same(t, "after "+c.reason, time.Duration(0), silence(m, findings))
	}
	clock.Step(time.Hour)
	harness.Same(t, "an hour later", time.Hour, silence(m, findings))
	harness.Same(t, "of another kind", time.Duration(math.MaxInt64), silence(m, projects))
}
