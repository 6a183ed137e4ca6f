package readmodel

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// watchfulClock counts calls while nobody holds the mutex. The time of a finding's last change is determined
// when it is rendered.
type watchfulClock struct {
	clock.Clock
	model *Model
	free  int
}

func (c *watchfulClock) Now() time.Time {
	if c.model != nil && c.model.mu.TryLock() {
		c.free++
		c.model.mu.Unlock()
	}
	return c.Clock.Now()
}

// While a list of all findings is rendered, other writers and kinds proceed.
func TestFindingsAreRenderedWithoutTheMutex(t *testing.T) {
	watchful := &watchfulClock{Clock: clock.RealClock{}}
	m, err := New(Options{Source: byHand, Log: logr.Discard(), Clock: watchful})
	harness.Must(t, err)
	watchful.model = m
	feed(t, m, organizations, organization(acme, acmeNamespace, 1))
	const count = 2*listBatch + 1
	list := func() (objects []metav1.Object) {
		for i := range count {
			objects = append(objects, finding(fmt.Sprintf("f-%04d", i), 10+i))
		}
		return objects
	}
	watchful.free = 0
	harness.Must(t, m.replace(findings, list(), "10000"))
	if watchful.free < count {
		t.Errorf("of %d findings %d at most were rendered without the mutex", count, watchful.free)
	}
	watchful.free = 0
	harness.Must(t, m.replace(findings, list(), "10001"))
	if watchful.free > 10 {
		t.Errorf("a list without news had up to %d findings rendered anew", watchful.free)
	}
}

// Readers take no lock: a writer that holds the mutex for long does not delay them.
func TestReadersTakeNoLock(t *testing.T) {
	m, _ := newAcme(t)
	feed(t, m, repositories, repository("shop", 2))
	feed(t, m, projects, project("api", 3))
	feed(t, m, reviews, review("r-1", 4))
	feed(t, m, reviewIssues, issue("i-1", 5))
	show(t, m, findings, finding("f-1", 6))
	m.mu.Lock()
	defer m.mu.Unlock()
	read := make(chan string)
	go func() {
		defer close(read)
		if page, err := m.ListFindings(acme, FindingQuery{Request: first(1)}); err != nil || page.Total != 1 {
			read <- "findings"
		}
		if page, err := m.ListReviews(acme, ReviewQuery{Request: first(1)}); err != nil || page.Total != 1 {
			read <- "reviews"
		}
		if page, err := m.ListRepositories(acme, first(1)); err != nil || page.Total != 1 {
			read <- "repositories"
		}
		if _, ok := m.Finding(acme, "f-1"); !ok {
			read <- "a finding"
		}
		if _, ok := m.Project(acme, "shop", "api"); !ok {
			read <- "a project"
		}
		if _, ok := m.ReviewIssue(acme, "i-1"); !ok {
			read <- "a review issue"
		}
		m.Ready()
	}()
	for {
		select {
		case missing, more := <-read:
			if !more {
				return
			}
			t.Errorf("%s cannot be read", missing)
		case <-time.After(time.Minute):
			t.Fatal("a reader waits for the mutex")
		}
	}
}

// Readers get one new snapshot per interval, however many changes arrive at once: in a burst, the nodes of the
// trees are not copied for each change.
func TestABurstIsPublishedAtOnce(t *testing.T) {
	m, clock := newAcme(t)
	show(t, m, findings, finding("f-first", 2))
	published := func() *indexes {
		snapshot, err := m.snapshot(acme)
		harness.Must(t, err)
		return snapshot
	}
	go m.runPublisher(t.Context()) //nolint:errcheck // it ends with the test
	waitFor := func(reason string, done func() bool) {
		t.Helper()
		gomega.NewWithT(t).Eventually(done, time.Minute).Should(gomega.BeTrue(), reason)
	}
	feed(t, m, findings, finding("f-first", 3))
	waitFor("the first change is not published at once", clock.HasWaiters)
	before := published()
	const changed = 400
	for i := range 5 * changed {
		feed(t, m, findings, finding(fmt.Sprintf("f-%03d", i%changed), 10+i))
	}
	if published() != before {
		t.Error("readers got a snapshot before the interval was over")
	}
	clock.Step(publishInterval)
	waitFor("the burst is not published when the interval is over", func() bool { return published() != before })
	harness.Same(t, "findings that readers see", changed+1, published().findings.Len())
}
