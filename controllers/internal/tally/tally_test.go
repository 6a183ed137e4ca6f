package tally_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/tally"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/handlertest"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// byCategory counts findings by project and category.
func byCategory(object client.Object) tally.Share {
	f := object.(*v1alpha1.Finding)
	return tally.Share{Owner: owner(string(f.Spec.ProjectRef.Name)), Class: string(f.Spec.Category)}
}

func owner(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "ns", Name: name}
}

func finding(project string, category v1alpha1.FindingCategory) *v1alpha1.Finding {
	return named("f", project, category)
}

func named(name, project string, category v1alpha1.FindingCategory) *v1alpha1.Finding {
	return builder.Finding(name).In("ns").Project("repo", project).Tool("x", category).Build()
}

func TestOnlyOwnersWhoseSumsChangeAreReconciledAndLater(t *testing.T) {
	cases := []struct {
		reason        string
		before, after *v1alpha1.Finding
		want          []string
	}{
		{reason: "a new finding", after: finding("a", "Code"), want: []string{"a in 1s"}},
		{reason: "a triage changes no sum", before: finding("a", "Code"), after: finding("a", "Code")},
		{reason: "another category", before: finding("a", "Code"), after: finding("a", "Secret"), want: []string{"a in 1s"}},
		{reason: "both the new owner and the old", before: finding("a", "Code"), after: finding("b", "Code"),
			want: []string{"b in 1s", "a in 1s"}},
		{reason: "a removal", before: finding("a", "Code"), want: []string{"a in 1s"}},
	}
	for _, c := range cases {
		handler, q := tally.New(byCategory).Handler(), &handlertest.Queue{}
		if c.before != nil { // at the start each owner is reconciled anyhow
			handler.Create(t.Context(), event.CreateEvent{Object: c.before, IsInInitialList: true}, q)
		}
		handlertest.Send(handler, q, c.before, c.after)
		harness.Same(t, c.reason, c.want, q.Added)
	}
}

// After any creations, changes and deletions, the sums equal a count of the existing objects.
func TestSumsAreThoseOfACountUnderAnyChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sums := tally.New(byCategory)
		handler, q := sums.Handler(), &handlertest.Queue{}
		there := map[string]*v1alpha1.Finding{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"1", "2", "3", "4"}).Draw(t, "name")
			before := there[name]
			if before != nil && rapid.Bool().Draw(t, "delete") {
				delete(there, name)
				gone := before
				if rapid.Bool().Draw(t, "unreadable") { // the deletion lacks the object's content
					gone = builder.Finding(name).In("ns").Build()
				}
				handlertest.Send(handler, q, gone, nil)
				continue
			}
			after := named(name,
				rapid.SampledFrom([]string{"a", "b"}).Draw(t, "project"),
				rapid.SampledFrom([]v1alpha1.FindingCategory{"", "Code", "Secret"}).Draw(t, "category"))
			there[name] = after
			handlertest.Send(handler, q, before, after)
		}
		want := map[tally.Share]int32{}
		total := map[string]int32{}
		for _, f := range there {
			share := byCategory(f)
			want[share]++
			total[share.Owner.Name]++
		}
		for _, project := range []string{"a", "b"} {
			if got := sums.Total(owner(project)); got != total[project] {
				t.Fatalf("total of %s is %d, want %d", project, got, total[project])
			}
			for _, class := range []string{"", "Code", "Secret"} {
				share := tally.Share{Owner: owner(project), Class: class}
				if got := sums.Count(share.Owner, class); got != want[share] {
					t.Fatalf("%v is %d, want %d", share, got, want[share])
				}
			}
		}
	})
}
