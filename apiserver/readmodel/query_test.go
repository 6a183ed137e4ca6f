package readmodel

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
	"github.com/appsec-dev/findings-operator/test/harness"
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
	f.Spec.Details.Severity = rapid.SampledFrom([]v1alpha1.Level{"high", "medium", "low"}).Draw(t, "severity")
	f.Spec.Triage.UserStatus = rapid.SampledFrom([]v1alpha1.UserStatus{"open", "active", "muted"}).Draw(t, "user status")
	if rapid.IntRange(0, 3).Draw(t, "closed") == 0 {
		f.Spec.Closed = &v1alpha1.FindingClosure{At: v1alpha1.NewTime(epoch)}
	}
	drawTraits(t, &f.Spec)
	// The verdict applies if nobody has decided and the finding is not closed.
	if from := rapid.SampledFrom([]string{"", "", "mute-a", "mute-b", "an issue"}).Draw(t, "verdict"); from == "an issue" {
		f.Status.Verdict = &v1alpha1.FindingVerdict{ReviewIssue: "mute-a", UserStatus: "muted"}
	} else if from != "" {
		f.Status.Verdict = &v1alpha1.FindingVerdict{Policy: v1alpha1.ResourceName(from), UserStatus: "muted"}
	}
}

// drawTraits draws the filterable fields beyond the documented shapes.
func drawTraits(t *rapid.T, spec *v1alpha1.FindingSpec) {
	spec.Tool = rapid.SampledFrom([]string{"", "gosec", "trivy"}).Draw(t, "tool")
	spec.RuleID = rapid.SampledFrom([]string{"", "G1", "G2"}).Draw(t, "rule")
	spec.Category = rapid.SampledFrom([]v1alpha1.FindingCategory{"", "Code", "Package"}).Draw(t, "category")
	if rapid.Bool().Draw(t, "suppressed") {
		spec.Suppression = &v1alpha1.FindingSuppression{Kind: v1alpha1.SuppressionInSource}
	}
	if rapid.Bool().Draw(t, "stale") { // if it has a decision and its severity is high
		spec.Triage.Basis = "severity=low"
	}
	spec.Details.Score = rapid.SampledFrom([]string{"", "0.0", "7.0", "9.8"}).Draw(t, "score")
	spec.Details.Title = rapid.SampledFrom([]string{"SQL injection", "Path Traversal"}).Draw(t, "title")
	if path := rapid.SampledFrom([]string{"", "src/SQL.go", "web/a.js", "web/"}).Draw(t, "path"); path != "" {
		spec.Details.Location = &v1alpha1.FileLocation{FilePath: path}
	}
	if id := rapid.SampledFrom([]string{"", "CVE-1", "CVE-2", "cve-1", "CVE-1\nCVE-1"}).Draw(t, "vulnerability"); id != "" {
		aliases := rapid.SampledFrom([][]string{nil, {"GHSA-1"}, {"CVE-1", "GHSA-1"}}).Draw(t, "aliases")
		spec.Vulnerability = &v1alpha1.FindingVulnerability{ID: id, Aliases: aliases}
	}
	if name := rapid.SampledFrom([]string{"", "lodash", "Lodash", "PKG:npm/lodash"}).Draw(t, "package"); name != "" {
		purl := rapid.SampledFrom([]string{"", "pkg:npm/lodash@1", "pkg:npm/lodash@2"}).Draw(t, "purl")
		spec.Package = &v1alpha1.FindingPackage{Name: name, PURL: purl}
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
	// Usually two or three of these filters are given.
	rare := func(label string, values ...string) *string {
		if rapid.IntRange(0, 3).Draw(t, label+" given") > 0 {
			return nil
		}
		return maybe(label, values...)
	}
	period := func(label string) (p Period) {
		at := func(label string) *time.Time {
			when := epoch.Add(time.Duration(rapid.IntRange(0, 4).Draw(t, label)) * time.Second)
			return &when
		}
		if rapid.IntRange(0, 3).Draw(t, label) == 0 {
			p.Since = at(label + " since")
		}
		if rapid.IntRange(0, 3).Draw(t, label) == 0 {
			p.Until = at(label + " until")
		}
		return p
	}
	filter := FindingFilter{
		Tool:          rare("filter tool", "gosec", "none"),
		Rule:          rare("filter rule", "G1", "none"),
		Category:      rare("filter category", "Code", "Secret"),
		Owner:         rare("filter owner", "team-a", "team-b", "none"),
		Vulnerability: rare("filter vulnerability", "CVE-1", "ghsa-1", "none"),
		Package:       rare("filter package", "LODASH", "pkg:npm/lodash", "pkg:npm/lodash@2", "PKG:npm/lodash", "none"),
		File:          rare("filter file", "src/", "src/SQL.go", "web/a.js", "web", ""),
		Policy:        rare("filter policy", "mute-a", "mute-b", "none"),
		Created:       period("filter created"),
		Updated:       period("filter updated"),
	}
	is := func(label string) *bool {
		if value := rare(label, "true", "false"); value != nil {
			want := *value == "true"
			return &want
		}
		return nil
	}
	filter.Stale, filter.Suppressed = is("filter stale"), is("filter suppressed")
	if text := rare("filter words", "sql", "SQL go", "nothing"); text != nil {
		filter.Words = findingquery.Words(*text)
	}
	if score := rare("filter score", "0", "7", "7.1", "10"); score != nil {
		tenths, _ := findingquery.Tenths(*score)
		filter.MinScore = &tenths
	}
	if rapid.Bool().Draw(t, "filter documented") {
		filter.addDocumented(maybe)
	}
	return filter
}

func (f *FindingFilter) addDocumented(maybe func(label string, values ...string) *string) {
	f.Status = maybe("filter status", "open", "open_muted", "closed")
	f.UserStatus = maybe("filter user status", "open", "active", "muted")
	f.Severity = maybe("filter severity", "high", "low")
	f.RepoID = maybe("filter repo", "shop", "blog", "none")
	f.ProjectID = maybe("filter project", "api", "web")
	f.Class = maybe("filter class", "", "CWE-79", "CWE-89")
}

// isMet reports whether a finding meets the filter, judged by its full shape.
func (f FindingFilter) isMet(i *Item) bool {
	var shown openapi.FindingFull
	if err := json.Unmarshal(jsonOf(i.Full()), &shown); err != nil {
		panic(err)
	}
	facts := shown.Facts
	same := func(want *string, values ...string) bool {
		return want == nil || slices.ContainsFunc(values, func(value string) bool { return strings.EqualFold(value, *want) })
	}
	in := func(p Period, at time.Time) bool {
		return (p.Since == nil || !at.Before(*p.Since)) && (p.Until == nil || at.Before(*p.Until))
	}
	category, score := "", -1
	if facts.Category != nil {
		category = string(*facts.Category)
	}
	if facts.Score != nil {
		score = int(*facts.Score * 10)
	}
	path := shown.Details.Location.FilePath
	inFile := func(file string) bool {
		return path == file || strings.HasSuffix(file, "/") && strings.HasPrefix(path, file)
	}
	isPackage := func(wanted string) bool {
		name, purl := facts.Package.Name, facts.Package.Purl
		if strings.HasPrefix(wanted, "pkg:") {
			return purl == wanted || strings.TrimRight(purl, "@12") == wanted
		}
		return strings.EqualFold(name, wanted) && wanted != "PKG:npm/lodash" // such a name is not searched by
	}
	text := strings.ToLower(shown.Details.Title + "\n" + path)
	return (f.Stale == nil || *f.Stale == (shown.DecisionStale != "")) && (f.Suppressed == nil || *f.Suppressed == (facts.Suppression.Kind != nil)) &&
		same(f.Policy, shown.Verdict.Policy) && same(f.Tool, facts.Tool) && same(f.Rule, facts.RuleId) && same(f.Category, category) && same(f.Owner, shown.Project.Context.Owner) &&
		same(f.Vulnerability, append(facts.Vulnerability.Aliases, facts.Vulnerability.Id)...) &&
		(f.Package == nil || isPackage(*f.Package)) &&
		(f.File == nil || inFile(*f.File)) && in(f.Created, shown.CreatedAt) && in(f.Updated, shown.UpdatedAt) && (f.MinScore == nil || score >= *f.MinScore) &&
		!slices.ContainsFunc(f.Words, func(word string) bool { return !strings.Contains(text, word) })
}

// naive returns the expected list: every item that matches, sorted by what it shows.
func naive(items map[string]*Item, q FindingQuery) []string {
	var rows []shownRow
	for _, i := range items {
		f := q.Filter
		if matches(f.Status, i.Status) && matches(f.UserStatus, i.UserStatus) && matches(f.Severity, i.Severity) &&
			matches(f.RepoID, i.RepoID) && matches(f.ProjectID, i.ProjectID) && matches(f.Class, i.Class) && f.isMet(i) {
			rows = append(rows, decode(failure{}, jsonOf(i.Full())))
		}
	}
	slices.SortFunc(rows, sortedList{sort: q.Sort, order: q.Order}.compareShown)
	return shownIDs(rows)
}

func drawQuery(t *rapid.T) FindingQuery {
	return FindingQuery{
		Request: index.Request{
			Sort:  rapid.SampledFrom(findingLayout.Sorts).Draw(t, "sort"),
			Order: rapid.SampledFrom([]index.Order{index.OrderAsc, index.OrderDesc}).Draw(t, "order"),
		},
		Filter: drawFilter(t),
	}
}

// walk reads all pages, with varying sizes, and checks each envelope.
func walk(t *rapid.T, m *Model, q FindingQuery, between func()) []string {
	list := sortedList{name: "findings", sort: q.Sort, order: q.Order,
		page: func(m *Model, r index.Request) (index.Page[content.Part], error) {
			q.Request = r
			page, err := m.ListFindings(acme, q)
			return index.Map(page, (*Item).Full), err
		}}
	limit := func() index.Limit { return index.Limit{Size: rapid.IntRange(1, 4).Draw(t, "size")} }
	return shownIDs(list.read(t, m, limit, between))
}

// drawModel returns a model after some writes, and the items that it must show.
func drawModel(t *rapid.T) (*Model, map[string]*Item) {
	m, _ := newAcme(t)
	held := map[string]*v1alpha1.Finding{}
	var past []func()
	for rv := range rapid.IntRange(1, 40).Draw(t, "writes") {
		past = append(past, drawWrite(t, m, held, rv+10))
		if rapid.IntRange(0, 3).Draw(t, "again") == 0 {
			// Late and repeated events and lists change nothing.
			rapid.SampledFrom(past).Draw(t, "late")()
		}
		if rapid.IntRange(0, 3).Draw(t, "project") == 0 {
			owned := project(rapid.SampledFrom([]string{"api", "web"}).Draw(t, "changed"), rv+10)
			owned.Spec.Owner = rapid.SampledFrom([]string{"", "team-a", "team-b"}).Draw(t, "owner")
			feed(t, m, projects, owned)
		}
		if rapid.IntRange(0, 3).Draw(t, "counted") == 0 {
			// Later counts continue with the numbers assigned by this one.
			settle(m)
			count(t, m, CountQuery{})
		}
	}
	settle(m)
	items := map[string]*Item{}
	for name := range held {
		item, ok := m.Finding(acme, name)
		if !ok {
			t.Fatalf("%s does not exist", name)
		}
		items[name] = item
	}
	return m, items
}

func TestListsAndWalksAgreeWithANaiveReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, items := drawModel(t)
		for range 4 {
			q := drawQuery(t)
			want := naive(items, q)
			if got := walk(t, m, q, func() {}); !slices.Equal(got, want) {
				t.Fatalf("%+v: listed %v, want %v", q, got, want)
			}
			if got := walkAll(t, m, q, func() {}); !slices.Equal(got, want) {
				t.Fatalf("%+v: walked %v, want %v", q, got, want)
			}
			q.Limit.Size = 1
			if page, _ := m.ListFindings(acme, q); page.Total != len(want) {
				t.Fatalf("%+v: total is %d, want %d", q, page.Total, len(want))
			}
		}
	})
}

// drawWrite writes to the model and to held, and returns a function that repeats the write: the event, or the
// list of that moment.
func drawWrite(t *rapid.T, m *Model, held map[string]*v1alpha1.Finding, rv int) (again func()) {
	f := drawFinding(t, rv)
	f.UID = freshUID(rv) // recreated under the same name, it is another object
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
	list := func() { harness.Must(t, m.replace(findings, all, fmt.Sprint(rv))) }
	messages := []func(){event, list, func() { list(); event() }, func() { event(); list() }}
	message := rapid.SampledFrom(messages).Draw(t, "delivered by")
	message()
	return message
}

// Whatever is written between the pages, unchanged rows are returned exactly once, and in order.
func TestAListRepeatsNothingAndHidesNothingThatStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, _ := newAcme(t)
		rv := 10
		for i := range rapid.IntRange(0, 12).Draw(t, "rows") {
			rv++
			f := finding(fmt.Sprintf("stable-%d", i), rv)
			drawSpec(t, f)
			feed(t, m, findings, f)
		}
		settle(m)
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
			settle(m)
		})
		stable := slices.DeleteFunc(got, func(id string) bool { return !strings.HasPrefix(id, "stable-") })
		if !slices.Equal(stable, want) {
			t.Fatalf("%+v: %s", q, cmp.Diff(want, stable))
		}
	})
}

func findingIndex(items ...*Item) *index.Index[*Item] {
	x := index.New(findingLayout)
	for _, i := range items {
		x.Put(i.ID, i)
	}
	return x
}

func TestByDefaultTheNewestFindingComesFirst(t *testing.T) {
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
		x.Put(id, testItem(id, "", "", "open"))
	}
	before := x.Snapshot()
	q := FindingQuery{Request: first(1000)}
	want := ids(listFindings(before, q).Items)
	for i := range 500 {
		if id := fmt.Sprintf("%03d", i); i%2 == 0 {
			x.Remove(id)
		} else {
			x.Put(id, testItem(id, "2026-03-01T12:00:00Z", "", "closed"))
		}
	}
	q.Filter.Status = new("open")
	for _, q.Sort = range []index.Sort{SortCreatedAt, SortUpdatedAt, SortSeverity} {
		if got := listFindings(before, q); !slices.Equal(ids(got.Items), want) || got.Total != 500 {
			t.Errorf("by %s the snapshot has %d of 500 items left, total %d", q.Sort, len(got.Items), got.Total)
		}
	}
}
