package dataset

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func TestTheSameIsMadeEveryTime(t *testing.T) {
	options := Options{Namespace: "org-a", Findings: 300, Reviews: 60, Now: noon}
	one, two := New(options), New(options)
	if diff := cmp.Diff(one.Repositories, two.Repositories) + cmp.Diff(one.Projects, two.Projects) +
		cmp.Diff(one.Reviews, two.Reviews) + cmp.Diff(one.Issues, two.Issues); diff != "" {
		t.Error(diff)
	}
	for i := range options.Findings {
		if diff := cmp.Diff(one.Finding(i), two.Finding(i)); diff != "" {
			t.Fatalf("finding %d: %s", i, diff)
		}
	}
}

func TestAFindingIsOfRealisticSize(t *testing.T) {
	d := New(Options{Namespace: "org-a", Findings: 2_000, Now: noon})
	sum, names := 0, map[string]bool{}
	for i := range d.Findings() {
		f := d.Finding(i)
		names[f.Name] = true
		f.ManagedFields = nil
		sum += len(encode(f))
	}
	mean := sum / d.Findings()
	t.Logf("%d bytes without managed fields, on average", mean)
	if mean < 2_500 || mean > 3_500 {
		t.Errorf("a finding has %d bytes without managed fields; about 3,000 are wanted", mean)
	}
	if len(names) != d.Findings() {
		t.Errorf("%d findings have %d names", d.Findings(), len(names))
	}
}

func TestNobodyHasDecidedAboutTheUndecided(t *testing.T) {
	d := New(Options{Namespace: "org-a", Findings: 300, Now: noon, Undecided: true})
	for i := range d.Findings() {
		if f := d.Finding(i); !findingstate.VerdictCounts(f) || f.Spec.Closed != nil || len(f.Status.Transitions) != 1 {
			t.Fatalf("finding %d is decided about: %+v, %+v", i, f.Spec, f.Status)
		}
	}
}
