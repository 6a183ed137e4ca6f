package readmodel

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// pagedLister gives findings page by page, as the API server does.
type pagedLister struct {
	findings []v1alpha1.Finding
	asked    []metav1.ListOptions
	// failAt is the page that cannot be had; 0: none.
	failAt int
}

func (l *pagedLister) lister() cache.ListerWatcher {
	return &cache.ListWatch{ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
		l.asked = append(l.asked, options)
		if len(l.asked) == l.failAt {
			return nil, errors.New("gone")
		}
		from, _ := strconv.Atoi(options.Continue) // empty: 0
		to := min(from+int(options.Limit), len(l.findings))
		page := &v1alpha1.FindingList{ListMeta: metav1.ListMeta{ResourceVersion: "77"}, Items: l.findings[from:to]}
		if to < len(l.findings) {
			page.Continue = strconv.Itoa(to)
		}
		return page, nil
	}}
}

func manyFindings(n int) *pagedLister {
	l := &pagedLister{}
	for i := range n {
		l.findings = append(l.findings, *finding(fmt.Sprintf("f-%05d", i), 10+i))
	}
	return l
}

// A list is asked for in pages of one version, and is whole and rendered at the end.
func TestAListIsReadPageByPage(t *testing.T) {
	m, _ := newTestModel(t)
	const n = 2*pageSize + 1
	pages := manyFindings(n)
	s := &source{ListerWatcher: pages.lister(), model: m, kind: findings}
	// Reflectors ask for a version that they know, and for a page; the model wants all as it is now.
	got, err := s.ListWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "0", Limit: 3})
	if err != nil {
		t.Fatal(err)
	}
	whole := got.(*list)
	if len(whole.Items) != n || whole.ResourceVersion != "77" || whole.Continue != "" {
		t.Fatalf("%d items of version %s, continue %q", len(whole.Items), whole.ResourceVersion, whole.Continue)
	}
	for i, item := range whole.Items {
		prepared, ok := item.(*preparedFinding)
		if !ok || prepared.Name != fmt.Sprintf("f-%05d", i) || prepared.stored == nil {
			t.Fatalf("item %d is %T %+v", i, item, item)
		}
	}
	if len(pages.asked) != 3 {
		t.Errorf("%d pages were asked for", len(pages.asked))
	}
	for i, asked := range pages.asked {
		if asked.Limit != pageSize || asked.ResourceVersion != "" {
			t.Errorf("page %d was asked for with %+v", i, asked)
		}
	}
}

func TestAListOfWhichAPageIsMissingIsNone(t *testing.T) {
	m, _ := newTestModel(t)
	pages := manyFindings(pageSize + 1)
	pages.failAt = 2
	s := &source{ListerWatcher: pages.lister(), model: m, kind: findings}
	if _, err := s.ListWithContext(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("the list is said to be whole")
	}
}

// All kinds are listed at once, but what findings are joined with is heard before them.
func TestListsAreHeardInOrder(t *testing.T) {
	m, _ := newTestModel(t)
	before := make(chan struct{})
	s := &store{model: m, kind: findings, before: before, listed: make(chan struct{}), done: t.Context().Done()}
	heard := make(chan error, 1)
	go func() { heard <- s.Replace(nil, "5") }()
	select {
	case err := <-heard:
		t.Fatal(err, "findings were heard before the kinds they are joined with")
	case <-time.After(20 * time.Millisecond):
	}
	close(before)
	if err := <-heard; err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.listed:
	default:
		t.Error("the next kind would wait forever")
	}
}

func TestAListThatNobodyWaitsForAnyMoreIsNotHeard(t *testing.T) {
	m, _ := newTestModel(t)
	done := make(chan struct{})
	close(done)
	s := &store{model: m, kind: findings, before: make(chan struct{}), listed: make(chan struct{}), done: done}
	if err := s.Replace(nil, "5"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
