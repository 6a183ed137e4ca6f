package readmodel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
)

const (
	// stableRows is how many rows of each list keep their place.
	stableRows = 60
	// volatileNames is how many names each writer creates, changes and deletes.
	volatileNames = 15
)

// While several writers write, every walk through every list in every order returns each unmoved row exactly
// once, and in order; each page is consistent, and a writer that applies a finding reads it. When the writers stop,
// totals are exact.
func TestNoListRepeatsOrHidesRowsUnderConcurrentWriters(t *testing.T) {
	g := gomega.NewWithT(t)
	m, err := New(Options{Source: byHand, Log: logr.Discard()})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	feed(t, m, organizations, organization(acme, acmeNamespace, 1))
	feedStableRows(t, m)
	settle(m)
	lists := listsUnderTest()
	limit := func() index.Limit { return index.Limit{Size: 1 + rand.IntN(25), Bytes: rand.IntN(3) * 8000} }
	want := map[int][]string{}
	for i, l := range lists {
		want[i] = stableIDs(l.read(t, m, limit, func() {}))
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	background := &errgroup.Group{}
	background.Go(func() error { return m.runJoiner(ctx) })
	background.Go(func() error { return m.runPublisher(ctx) })
	writing, rest := context.WithCancel(ctx)
	defer rest()
	busy := &errgroup.Group{}
	writers := [3]*writer{}
	var version atomic.Int64
	version.Store(10_000)
	for i := range writers {
		writers[i] = &writer{model: m, version: &version, prefix: fmt.Sprintf("volatile-%d", i), live: map[kind]map[string]bool{}}
		busy.Go(func() error { return writers[i].run(writing) })
	}
	readers := &errgroup.Group{}
	for reader := range 2 {
		readers.Go(func() error {
			for round := range 4 {
				for i, l := range lists {
					if (i+round)%2 != reader {
						continue
					}
					pages := 0
					got := stableIDs(l.read(failure{}, m, limit, func() { pages++ }))
					if !slices.Equal(got, want[i]) {
						return fmt.Errorf("%s by %s %s, over %d pages:\ngot  %v\nwant %v", l.name, l.sort, l.order, pages, got, want[i])
					}
					if err := checkPage(m); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	g.Expect(readers.Wait()).To(gomega.Succeed())
	rest()
	g.Expect(busy.Wait()).To(gomega.Succeed())
	g.Eventually(func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.queue.empty() && !m.joining && !m.partitions[acmeNamespace].dirty()
	}, "60s", "1ms").Should(gomega.BeTrue(), "the model does not come to rest")
	cancel()
	g.Expect(background.Wait()).To(gomega.Succeed())

	rows := map[string]int{"findings": stableRows, "repositories": stableRows, "reviews": stableRows}
	for _, w := range writers {
		rows["findings"] += len(w.live[findings])
		rows["repositories"] += len(w.live[repositories])
		rows["reviews"] += len(w.live[reviews])
	}
	for _, l := range lists {
		page, err := l.page(m, first(1))
		g.Expect(err).NotTo(gomega.HaveOccurred())
		all := l.read(t, m, limit, func() {})
		g.Expect(page.Total).To(gomega.Equal(len(all)), "%s by %s", l.name, l.sort)
		g.Expect(slices.IsSortedFunc(all, l.compareShown)).To(gomega.BeTrue(), "%s by %s is not in order", l.name, l.sort)
		if n, ok := rows[l.name]; ok {
			g.Expect(page.Total).To(gomega.Equal(n), "%s by %s", l.name, l.sort)
		}
	}
}

// checkPage returns an error if a page counts too few findings, or shows one with JSON that is not that of its fields.
func checkPage(m *Model) error {
	page, err := m.ListFindings(acme, FindingQuery{Request: first(1000)})
	if err != nil {
		return err
	}
	if page.Total < stableRows {
		return fmt.Errorf("total is %d", page.Total)
	}
	for _, item := range page.Items {
		if !strings.Contains(string(jsonOf(item.V1())), `"user_status":"`+item.UserStatus+`"`) {
			return fmt.Errorf("the JSON of %s is not that of its fields", item.ID)
		}
	}
	return nil
}

// listsUnderTest returns all lists in all orders, and reviews with filters that rows start and stop to match.
func listsUnderTest() []sortedList {
	lists := allLists()
	start, end, status := epoch.Add(time.Second), epoch.Add(3*time.Second), "open"
	for i := range lists {
		if lists[i].keeps != nil {
			lists[i].name = "reviews"
		}
	}
	for _, by := range reviewLayout.Sorts {
		lists = append(lists,
			reviewList(by, index.OrderAsc, ReviewFilter{StartTime: &start, EndTime: &end}),
			reviewList(by, index.OrderDesc, ReviewFilter{StartTime: &start, EndTime: &end}),
			reviewList(by, index.OrderDesc, ReviewFilter{Status: &status, Custom: CustomOpenWithIssues, StartTime: &start}))
	}
	return lists
}

// failure stops a reader that runs in another goroutine than the test.
type failure struct{}

func (failure) Helper() {}

func (failure) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

func (failure) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func stableIDs(rows []shownRow) []string {
	return slices.DeleteFunc(shownIDs(rows), func(id string) bool { return !strings.HasPrefix(id, "stable-") })
}

// feedStableRows writes rows, many of them with the same values, so that ids decide their order.
func feedStableRows(t *testing.T, m *Model) {
	t.Helper()
	feed(t, m, projects, project("api", 9))
	for i := range stableRows {
		name, rv := fmt.Sprintf("stable-%02d", i), 10+10*i
		at := v1alpha1.NewTime(epoch.Add(time.Duration(i%5) * time.Second))
		repo := repository(name, rv)
		repo.CreationTimestamp, repo.Status.UpdatedAt, repo.Status.ObservedGeneration = metav1.NewTime(at.Time), &at, 1
		if i%3 > 0 {
			repo.Spec.LastCommit = &v1alpha1.Commit{CommittedAt: &at}
		}
		review := review(name, rv)
		review.Spec.RepositoryRef.Name = v1alpha1.ResourceName(fmt.Sprintf("stable-%02d", i%4))
		review.Spec.PRNumber = int32(i % 12) //nolint:gosec // of 0 to 11
		review.Spec.PRTitle = strings.Repeat("t", i%4)
		review.Spec.PRStatus = []v1alpha1.PullRequestStatus{"open", "closed", "merged"}[i%3]
		review.Status.UpdatedAt, review.Status.ObservedGeneration = &at, 1
		issue := issue(name, rv)
		issue.Spec.ReviewRef.Name = v1alpha1.ResourceName(fmt.Sprintf("stable-%02d", i%20))
		f := finding(name, rv)
		f.Spec.DetectedAt, f.Status.UpdatedAt, f.Status.ObservedGeneration = &at, &at, 1
		f.Spec.Details.Severity = []v1alpha1.Level{"high", "medium", "low"}[i%3]
		f.Spec.Details.Score = []string{"", "0.0", "9.8", "10.0"}[i%4]
		feed(t, m, repositories, repo)
		feed(t, m, reviews, review)
		feed(t, m, reviewIssues, issue)
		feed(t, m, findings, f)
	}
}

// writer creates, changes and deletes objects under its own names, and changes stable rows in ways that do not
// move them.
type writer struct {
	model   *Model
	version *atomic.Int64
	prefix  string
	live    map[kind]map[string]bool
}

func (w *writer) run(ctx context.Context) error {
	for ctx.Err() == nil {
		rv := int(w.version.Add(1))
		if rand.IntN(8) == 0 {
			if err := w.touchStable(rv); err != nil {
				return err
			}
			continue
		}
		k := []kind{repositories, projects, reviews, reviewIssues, findings}[rand.IntN(5)]
		object := w.object(k, rv)
		if w.live[k] == nil {
			w.live[k] = map[string]bool{}
		}
		deleted := w.live[k][object.GetName()] && rand.IntN(3) == 0
		if deleted {
			delete(w.live[k], object.GetName())
		} else {
			w.live[k][object.GetName()] = true
		}
		write := func() error { return w.model.add(change{kind: k, object: object, deleted: deleted}) }
		if f, ok := object.(*v1alpha1.Finding); ok && !deleted && rand.IntN(5) == 0 {
			write = func() error { return w.apply(f) }
		}
		if err := write(); err != nil {
			return err
		}
	}
	return nil
}

// apply writes as the facade does, which must read its own write.
func (w *writer) apply(f *v1alpha1.Finding) error {
	if _, err := w.model.Apply(f); err != nil {
		return err
	}
	if item, ok := w.model.Finding(acme, f.Name); !ok || item.resourceVersion != f.ResourceVersion {
		return fmt.Errorf("a patch does not read its own write: got %+v", item)
	}
	return nil
}

func (w *writer) object(k kind, rv int) metav1.Object {
	name := fmt.Sprintf("%s-%d", w.prefix, rand.IntN(volatileNames))
	at := v1alpha1.NewTime(epoch.Add(time.Duration(rand.IntN(5)) * time.Second))
	var object metav1.Object
	switch k {
	case repositories:
		o := repository(name, rv)
		o.Spec.LastCommit = &v1alpha1.Commit{CommittedAt: &at}
		o.Status.UpdatedAt, o.Status.ObservedGeneration = &at, 1
		object = o
	case projects:
		o := project(name, rv)
		o.Spec.RepositoryRef.Name = v1alpha1.ResourceName(fmt.Sprintf("stable-%02d", rand.IntN(5)))
		object = o
	case reviews:
		o := review(name, rv)
		o.Spec.RepositoryRef.Name = v1alpha1.ResourceName(fmt.Sprintf("%s-%d", w.prefix, rand.IntN(volatileNames)))
		o.Spec.PRNumber = rand.Int32N(12)
		o.Spec.PRTitle = strings.Repeat("t", rand.IntN(4))
		o.Status.UpdatedAt, o.Status.ObservedGeneration = &at, 1
		object = o
	case reviewIssues:
		o := issue(name, rv)
		o.Spec.ReviewRef.Name = v1alpha1.ResourceName(fmt.Sprintf("%s-%d", w.prefix, rand.IntN(volatileNames)))
		object = o
	default:
		o := finding(name, rv)
		o.Spec.DetectedAt, o.Status.UpdatedAt, o.Status.ObservedGeneration = &at, &at, 1
		o.Spec.Details.Severity = []v1alpha1.Level{"high", "medium", "low"}[rand.IntN(3)]
		o.Spec.Details.Score = []string{"", "4.0", "9.8"}[rand.IntN(3)]
		if rand.IntN(2) == 0 {
			muted(o)
		}
		object = o
	}
	object.SetUID(freshUID(rv))
	return object
}

// touchStable causes a stable review, or all findings, to be rendered again, without moving them.
func (w *writer) touchStable(rv int) error {
	if rand.IntN(2) == 0 {
		p := project("api", rv)
		p.Spec.Owner = fmt.Sprint(rv)
		return w.model.add(change{kind: projects, object: p})
	}
	i := rand.IntN(stableRows)
	o := issue(fmt.Sprintf("stable-%02d", i), rv)
	o.Spec.ReviewRef.Name = v1alpha1.ResourceName(fmt.Sprintf("stable-%02d", i%20))
	o.Spec.Title = fmt.Sprint("title ", rv)
	return w.model.add(change{kind: reviewIssues, object: o})
}
