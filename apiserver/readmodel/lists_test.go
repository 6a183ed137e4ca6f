package readmodel

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// sortedList is a list of the REST API in one order, read as by a client.
type sortedList struct {
	name  string
	sort  index.Sort
	order index.Order
	page  func(*Model, index.Request) (index.Page[content.Part], error)
	// keeps is the filter's rule applied to the shown JSON; nil without a filter.
	keeps func(shownRow) bool
}

// shownRow is a row's JSON.
type shownRow map[string]any

func (s shownRow) text(member string) string { text, _ := s[member].(string); return text }

func (s shownRow) id() string { return s.text("id") }

// by returns the value of a sort. By severity it is a text: findings of one severity are sorted by their score,
// and then by their time.
func (s shownRow) by(sort index.Sort) any {
	if sort != SortSeverity {
		return s[string(sort)]
	}
	score, known := s["facts"].(map[string]any)["score"].(float64)
	if !known {
		score = -1
	}
	rank := map[any]int{"high": 3, "medium": 2, "low": 1}[s["details"].(map[string]any)["severity"]]
	return fmt.Sprintf("%d %04.1f %s", rank, score+1, s.text("created_at"))
}

func shownIDs(rows []shownRow) []string {
	out := make([]string, len(rows))
	for i, row := range rows {
		out[i] = row.id()
	}
	return out
}

func decode(t harness.T, content []byte) shownRow {
	t.Helper()
	return harness.Decoded[shownRow](t, content)
}

// allLists returns all lists in all orders, without filters.
func allLists() []sortedList {
	var lists []sortedList
	for _, order := range []index.Order{index.OrderAsc, index.OrderDesc} {
		for _, by := range findingLayout.Sorts {
			lists = append(lists, sortedList{name: "findings", sort: by, order: order,
				page: func(m *Model, r index.Request) (index.Page[content.Part], error) {
					page, err := m.ListFindings(acme, FindingQuery{Request: r, Shape: (*Item).Full})
					return index.Map(page, (*Item).Full), err
				}})
		}
		for _, by := range repositoryLayout.Sorts {
			lists = append(lists, sortedList{name: "repositories", sort: by, order: order,
				page: func(m *Model, r index.Request) (index.Page[content.Part], error) {
					return m.ListRepositories(acme, r)
				}})
		}
		for _, by := range reviewLayout.Sorts {
			lists = append(lists, reviewList(by, order, ReviewFilter{}))
		}
	}
	return lists
}

func reviewList(by index.Sort, order index.Order, filter ReviewFilter) sortedList {
	return sortedList{name: fmt.Sprintf("reviews %+v", filter), sort: by, order: order,
		keeps: func(row shownRow) bool { return keepsReview(filter, row) },
		page: func(m *Model, r index.Request) (index.Page[content.Part], error) {
			return m.ListReviews(acme, ReviewQuery{Request: r, Filter: filter})
		}}
}

// keepsReview applies the filter's rule as the contract states it.
func keepsReview(f ReviewFilter, row shownRow) bool {
	updatedAt, err := time.Parse(time.RFC3339, row.text("updated_at"))
	if err != nil {
		panic(err)
	}
	status, open := row.text("pr_status"), row["open_issue_count"].(float64)
	custom := map[Custom]bool{
		"":                     true,
		CustomOpenWithIssues:   status == "open" && open > 0,
		CustomMergedWithIssues: status == "merged" && open > 0,
		CustomNotReviewed:      row["last_review_at"] == nil,
		CustomReviewed:         row["last_review_at"] != nil,
	}
	return (f.StartTime == nil || !updatedAt.Before(*f.StartTime)) && (f.EndTime == nil || updatedAt.Before(*f.EndTime)) &&
		matches(f.Status, status) && custom[f.Custom]
}

// compareShown orders rows as the contract does, only by their shown values.
func (l sortedList) compareShown(a, b shownRow) int {
	order := cmp.Or(compareValues(a.by(l.sort), b.by(l.sort)), strings.Compare(a.id(), b.id()))
	if l.order == index.OrderDesc {
		return -order
	}
	return order
}

func compareValues(a, b any) int {
	if n, ok := a.(float64); ok {
		return cmp.Compare(n, b.(float64))
	}
	text, _ := a.(string) // null becomes "", which comes first
	other, _ := b.(string)
	return strings.Compare(text, other)
}

// keeps reports whether a page is within the limit, and is cut short only because of its bytes.
func keeps(l index.Limit, page index.Page[content.Part]) bool {
	bytes := 0
	for _, part := range page.Items {
		bytes += part.Len() + 1
	}
	within := len(page.Items) <= l.Size && (l.Bytes == 0 || bytes <= l.Bytes || len(page.Items) == 1)
	early := page.HasMore && len(page.Items) < l.Size
	return within && !(early && l.Bytes == 0) && !(page.HasMore && len(page.Items) == 0)
}

// read reads all pages, and checks each envelope.
func (l sortedList) read(t harness.T, m *Model, limit func() index.Limit, between func()) []shownRow {
	t.Helper()
	var rows []shownRow
	wanted := index.Request{Sort: l.sort, Order: l.order}
	for {
		wanted.Limit = limit()
		page, err := l.page(m, wanted)
		harness.Must(t, err)
		if !keeps(wanted.Limit, page) || !page.HasMore && page.Next != (index.Position{}) {
			t.Fatal(fmt.Sprintf("%s by %s: a page of %d items for %+v, has_more %t, next %v",
				l.name, l.sort, len(page.Items), wanted.Limit, page.HasMore, page.Next))
		}
		for _, part := range page.Items {
			rows = append(rows, decode(t, jsonOf(part)))
		}
		if !page.HasMore {
			return rows
		}
		wanted.After = &page.Next
		between()
	}
}

// reference holds the last written objects by name, from which it derives what the API must show.
type reference map[kind]map[string]metav1.Object

func newReference() reference {
	s := reference{}
	for k := range kinds {
		s[k] = map[string]metav1.Object{}
	}
	return s
}

func (s reference) repositoryOf(name v1alpha1.ResourceName) *render.Repository {
	if object, ok := s[repositories][string(name)]; ok {
		return render.NewRepository(object.(*v1alpha1.Repository))
	}
	return nil
}

func (s reference) review(name v1alpha1.ResourceName) *v1alpha1.Review {
	review, _ := s[reviews][string(name)].(*v1alpha1.Review)
	return review
}

// json returns what the API must show of an object.
func (s reference) json(t harness.T, object metav1.Object) []byte {
	t.Helper()
	var (
		content []byte
		err     error
	)
	switch o := object.(type) {
	case *v1alpha1.Repository:
		var within []render.DatedProject
		for _, name := range slices.Sorted(maps.Keys(s[projects])) {
			project := s[projects][name].(*v1alpha1.Project)
			if string(project.Spec.RepositoryRef.Name) == o.Name {
				within = append(within, render.DatedProject{Project: project, UpdatedAt: recordedAt(project).Time})
			}
		}
		content, err = render.RepositoryJSON(acme, o, recordedAt(o).Time, within)
	case *v1alpha1.Project:
		content, err = render.ProjectJSON(acme, o, recordedAt(o).Time, s.repositoryOf(o.Spec.RepositoryRef.Name))
	case *v1alpha1.Review:
		var counts reviewstate.Counts
		for _, object := range s[reviewIssues] {
			if issue := object.(*v1alpha1.ReviewIssue); string(issue.Spec.ReviewRef.Name) == o.Name {
				counts.AddIssue(issue, o.Spec.ReviewedCommits)
			}
		}
		var record render.Record
		record, err = render.NewReview(o, recordedAt(o).Time, counts, s.repositoryOf(o.Spec.RepositoryRef.Name))
		content = jsonOf(record.In(render.Documented))
	case *v1alpha1.ReviewIssue:
		review := s.review(o.Spec.ReviewRef.Name)
		var reviewSpec *v1alpha1.ReviewSpec
		var repository *render.Repository
		if review != nil {
			reviewSpec, repository = &review.Spec, s.repositoryOf(review.Spec.RepositoryRef.Name)
		}
		status := reviewstate.IssueStatus(o, reviewSpec, epoch)
		var record render.Record
		record, err = render.NewReviewIssue(o, &status, recordedAt(o).Time, review, repository)
		content = record.JSON()
	}
	harness.Must(t, err)
	return content
}

func drawObject(t *rapid.T, k kind, rv int) metav1.Object {
	at := func(label string) *v1alpha1.Time {
		when := v1alpha1.NewTime(epoch.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, label)) * time.Second))
		return &when
	}
	repository := func() v1alpha1.ResourceName {
		return v1alpha1.ResourceName(rapid.SampledFrom([]string{"shop", "blog"}).Draw(t, "repo"))
	}
	name := func(names ...string) metav1.ObjectMeta {
		m := meta(acmeNamespace, rapid.SampledFrom(names).Draw(t, "name"), rv)
		m.CreationTimestamp = metav1.NewTime(at("created").Time)
		return m
	}
	switch k {
	case repositories:
		o := &v1alpha1.Repository{ObjectMeta: name("shop", "blog", "wiki")}
		o.Spec.FullName = rapid.SampledFrom([]string{"", "acme/shop", "acme/x/blog", "é"}).Draw(t, "full name")
		o.Spec.Provider = rapid.SampledFrom([]string{"", "github"}).Draw(t, "provider")
		o.Spec.ScanEnabled = rapid.Bool().Draw(t, "scan enabled")
		if rapid.Bool().Draw(t, "has commit") {
			o.Spec.LastCommit = &v1alpha1.Commit{CommittedAt: at("committed")}
		}
		o.Status.ObservedGeneration, o.Status.UpdatedAt = 1, at("updated")
		return o
	case projects:
		o := &v1alpha1.Project{ObjectMeta: name("api", "web", "ios")}
		o.Spec.RepositoryRef.Name = repository()
		o.Spec.Owner = rapid.SampledFrom([]string{"", "team"}).Draw(t, "owner")
		o.Status.FindingsCount = int32(rapid.IntRange(0, 2).Draw(t, "count")) //nolint:gosec // of 0 to 2
		o.Status.ObservedGeneration, o.Status.UpdatedAt = 1, at("updated")
		return o
	case reviews:
		o := &v1alpha1.Review{ObjectMeta: name("r1", "r2", "r3", "r4")}
		o.Spec.RepositoryRef.Name = repository()
		o.Spec.PRNumber = rapid.SampledFrom([]int32{1, 2, 9, 10, 100, 2147483647}).Draw(t, "number")
		o.Spec.PRTitle = rapid.SampledFrom([]string{"", "a", "B", "é"}).Draw(t, "title")
		o.Spec.PRAuthor = rapid.SampledFrom([]string{"", "ann", "bob"}).Draw(t, "author")
		o.Spec.PRStatus = rapid.SampledFrom([]v1alpha1.PullRequestStatus{"open", "closed", "merged"}).Draw(t, "status")
		for i := range rapid.IntRange(0, 3).Draw(t, "commits") {
			o.Spec.ReviewedCommits = append(o.Spec.ReviewedCommits, v1alpha1.ReviewedCommit{SHA: fmt.Sprint("c", i), ReviewedAt: *at("reviewed")})
		}
		o.Generation = int64(rv) // each write changes the spec
		o.Status.ObservedGeneration, o.Status.UpdatedAt = o.Generation, at("updated")
		return o
	default:
		o := &v1alpha1.ReviewIssue{ObjectMeta: name("i1", "i2", "i3", "i4", "i5")}
		o.Spec.ReviewRef.Name = v1alpha1.ResourceName(rapid.SampledFrom([]string{"r1", "r2"}).Draw(t, "review"))
		o.Spec.Severity = rapid.SampledFrom([]v1alpha1.Level{"high", "medium", "low"}).Draw(t, "severity")
		o.Spec.SeenInCommits = []v1alpha1.CommitSHA{v1alpha1.CommitSHA(rapid.SampledFrom([]string{"c0", "c1", "c2"}).Draw(t, "seen"))}
		o.Status.State = rapid.SampledFrom([]v1alpha1.ReviewIssueState{"", "open", "resolved"}).Draw(t, "state")
		o.Status.ObservedGeneration, o.Status.UpdatedAt = 1, at("updated")
		return o
	}
}

// drawChange writes to the model and to the reference, and returns a function that repeats the write: the
// event, or the list of that moment.
func drawChange(t *rapid.T, m *Model, want reference, rv int) (again func()) {
	k := rapid.SampledFrom([]kind{repositories, projects, reviews, reviewIssues}).Draw(t, "kind")
	object := drawObject(t, k, rv)
	object.SetUID(freshUID(rv))
	before := want[k][object.GetName()]
	if before != nil && rapid.IntRange(0, 4).Draw(t, "made again") > 0 {
		object.SetUID(before.GetUID())
	}
	var event func()
	if before != nil && rapid.IntRange(0, 3).Draw(t, "delete") == 0 {
		delete(want[k], object.GetName())
		event = func() { feedDeletion(t, m, k, object) }
	} else {
		want[k][object.GetName()] = object
		event = func() { feed(t, m, k, object) }
	}
	var all []metav1.Object
	for _, object := range want[k] {
		all = append(all, object)
	}
	list := func() { harness.Must(t, m.replace(k, all, fmt.Sprint(rv))) }
	message := rapid.SampledFrom([]func(){event, list, func() { list(); event() }}).Draw(t, "delivered by")
	message()
	return message
}

// In whatever order data arrives, what is shown follows from the last state of each object, to the byte, and
// the lists contain exactly that, sorted and counted.
func TestEverythingShownAgreesWithANaiveReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, _ := newTestModel(t)
		owner := rapid.IntRange(0, 40).Draw(t, "organization comes at")
		want := newReference()
		var past []func()
		writes := rapid.IntRange(1, 40).Draw(t, "writes")
		for i := range writes {
			if i == owner%writes {
				feed(t, m, organizations, organization(acme, acmeNamespace, 1))
			}
			past = append(past, drawChange(t, m, want, i+10))
			if rapid.IntRange(0, 3).Draw(t, "again") == 0 {
				// Late and repeated events and lists change nothing.
				rapid.SampledFrom(past).Draw(t, "late")()
			}
			if rapid.IntRange(0, 3).Draw(t, "settle") == 0 {
				settle(m)
			}
		}
		settle(m)
		checkSingles(t, m, want)
		for _, l := range append(allLists(), drawReviewLists(t)...) {
			if l.name != "findings" {
				checkList(t, m, want, l)
			}
		}
	})
}

func checkSingles(t *rapid.T, m *Model, want reference) {
	for name, object := range want[projects] {
		repo := string(object.(*v1alpha1.Project).Spec.RepositoryRef.Name)
		if got, _ := m.Project(acme, repo, name); string(got) != string(want.json(t, object)) {
			t.Fatalf("project %s:\ngot  %s\nwant %s", name, got, want.json(t, object))
		}
		if _, ok := m.Project(acme, "none", name); ok {
			t.Fatalf("project %s is in a repository that it is not in", name)
		}
	}
	for name, object := range want[reviewIssues] {
		if got, _ := m.ReviewIssue(acme, name); string(got.JSON()) != string(want.json(t, object)) {
			t.Fatalf("issue %s:\ngot  %s\nwant %s", name, got.JSON(), want.json(t, object))
		}
	}
	x := (*m.visible.Load())[acme].snapshot.Load()
	if p, i := x.projects.Len(), x.issues.Len(); p != len(want[projects]) || i != len(want[reviewIssues]) {
		t.Fatalf("%d projects and %d issues are shown", p, i)
	}
}

func checkList(t *rapid.T, m *Model, want reference, l sortedList) {
	of := reviews
	if l.name == "repositories" {
		of = repositories
	}
	var rows []shownRow
	for _, object := range want[of] {
		if row := decode(t, want.json(t, object)); l.keeps == nil || l.keeps(row) {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, l.compareShown)
	limit := func() index.Limit {
		return index.Limit{Size: rapid.IntRange(1, 3).Draw(t, "size"), Bytes: rapid.SampledFrom([]int{0, 1, 1500, 3000}).Draw(t, "bytes")}
	}
	got := l.read(t, m, limit, func() {})
	if fmt.Sprint(got) != fmt.Sprint(rows) {
		t.Fatalf("%s by %s %s:\ngot  %v\nwant %v", l.name, l.sort, l.order, got, rows)
	}
	if page, err := l.page(m, first(1)); err != nil || page.Total != len(rows) {
		t.Fatalf("%s by %s: total is %d, want %d (%v)", l.name, l.sort, page.Total, len(rows), err)
	}
}

func drawReviewLists(t *rapid.T) []sortedList {
	var lists []sortedList
	for range 6 {
		by := rapid.SampledFrom(reviewLayout.Sorts).Draw(t, "sort")
		lists = append(lists, reviewList(by, rapid.SampledFrom([]index.Order{index.OrderAsc, index.OrderDesc}).Draw(t, "order"), drawReviewFilter(t)))
	}
	return lists
}

func drawReviewFilter(t *rapid.T) ReviewFilter {
	var f ReviewFilter
	at := func(label string) *time.Time {
		when := epoch.Add(time.Duration(rapid.IntRange(-1, 8).Draw(t, label)) * time.Second / 2).In(time.FixedZone("", 3600))
		return &when
	}
	if rapid.Bool().Draw(t, "start given") {
		f.StartTime = at("start")
	}
	if rapid.Bool().Draw(t, "end given") {
		f.EndTime = at("end")
	}
	if rapid.Bool().Draw(t, "status given") {
		status := rapid.SampledFrom([]string{"open", "closed", "merged", "none"}).Draw(t, "status")
		f.Status = &status
	}
	f.Custom = rapid.SampledFrom([]Custom{"", "", CustomOpenWithIssues, CustomMergedWithIssues, CustomNotReviewed, CustomReviewed}).Draw(t, "custom")
	return f
}

func TestABoundIsTheFirstWholeSecondNotBeforeIt(t *testing.T) {
	parse := func(text string) *time.Time {
		at, err := time.Parse(time.RFC3339, text)
		harness.Must(t, err)
		return &at
	}
	cases := []struct {
		reason, time, want string
	}{
		{"a whole second is itself", "2026-03-01T12:00:05Z", "2026-03-01T12:00:05Z"},
		{"between two seconds the later is the first not before it", "2026-03-01T12:00:05.001Z", "2026-03-01T12:00:06Z"},
		{"another zone", "2026-03-01T13:00:05+01:00", "2026-03-01T12:00:05Z"},
		{"after every time that has four digits of year", "9999-12-31T23:59:59.5Z", ":"},
	}
	for _, c := range cases {
		harness.Same(t, c.reason, c.want, bound(parse(c.time)))
	}
	harness.Same(t, "no time", "", bound(nil))
}
