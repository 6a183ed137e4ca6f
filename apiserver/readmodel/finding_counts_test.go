package readmodel

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// asking sets the filter for the parameter of that name.
func asking(t *rapid.T, f FindingFilter, name, value string) FindingFilter {
	texts := map[string]**string{
		"status": &f.Status, "user_status": &f.UserStatus, "severity": &f.Severity, "repo_id": &f.RepoID,
		"project_id": &f.ProjectID, "owner": &f.Owner, "class": &f.Class, "tool": &f.Tool, "category": &f.Category,
		"rule": &f.Rule, "vulnerability": &f.Vulnerability, "package": &f.Package, "policy": &f.Policy, "file": &f.File,
	}
	is := value == "true"
	switch name {
	case "min_score":
		tenths, _ := findingquery.Tenths(value)
		f.MinScore = &tenths
	case "stale":
		f.Stale = &is
	case "suppressed":
		f.Suppressed = &is
	case "created_since":
		since, err := time.Parse(time.RFC3339, value)
		harness.Must(t, err)
		f.Created.Since = &since
	default:
		if texts[name] == nil {
			t.Fatalf("findings are counted by %q: add it to asking, which sets a filter by its name", name)
		}
		*texts[name] = &value
	}
	return f
}

func count(t *rapid.T, m *Model, q CountQuery) FindingCounts {
	counts, err := m.CountFindings(t.Context(), acme, q)
	harness.Must(t, err)
	return counts
}

func TestEachCountIsWhatAListWithTheValueShows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, items := drawModel(t)
		filter := drawFilter(t)
		field := rapid.SampledFrom([]string{"", fileField}).Draw(t, "field")
		counts := count(t, m, CountQuery{Filter: filter, Field: field, Values: 100})
		if want := len(naive(items, FindingQuery{Filter: filter})); counts.Total != want {
			t.Fatalf("%+v: %d findings in all, want %d", filter, counts.Total, want)
		}
		for _, field := range counts.Fields {
			if field.Distinct != len(field.Values) {
				t.Fatalf("%s: %d values of %d", field.Name, len(field.Values), field.Distinct)
			}
			for _, v := range field.Values {
				want := len(naive(items, FindingQuery{Filter: asking(t, filter, field.Name, v.Value)}))
				if v.Count != want {
					t.Fatalf("%+v: %s=%s: counted %d, want %d", filter, field.Name, v.Value, v.Count, want)
				}
			}
		}
	})
}

// The counts of a field of which every finding has one value add up to the total.
func TestNoValueIsForgotten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, items := drawModel(t)
		filter := drawFilter(t)
		for name, open := range map[string]func(*FindingFilter){
			"status":     func(f *FindingFilter) { f.Status = nil },
			"severity":   func(f *FindingFilter) { f.Severity = nil },
			"stale":      func(f *FindingFilter) { f.Stale = nil },
			"project_id": func(f *FindingFilter) { f.ProjectID = nil },
		} {
			without := filter
			open(&without)
			sum := 0
			for _, v := range count(t, m, CountQuery{Filter: filter, Field: name, Values: 100}).Fields[0].Values {
				sum += v.Count
			}
			if want := len(naive(items, FindingQuery{Filter: without})); sum != want {
				t.Fatalf("%+v: the counts of %s are %d together, want %d", filter, name, sum, want)
			}
		}
	})
}

// Counts follow every change of findings; without a change the table is not scanned for samples again.
func TestCountsFollowWhatChanges(t *testing.T) {
	m, clock := newAcme(t)
	statuses := func() (counts []ValueCount) {
		settle(m)
		counted, err := m.CountFindings(t.Context(), acme, CountQuery{Field: "user_status", Values: 10})
		harness.Must(t, err)
		return counted.Fields[0].Values
	}
	feed(t, m, findings, finding("f-1", 10), finding("f-2", 11))
	open := []ValueCount{{"open", 2}}
	harness.Same(t, "at first", open, statuses())
	table := &(*m.visible.Load())[acme].table
	samples := &table.samples[byKind][0]
	feed(t, m, repositories, repository("other", 12))
	if got := statuses(); !slices.Equal(got, open) || &table.samples[byKind][0] != samples {
		t.Errorf("after a change of something else: %v, or looked through anew", got)
	}
	feed(t, m, findings, finding("f-2", 13, muted))
	harness.Same(t, "after a change", []ValueCount{{"muted", 1}, {"open", 1}}, statuses())
	since := func() FindingCounts {
		counted, err := m.CountFindings(t.Context(), acme, CountQuery{Field: "created_since", Values: 10})
		harness.Must(t, err)
		return counted
	}
	today := since().Fields[0].Distinct
	clock.Step(36 * time.Hour)
	harness.Same(t, "bounds that hold the findings, after a day", today-1, since().Fields[0].Distinct)
}

func TestWhatNoFindingIsLikeAnyMoreIsForgotten(t *testing.T) {
	m, _ := newAcme(t)
	var all []metav1.Object
	for n := range 3 * maxUnused {
		all = append(all, finding(fmt.Sprintf("f-%d", n), 10+n, func(f *v1alpha1.Finding) {
			f.Spec.Class = fmt.Sprintf("CWE-%d", n)
		}))
	}
	classes := func() int {
		settle(m)
		counted, err := m.CountFindings(t.Context(), acme, CountQuery{Field: "class", Values: 1})
		harness.Must(t, err)
		return counted.Fields[0].Distinct
	}
	numbers := func() int { return (*m.visible.Load())[acme].table.numbers.given[byClass] }
	feed(t, m, findings, all...)
	if got := classes(); got != len(all) || numbers() != len(all) {
		t.Fatalf("%d classes of %d, in %d numbers", got, len(all), numbers())
	}
	for _, gone := range all[2:] {
		feedDeletion(t, m, findings, gone)
	}
	if got := classes(); got != 2 || numbers() != 2 {
		t.Errorf("%d classes are left of 2, in %d numbers", got, numbers())
	}
	feed(t, m, findings, finding("f-new", 10*len(all)))
	if got := classes(); got != 3 || numbers() != 3 {
		t.Errorf("%d classes with another, in %d numbers", got, numbers())
	}
}

// The table does not grow for an organization that nobody counts, either.
func TestNumbersAreBoundedWhereNobodyCounts(t *testing.T) {
	m, _ := newAcme(t)
	for n := range 3 * maxUnused {
		feed(t, m, findings, finding("f-1", 10+n, func(f *v1alpha1.Finding) { f.Spec.Class = fmt.Sprintf("CWE-%d", n) }))
		if n%maxUnused == 0 {
			settle(m)
		}
	}
	settle(m)
	view := (*m.visible.Load())[acme]
	view.catchUp()
	if got := view.table.numbers.total(); got > 2*maxUnused {
		t.Errorf("one finding has %d numbers", got)
	}
	counted, err := m.CountFindings(t.Context(), acme, CountQuery{Field: "class", Values: 9})
	if want := fmt.Sprintf("CWE-%d", 3*maxUnused-1); err != nil || counted.Fields[0].Values[0] != (ValueCount{want, 1}) {
		t.Errorf("got %+v, %v; want %s", counted.Fields, err, want)
	}
}

// Findings of one group are counted by one of them, so findings that differ only in their policy must be in
// different groups.
func TestFindingsThatDifferInTheirPolicyAloneAreCountedApart(t *testing.T) {
	m, _ := newAcme(t)
	for i, policy := range []v1alpha1.ResourceName{"mute-a", "mute-b", "mute-b", ""} {
		feed(t, m, findings, finding(fmt.Sprint("f-", i), i+10, func(f *v1alpha1.Finding) {
			f.Spec.Suppression = &v1alpha1.FindingSuppression{Kind: v1alpha1.SuppressionInSource}
			f.Status.Verdict = &v1alpha1.FindingVerdict{Policy: policy, UserStatus: "muted"}
		}))
	}
	settle(m)
	counts, err := m.CountFindings(t.Context(), acme, CountQuery{Field: "policy", Values: 9})
	harness.Must(t, err)
	want := []FieldCounts{{Name: "policy", Values: []ValueCount{{"mute-b", 2}, {"mute-a", 1}}, Distinct: 2}}
	harness.Same(t, "counts by policy", want, counts.Fields)
}

// All findings of an hour are counted by one of them, unless the filter begins within that hour.
func TestAFilterThatBeginsWithinAnHourIsEvaluatedPerFinding(t *testing.T) {
	m, _ := newAcme(t)
	for i := range 2 {
		feed(t, m, findings, finding(fmt.Sprint("f-", i), i+10, func(f *v1alpha1.Finding) {
			f.Spec.DetectedAt = new(v1alpha1.NewTime(epoch.Add(time.Duration(i) * time.Minute)))
		}))
	}
	settle(m)
	filter := FindingFilter{Created: Period{Since: new(epoch.Add(time.Minute))}}
	counts, err := m.CountFindings(t.Context(), acme, CountQuery{Filter: filter, Field: "status", Values: 9})
	harness.Must(t, err)
	harness.Same(t, "findings of the hour that match", 1, counts.Total)
}

func TestTheGreatestCountsAreTold(t *testing.T) {
	var counts []ValueCount
	for n := range 30 {
		counts = append(counts, ValueCount{"v" + strconv.Itoa(n), n % 10})
	}
	values := greatest(counts, 4)
	want := []ValueCount{{"v19", 9}, {"v29", 9}, {"v9", 9}, {"v18", 8}}
	harness.Same(t, "values", want, values)
}
