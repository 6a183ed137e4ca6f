package readmodel

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// fakeSource lists findings, whole or page by page, as the API server does.
type fakeSource struct {
	findings []v1alpha1.Finding
	asked    []metav1.ListOptions
	// breaksAt is the request whose answer breaks off after its first object, and refusedAt one
	// that is not answered; 0: none.
	breaksAt, refusedAt int
}

var (
	errRefused  = errors.New("refused")
	errBrokeOff = errors.New("broke off")
)

func (f *fakeSource) List(_ context.Context, options metav1.ListOptions, each func(runtime.Object) error) (metav1.ListMeta, error) {
	f.asked = append(f.asked, options)
	if len(f.asked) == f.refusedAt {
		return metav1.ListMeta{}, errRefused
	}
	said := metav1.ListMeta{ResourceVersion: "77"}
	from, _ := strconv.Atoi(options.Continue) // empty: 0
	to := len(f.findings)
	if options.Limit > 0 && from+int(options.Limit) < to {
		to = from + int(options.Limit)
		said.Continue = strconv.Itoa(to)
	}
	for i := from; i < to; i++ {
		if err := each(&f.findings[i]); err != nil {
			return said, err
		}
		if len(f.asked) == f.breaksAt {
			return said, errBrokeOff
		}
	}
	return said, nil
}

func (f *fakeSource) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return watch.NewFake(), nil
}

func manyFindings(n int) *fakeSource {
	f := &fakeSource{}
	for i := range n {
		f.findings = append(f.findings, *finding(fmt.Sprintf("f-%05d", i), 10+i))
	}
	return f
}

// checkWhole fails unless the list has all of them, rendered.
func checkWhole(t *testing.T, got runtime.Object, n int) {
	t.Helper()
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
}

// Reflectors ask for a version that they know, and for a page; the model wants all as it is now. Without a
// version the API server would ask etcd for everything where its cache is behind.
func TestAListIsAskedForWholeAndOfTheCache(t *testing.T) {
	m, _ := newTestModel(t)
	from := manyFindings(2*pageSize + 1)
	got, err := newSource(from, m, findings).ListWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "0", Limit: 3})
	if err != nil {
		t.Fatal(err)
	}
	checkWhole(t, got, len(from.findings))
	want := []metav1.ListOptions{{Limit: 1}, {ResourceVersion: "77", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}}
	if diff := cmp.Diff(want, from.asked); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
}

// A list that takes longer than the API server gives a request would break off each time, and one that its
// cache is too old for would be refused.
func TestAListThatDoesNotComeWholeIsAskedForInPages(t *testing.T) {
	for _, c := range []struct {
		name string
		from fakeSource
		want error
	}{
		{"it breaks off", fakeSource{breaksAt: 2}, errBrokeOff},
		{"it is refused", fakeSource{refusedAt: 2}, errRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, _ := newTestModel(t)
			from := manyFindings(2*pageSize + 1)
			from.breaksAt, from.refusedAt = c.from.breaksAt, c.from.refusedAt
			s := newSource(from, m, findings)
			if _, err := s.ListWithContext(t.Context(), metav1.ListOptions{}); !errors.Is(err, c.want) {
				t.Fatalf("got %v", err)
			}
			got, err := s.ListWithContext(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			checkWhole(t, got, len(from.findings))
			want := []metav1.ListOptions{{Limit: pageSize}, {Limit: pageSize, Continue: "500"}, {Limit: pageSize, Continue: "1000"}}
			if diff := cmp.Diff(want, from.asked[2:]); diff != "" {
				t.Errorf("asked for (-want +got):\n%s", diff)
			}
		})
	}
}

// An API server that is not there says nothing about how long a list takes.
func TestAListThatCouldNotBeginIsAskedForWholeAgain(t *testing.T) {
	m, _ := newTestModel(t)
	from := manyFindings(1)
	from.refusedAt = 1
	s := newSource(from, m, findings)
	if _, err := s.ListWithContext(t.Context(), metav1.ListOptions{}); !errors.Is(err, errRefused) {
		t.Fatalf("got %v", err)
	}
	if _, err := s.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if last := from.asked[len(from.asked)-1]; last.Limit != 0 {
		t.Errorf("asked for %+v", last)
	}
}

func TestAListOfWhichAPageIsMissingIsNone(t *testing.T) {
	m, _ := newTestModel(t)
	from := manyFindings(pageSize + 1)
	s := newSource(from, m, findings)
	s.inPages, from.refusedAt = true, 2
	if _, err := s.ListWithContext(t.Context(), metav1.ListOptions{}); !errors.Is(err, errRefused) {
		t.Errorf("got %v", err)
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
