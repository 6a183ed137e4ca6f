package kube

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// fakeSource lists findings, whole or page by page, as the API server does.
type fakeSource struct {
	findings []v1alpha1.Finding
	asked    []metav1.ListOptions
	// breaksAt is the number of the request whose response is truncated after its first object, and
	// refusedAt of one that fails; 0 for none.
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
	meta := metav1.ListMeta{ResourceVersion: "77"}
	from, _ := strconv.Atoi(options.Continue) // empty: 0
	to := len(f.findings)
	if options.Limit > 0 && from+int(options.Limit) < to {
		to = from + int(options.Limit)
		meta.Continue = strconv.Itoa(to)
	}
	for i := from; i < to; i++ {
		if err := each(&f.findings[i]); err != nil {
			return meta, err
		}
		if len(f.asked) == f.breaksAt {
			return meta, errBrokeOff
		}
	}
	return meta, nil
}

func (f *fakeSource) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return watch.NewFake(), nil
}

func manyFindings(n int) *fakeSource {
	f := &fakeSource{}
	for i := range n {
		f.findings = append(f.findings, *finding(fmt.Sprintf("f-%05d", i)))
	}
	return f
}

// checkWhole fails unless the list has all n findings, trimmed.
func checkWhole(t *testing.T, got runtime.Object, n int) {
	t.Helper()
	whole := got.(*List)
	if len(whole.Items) != n || whole.ResourceVersion != "77" || whole.Continue != "" {
		t.Fatalf("%d items of version %s, continue %q", len(whole.Items), whole.ResourceVersion, whole.Continue)
	}
	for i, item := range whole.Items {
		if trimmed, ok := item.(*v1alpha1.Finding); !ok || trimmed.Name != fmt.Sprintf("f-%05d", i) || trimmed.ManagedFields != nil {
			t.Fatalf("item %d is %T %+v", i, item, item)
		}
	}
}

func finding(name string) *v1alpha1.Finding {
	return &v1alpha1.Finding{ObjectMeta: metav1.ObjectMeta{Name: name, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}}}
}

func newListWatch(from Source) *ListWatch {
	kind, _ := KindOf(&v1alpha1.Finding{})
	return NewListWatch(ListWatchOptions{
		Kind: kind, From: from, Unreadables: NewUnreadables(logr.Discard(), nil),
		Trim: func(object Object) runtime.Object {
			object.SetManagedFields(nil)
			return object
		},
	})
}

// Reflectors request a version that they know, and a page; ListWatch lists the whole current state.
// Without a version the API server would read everything from etcd if its cache is behind.
func TestAListIsAskedForWholeAndOfTheCache(t *testing.T) {
	from := manyFindings(2*pageSize + 1)
	got, err := newListWatch(from).ListWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "0", Limit: 3})
	harness.Must(t, err)
	checkWhole(t, got, len(from.findings))
	want := []metav1.ListOptions{{Limit: 1}, {ResourceVersion: "77", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}}
	harness.Same(t, "asked for", want, from.asked)
}

// A list that exceeds the API server's request timeout would be truncated each time, and one that its
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
			from := manyFindings(2*pageSize + 1)
			from.breaksAt, from.refusedAt = c.from.breaksAt, c.from.refusedAt
			s := newListWatch(from)
			if _, err := s.ListWithContext(t.Context(), metav1.ListOptions{}); !errors.Is(err, c.want) {
				t.Fatalf("got %v", err)
			}
			got, err := s.ListWithContext(t.Context(), metav1.ListOptions{})
			harness.Must(t, err)
			checkWhole(t, got, len(from.findings))
			want := []metav1.ListOptions{{Limit: pageSize}, {Limit: pageSize, Continue: "500"}, {Limit: pageSize, Continue: "1000"}}
			harness.Same(t, "asked for", want, from.asked[2:])
		})
	}
}

// The API server may have been starting when the list did not arrive in one response.
func TestAListAfterOneThatCameInPagesIsAskedForWhole(t *testing.T) {
	from := manyFindings(2*pageSize + 1)
	s := newListWatch(from)
	s.inPages = true
	for range 2 {
		_, err := s.ListWithContext(t.Context(), metav1.ListOptions{})
		harness.Must(t, err)
	}
	harness.Same(t, "the limit of the last request", int64(0), from.asked[len(from.asked)-1].Limit)
}

// An unreachable API server does not show how long a list takes.
func TestAListThatCouldNotBeginIsAskedForWholeAgain(t *testing.T) {
	from := manyFindings(1)
	from.refusedAt = 1
	s := newListWatch(from)
	if _, err := s.ListWithContext(t.Context(), metav1.ListOptions{}); !errors.Is(err, errRefused) {
		t.Fatalf("got %v", err)
	}
	_, err := s.ListWithContext(t.Context(), metav1.ListOptions{})
	harness.Must(t, err)
	harness.Same(t, "the limit of the last request", int64(0), from.asked[len(from.asked)-1].Limit)
}

func TestAListOfWhichAPageIsMissingIsNone(t *testing.T) {
	from := manyFindings(pageSize + 1)
	s := newListWatch(from)
	s.inPages, from.refusedAt = true, 2
	if _, err := s.ListWithContext(t.Context(), metav1.ListOptions{}); !errors.Is(err, errRefused) {
		t.Errorf("got %v", err)
	}
}
