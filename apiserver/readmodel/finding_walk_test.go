package readmodel

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// walkAll reads a complete walk; between is called for each finding.
func walkAll(t *rapid.T, m *Model, q FindingQuery, between func()) (all []string) {
	for item, err := range m.walkFindings(acme, q, rapid.IntRange(1, 4).Draw(t, "page")) {
		harness.Must(t, err)
		all = append(all, item.ID)
		between()
	}
	return all
}

// Whatever is written between the pages, findings that show no change are yielded exactly once, in order, and no
// finding is yielded twice.
func TestAWalkRepeatsNothingAndHidesNothingThatStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, _ := newAcme(t)
		held := map[string]*v1alpha1.Finding{}
		rv := 10
		for _, prefix := range []string{"stable", "volatile"} {
			for i := range rapid.IntRange(0, 10).Draw(t, prefix) {
				rv++
				f := finding(fmt.Sprintf("%s-%d", prefix, i), rv)
				drawSpec(t, f)
				held[f.Name] = f
				feed(t, m, findings, f)
			}
		}
		settle(m)
		q := drawQuery(t)
		if rapid.Bool().Draw(t, "all") {
			q.Filter = FindingFilter{}
		}
		stable := func(all []string) []string {
			return slices.DeleteFunc(slices.Clone(all), func(id string) bool { return !strings.HasPrefix(id, "stable") })
		}
		want := stable(walkAll(t, m, q, func() {}))

		got := walkAll(t, m, q, func() {
			for range rapid.IntRange(0, 3).Draw(t, "writes") {
				rv++
				prefix := rapid.SampledFrom([]string{"stable", "volatile"}).Draw(t, "of")
				before := held[fmt.Sprintf("%s-%d", prefix, rapid.IntRange(0, 12).Draw(t, "which"))]
				if before == nil { // a new one
					feed(t, m, findings, finding(fmt.Sprintf("new-%d", rv), rv))
					continue
				}
				if prefix == "stable" {
					feed(t, m, findings, noted(before, rv))
					continue
				}
				f := finding(before.Name, rv, generation(int64(rv)))
				drawSpec(t, f)
				f.Spec.DetectedAt = before.Spec.DetectedAt // which never changes
				feed(t, m, findings, f)
			}
			settle(m)
		})
		if !slices.Equal(stable(got), want) {
			t.Fatalf("%+v: got %v, want %v", q, stable(got), want)
		}
		slices.Sort(got)
		if len(slices.Compact(slices.Clone(got))) != len(got) {
			t.Fatalf("%+v: some are there twice: %v", q, got)
		}
	})
}

// noted returns the finding after a write that it does not show: a controller notes the events that it has sent.
func noted(f *v1alpha1.Finding, rv int) *v1alpha1.Finding {
	f = f.DeepCopy()
	f.ResourceVersion, f.Status.EmittedSeq = fmt.Sprint(rv), int64(rv)
	return f
}

func TestAWalkEndsWithItsOrganizationAndWithItsReader(t *testing.T) {
	m, _ := newTestModel(t)
	owner := organization(acme, acmeNamespace, 1)
	feed(t, m, organizations, owner)
	for i := range 9 {
		feed(t, m, findings, finding(fmt.Sprintf("f-%d", i), i+10))
	}
	settle(m)
	read := 0
	for _, err := range m.walkFindings(acme, FindingQuery{}, 2) {
		harness.Must(t, err)
		if read++; read == 3 {
			break
		}
	}
	harness.Same(t, "findings that were read before the reader stopped", 3, read)
	var last error
	for _, err := range m.walkFindings(acme, FindingQuery{}, 2) {
		last = err
		feedDeletion(t, m, organizations, organization(acme, acmeNamespace, 100))
		settle(m)
	}
	if !errors.Is(last, ErrNoOrganization) {
		t.Errorf("the walk ends with %v", last)
	}
}

// One that moves ahead of the position is read there.
func TestAWalkRepeatsNoFindingThatChangesBehindItsPosition(t *testing.T) {
	m, _ := newAcme(t)
	show(t, m, findings, finding("f-1", 11), finding("f-2", 12))
	var ids []string
	query := FindingQuery{Request: index.Request{Sort: SortUpdatedAt, Order: index.OrderAsc}}
	for item, err := range m.walkFindings(acme, query, 1) {
		harness.Must(t, err)
		if ids = append(ids, item.ID); len(ids) == 1 {
			later := func(f *v1alpha1.Finding) {
				f.Status.ObservedGeneration, f.Status.UpdatedAt = 1, new(v1alpha1.NewTime(epoch.Add(time.Minute)))
			}
			show(t, m, findings, finding("f-1", 13, later), finding("f-2", 14, later))
		}
	}
	harness.Same(t, "the findings of the walk", []string{"f-1", "f-2"}, ids)
}

func TestToolsAreThoseOfTheFindingsThatThereAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, items := drawModel(t)
		want := []string{}
		for _, item := range items {
			want = append(want, item.traits.Value().tool)
		}
		slices.Sort(want)
		if got, err := m.FindingTools(acme); err != nil || !slices.Equal(got, slices.Compact(want)) {
			t.Fatalf("got %q, %v, want %q", got, err, want)
		}
	})
}
