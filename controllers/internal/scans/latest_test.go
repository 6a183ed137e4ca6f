package scans_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/scans"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/handlertest"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// drawScan returns any state of a scan.
func drawScan(t *rapid.T, name string) *v1alpha1.Scan {
	second := func(label string) time.Time {
		return noon.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, label)) * time.Second)
	}
	b := builder.Scan(name, second("started")).In("ns")
	switch rapid.IntRange(0, 5).Draw(t, "state") {
	case 0:
		b.Ended(second("completed"), v1alpha1.ScanSucceeded)
	case 1:
		b.Ended(second("completed"), v1alpha1.ScanFailed)
	case 2:
		b.OfPullRequest("r-1", 7).Ended(second("completed"), v1alpha1.ScanSucceeded)
	case 3: // a refused upload
		b.Mutate(func(s *v1alpha1.Scan) { s.Spec.Upload = &v1alpha1.ScanUpload{} }).Ended(second("completed"), v1alpha1.ScanFailed)
	}
	return b.Build()
}

// After any creations, changes and deletions, also during a list, the last scans are those of a list.
func TestTheLatestScansAreThoseOfAListUnderAnyChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		there := map[string]*v1alpha1.Scan{}
		counted := func() (list []v1alpha1.Scan) {
			for _, name := range slices.Sorted(maps.Keys(there)) {
				if there[name].Uncounted() == "" {
					list = append(list, *there[name])
				}
			}
			return list
		}
		listed := func() {}
		reader := handlertest.Lists(func(list *v1alpha1.ScanList) {
			list.Items = counted()
			listed()
		})
		latest := scans.NewLatest(reader, "field", func(s *v1alpha1.Scan) v1alpha1.ResourceName { return s.Spec.ProjectRef.Name })
		handler, q := latest.Handler(), &handlertest.Queue{}
		change := func() {
			name := rapid.SampledFrom([]string{"1", "2", "3", "4"}).Draw(t, "name")
			before := there[name]
			if before == nil || rapid.Bool().Draw(t, "keep") {
				there[name] = drawScan(t, name)
				handlertest.Send(handler, q, before, there[name])
				return
			}
			delete(there, name)
			if rapid.Bool().Draw(t, "unreadable") { // the deletion lacks the object's content
				before = builder.Scan(name, noon).In("ns").Project("", "").Build()
			}
			handlertest.Send(handler, q, before, nil)
		}
		owner := builder.Project("proj").In("ns").Build()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			change()
			if rapid.Bool().Draw(t, "list meanwhile") {
				listed = change
				_, _, err := latest.Of(t.Context(), owner)
				harness.Must(t, err)
				listed = func() {}
			}
			started, succeeded, err := latest.Of(t.Context(), owner)
			harness.Must(t, err)
			harness.Same(t, "last started", scans.LastStarted(counted()), started)
			harness.Same(t, "last to succeed", scans.LastSuccess(counted()), succeeded)
		}
	})
}
