package readmodel

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// drawFinding draws from few values, so that ties, moves and combinations are common.
func drawFinding(t *rapid.T, rv int) *v1alpha1.Finding {
	f := finding(rapid.SampledFrom([]string{"a", "b", "b.c", "b-c", "d", "e", "f", "g", "h"}).Draw(t, "name"), rv)
	f.Generation = int64(rv)
	drawSpec(t, f)
	return f
}

func drawSpec(t *rapid.T, f *v1alpha1.Finding) {
	at := func(label string) *v1alpha1.Time {
		when := v1alpha1.NewTime(epoch.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, label)) * time.Second))
		return &when
	}
	f.Spec.DetectedAt = at("detected")
	f.Status.ObservedGeneration, f.Status.UpdatedAt = f.Generation, at("updated")
	f.Spec.RepositoryRef.Name = v1alpha1.ResourceName(rapid.SampledFrom([]string{"shop", "blog"}).Draw(t, "repo"))
	f.Spec.ProjectRef.Name = v1alpha1.ResourceName(rapid.SampledFrom([]string{"api", "web"}).Draw(t, "project"))
	f.Spec.Class = rapid.SampledFrom([]string{"", "CWE-79", "CWE-89"}).Draw(t, "class")
	f.Spec.Details.Severity = rapid.SampledFrom([]v1alpha1.Level{"high", "low"}).Draw(t, "severity")
	f.Spec.Triage.UserStatus = rapid.SampledFrom([]v1alpha1.UserStatus{"open", "active", "muted"}).Draw(t, "user status")
	if rapid.IntRange(0, 3).Draw(t, "closed") == 0 {
		f.Spec.Closed = &v1alpha1.FindingClosure{At: v1alpha1.NewTime(epoch)}
	}
}

func drawFilter(t *rapid.T) FindingFilter {
	maybe := func(label string, values ...string) *string {
		value := rapid.SampledFrom(append(values, "-", "-")).Draw(t, label)
		if value == "-" {
			return nil
		}
		return &value
	}
	return FindingFilter{
		Status:     maybe("filter status", "open", "open_muted", "closed"),
		UserStatus: maybe("filter user status", "open", "active", "muted"),
		Severity:   maybe("filter severity", "high", "low"),
		RepoID:     maybe("filter repo", "shop", "blog", "none"),
		ProjectID:  maybe("filter project", "api", "web"),
		Class:      maybe("filter class", "", "CWE-79", "CWE-89"),
	}
}

// naive is what a list must hold: every item that matches, sorted.
func naive(items map[string]*Item, q FindingQuery) []string {
	var rows []*Item
	for _, i := range items {
		f := q.Filter
		if matches(f.Status, i.Status) && matches(f.UserStatus, i.UserStatus) && matches(f.Severity, i.Severity) &&
			matches(f.RepoID, i.RepoID) && matches(f.ProjectID, i.ProjectID) && matches(f.Class, i.Class) {
			rows = append(rows, i)
		}
	}
	slices.SortFunc(rows, func(a, b *Item) int {
		value := func(i *Item) string {
			if q.Sort == SortUpdatedAt {
				return i.UpdatedAt
			}
			return i.CreatedAt
		}
		order := strings.Compare(value(a)+" "+a.ID, value(b)+" "+b.ID)
		if q.Order == OrderDesc {
			return -order
		}
		return order
	})
	return ids(rows)
}

func drawQuery(t *rapid.T) FindingQuery {
	return FindingQuery{
		Sort:   rapid.SampledFrom([]Sort{SortCreatedAt, SortUpdatedAt}).Draw(t, "sort"),
		Order:  rapid.SampledFrom([]Order{OrderAsc, OrderDesc}).Draw(t, "order"),
		Filter: drawFilter(t),
	}
}

// walk reads all pages, with sizes that change on the way, and checks each envelope.
func walk(t *rapid.T, m *Model, q FindingQuery, between func()) (all []string) {
	for {
		q.Limit.Size = rapid.IntRange(1, 4).Draw(t, "size")
		page, err := m.ListFindings(acme, q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Items) > q.Limit.Size || page.HasMore && len(page.Items) != q.Limit.Size || !page.HasMore && page.Next != (Position{}) {
			t.Fatalf("a page of %d items for size %d, has_more %t, next %v", len(page.Items), q.Limit.Size, page.HasMore, page.Next)
		}
		all = append(all, ids(page.Items)...)
		if !page.HasMore {
			return all
		}
		next := page.Next
		q.After = &next
		between()
	}
}

func TestListsAgreeWithANaiveReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, _ := newTestModel(t)
		feed(t, m, organizations, organization(acme, acmeNamespace, 1))
		held := map[string]*v1alpha1.Finding{}
		var past []func()
		for rv := range rapid.IntRange(1, 40).Draw(t, "writes") {
			past = append(past, drawWrite(t, m, held, rv+10))
			if rapid.IntRange(0, 3).Draw(t, "again") == 0 {
				// Late and repeated events and lists say nothing new.
				rapid.SampledFrom(past).Draw(t, "late")()
			}
		}
		settle(t, m)
		items := map[string]*Item{}
		for name := range held {
			item, ok := m.Finding(acme, name)
			if !ok {
				t.Fatalf("%s is not there", name)
			}
			items[name] = item
		}
		for range 4 {
			q := drawQuery(t)
			want := naive(items, q)
			if got := walk(t, m, q, func() {}); !slices.Equal(got, want) {
				t.Fatalf("%+v: got %v, want %v", q, got, want)
			}
			q.Limit.Size = 1
			if page, _ := m.ListFindings(acme, q); page.Total != len(want) {
				t.Fatalf("%+v: total is %d, want %d", q, page.Total, len(want))
			}
		}
	})
}

// drawWrite writes to the model and to held, and returns what says the same again: the event,
// or the list that was true then.
func drawWrite(t *rapid.T, m *Model, held map[string]*v1alpha1.Finding, rv int) (again func()) {
	f := drawFinding(t, rv)
	f.UID = freshUID(rv) // deleted and made again under its name, it is another object
	if before := held[f.Name]; before != nil {
		f.UID = before.UID
	}
	var event func()
	if held[f.Name] != nil && rapid.IntRange(0, 3).Draw(t, "delete") == 0 {
		delete(held, f.Name)
		event = func() { feedDeletion(t, m, findings, f) }
	} else {
		held[f.Name] = f
		event = func() { feed(t, m, findings, f) }
	}
	var all []metav1.Object
	for _, object := range held {
		all = append(all, object)
	}
	list := func() {
		if err := m.replace(findings, all, fmt.Sprint(rv)); err != nil {
			t.Fatal(err)
		}
	}
	messages := []func(){event, list, func() { list(); event() }, func() { event(); list() }}
	message := rapid.SampledFrom(messages).Draw(t, "told by")
	message()
	return message
}

// Whatever is written between the pages, rows that do not change are returned exactly once,
// and in order.
func TestWalkRepeatsAndHidesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, _ := newTestModel(t)
		feed(t, m, organizations, organization(acme, acmeNamespace, 1))
		rv := 10
		for i := range rapid.IntRange(0, 12).Draw(t, "rows") {
			rv++
			f := finding(fmt.Sprintf("stable-%d", i), rv)
			drawSpec(t, f)
			feed(t, m, findings, f)
		}
		settle(t, m)
		q := drawQuery(t)
		q.Limit.Size = 1000
		page, _ := m.ListFindings(acme, q)
		want := ids(page.Items)

		got := walk(t, m, q, func() {
			for range rapid.IntRange(0, 3).Draw(t, "writes") {
				rv++
				if f := drawFinding(t, rv); rapid.Bool().Draw(t, "delete") {
					f.UID = ""
					feedDeletion(t, m, findings, f)
				} else {
					f.UID = freshUID(rv)
					feed(t, m, findings, f)
				}
			}
			settle(t, m)
		})
		stable := slices.DeleteFunc(got, func(id string) bool { return !strings.HasPrefix(id, "stable-") })
		if !slices.Equal(stable, want) {
			t.Fatalf("%+v: %s", q, cmp.Diff(want, stable))
		}
	})
}

func findingIndex(items ...*Item) *index[*Item] {
	x := newIndex(findingLayout)
	for _, i := range items {
		x.put(i.ID, i)
	}
	return x
}

func TestAbsentValueComesBeforeAll(t *testing.T) {
	x := findingIndex(testItem("dated", "2026-03-01T12:00:00Z", "", ""), testItem("undated", "", "", ""))
	for order, want := range map[Order][]string{OrderAsc: {"undated", "dated"}, OrderDesc: {"dated", "undated"}} {
		first := listFindings(x, FindingQuery{Order: order, Limit: Limit{Size: 1}})
		second := listFindings(x, FindingQuery{Order: order, Limit: Limit{Size: 1}, After: &first.Next})
		if diff := cmp.Diff(want, append(ids(first.Items), ids(second.Items)...)); diff != "" {
			t.Errorf("%s: %s", order, diff)
		}
	}
}

func TestDefaults(t *testing.T) {
	page := listFindings(findingIndex(
		testItem("old", "2026-03-01T12:00:00Z", "2026-03-01T12:00:02Z", ""),
		testItem("new", "2026-03-01T12:00:01Z", "2026-03-01T12:00:01Z", ""),
	), FindingQuery{})
	if diff := cmp.Diff([]string{"new"}, ids(page.Items)); diff != "" || !page.HasMore || page.Total != 2 {
		t.Errorf("one item by created_at, the newest first: got %+v", page)
	}
}

func TestSnapshotStaysAsItWas(t *testing.T) {
	x := findingIndex()
	for i := range 500 {
		id := fmt.Sprintf("%03d", i)
		x.put(id, testItem(id, "", "", "open"))
	}
	before := x.snapshot()
	queries := []FindingQuery{{Limit: Limit{Size: 1000}, Sort: SortCreatedAt}, {Limit: Limit{Size: 1000}, Sort: SortUpdatedAt}}
	want := ids(listFindings(before, queries[0]).Items)
	for i := range 500 {
		if id := fmt.Sprintf("%03d", i); i%2 == 0 {
			x.remove(id)
		} else {
			x.put(id, testItem(id, "2026-03-01T12:00:00Z", "", "closed"))
		}
	}
	open := "open"
	for _, q := range queries {
		q.Filter.Status = &open
		if got := listFindings(before, q); !slices.Equal(ids(got.Items), want) || got.Total != 500 {
			t.Errorf("by %s the snapshot has %d of 500 items left, total %d", q.Sort, len(got.Items), got.Total)
		}
	}
}
