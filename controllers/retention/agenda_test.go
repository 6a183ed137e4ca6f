package retention

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/handlertest"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestOrganizationsAreReconciledWhenSomethingFinishes(t *testing.T) {
	asIs := func(*v1alpha1.Finding) {}
	opened := func(f *v1alpha1.Finding) { f.Spec.Closed = nil }
	labelled := func(f *v1alpha1.Finding) { f.Labels = map[string]string{"a": "b"} }
	cases := []struct {
		reason        string
		before, after *v1alpha1.Finding
		woke          bool
	}{
		{reason: "one that comes closed", after: finding(asIs), woke: true},
		{reason: "one that comes open", after: finding(opened)},
		{reason: "a closure", before: finding(opened), after: finding(asIs), woke: true},
		{reason: "what was owed is sent", before: finding(func(f *v1alpha1.Finding) { f.Status.EmittedSeq = 0 }), after: finding(asIs), woke: true},
		{reason: "a label on a closed one", before: finding(asIs), after: finding(labelled)},
		{reason: "a reopening", before: finding(asIs), after: finding(opened)},
		{reason: "a comment is taken back", before: finding(func(f *v1alpha1.Finding) { f.Spec.Triage.Comments = "x" }), after: finding(asIs), woke: true},
		{reason: "a removal", before: finding(asIs)},
		{reason: "not an organization's", after: builder.Finding("f").In("elsewhere").Closed(noon, "s").Build()},
	}
	for _, c := range cases {
		h, q := newAgenda().handler(time.Minute), &handlertest.Queue{}
		handlertest.Send(h, q, c.before, c.after)
		var want []string
		if c.woke {
			want = []string{"x in 1m0s"}
		}
		harness.Same(t, c.reason, want, q.Added)
	}
	q := &handlertest.Queue{}
	newAgenda().handler(time.Minute).Create(t.Context(), event.CreateEvent{Object: finding(asIs), IsInInitialList: true}, q)
	harness.Same(t, "at the start each organization is reconciled anyway", 0, len(q.Added))
}

// After any creations, changes and deletions, the due entries are those of a full scan, in order,
// and once everything is deleted the agenda is empty.
func TestTheAgendaIsThatOfAListOfEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, q := newAgenda(), &handlertest.Queue{}
		h := a.handler(time.Minute)
		existing := map[string]*v1alpha1.Finding{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"1", "2", "3", "4", "5"}).Draw(t, "name")
			before := existing[name]
			if before != nil && rapid.Bool().Draw(t, "delete") {
				delete(existing, name)
				if rapid.Bool().Draw(t, "by us") {
					if is, ok := entryOf(before); ok {
						a.forget(is.place, is.entry)
					}
				}
				handlertest.Send(h, q, before, nil)
				continue
			}
			after := finding(func(f *v1alpha1.Finding) {
				f.Name, f.UID = name, types.UID("of "+name)
				f.Spec.Closed.At = v1alpha1.NewTime(noon.Add(time.Duration(rapid.IntRange(-3, 3).Draw(t, "hours")) * time.Hour))
				if rapid.Bool().Draw(t, "open") {
					f.Spec.Closed = nil
				}
				f.Status.EmittedSeq = rapid.Int64Range(1, 2).Draw(t, "emitted")
			})
			existing[name] = after
			handlertest.Send(h, q, before, after)
		}
		from := place{"org-x", closedFindings}
		want := dueIn(existing, noon)
		var got []string
		for last := first; ; { // in pages of two
			page := a.due(from, last, noon, 2)
			if len(page) == 0 {
				break
			}
			for _, e := range page {
				got = append(got, e.name)
			}
			last = page[len(page)-1]
		}
		harness.Same(t, "due", want, got)
		reached := entry{at: noon.Unix() + 1} // before everything that finished later
		next, found := a.next(from, reached)
		later := dueIn(existing, noon.Add(100*time.Hour))[len(want):]
		if found != (len(later) > 0) || found && !next.Equal(existing[later[0]].Spec.Closed.At.Time) {
			t.Fatalf("next at %s (%t), want that of %v", next, found, later)
		}
		for _, f := range existing {
			handlertest.Send(h, q, f, nil)
		}
		if len(a.trees) > 0 {
			t.Fatalf("kept of nothing: %v", a.trees)
		}
	})
}

// dueIn returns the names of all due objects, oldest first.
func dueIn(existing map[string]*v1alpha1.Finding, cutoff time.Time) []string {
	var due []position
	for _, f := range existing {
		if is, ok := entryOf(client.Object(f)); ok && is.entry.at <= cutoff.Unix() {
			due = append(due, is)
		}
	}
	slices.SortFunc(due, func(a, b position) int { return compare(a.entry, b.entry) })
	var out []string
	for _, is := range due {
		out = append(out, is.entry.name)
	}
	return out
}
