package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/apiclient"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestPagination_ListsReturnTheEnvelope(t *testing.T) {
	c := anyKey(t)
	forEachList(t, func(t *testing.T, l list) {
		a := c.in(t).get(l.path).wants(200, "a list")
		wantsShape(t, "the envelope", a.object(), envelopeShape)
		c.in(t).walk(with(l.path, "size=1000"))
	})
}

func TestPagination_ItemsIsAnArrayWhereThereIsNothing(t *testing.T) {
	o := emptyOrganization(t, plenty)
	review := sync.OnceFunc(func() { o.listedIssues() })
	forEachList(t, func(t *testing.T, l list) {
		switch l.path {
		case operationFindingsPath:
			o.operations(listedOperation)
		case listedIssuesPath, listedFullIssuesPath:
			review()
		}
		a := o.in(t).get(l.path).wants(200, "nothing to list")
		raw := harness.Decoded[map[string]json.RawMessage](t, a.Body)
		for name, want := range map[string]string{"items": "[]", "has_more": "false", "next_cursor": `""`, "total": "0"} {
			harness.Same(t, name, want, string(raw[name]))
		}
	})
}

func TestPagination_SortOrderAndSizeHaveTheirDefaults(t *testing.T) {
	// The default page size shows only if there are more rows, of which one organization has few kinds.
	for _, o := range []*organization{sampleOrganization(t), crowdedOrganization(t)} {
		forEachList(t, func(t *testing.T, l list) {
			c := o.in(t)
			spelledOut := fmt.Sprintf("sort=%s&order=%s&size=%d", l.defaultSort, l.defaultOrder, l.defaultSize)
			want, got := c.get(with(l.path, spelledOut)).page(), c.get(l.path).page()
			harness.Same(t, spelledOut, want.ids(), got.ids())
			if got.HasMore != want.HasMore || got.Total != want.Total {
				t.Errorf("has_more %v of %d, want %v of %d", got.HasMore, got.Total, want.HasMore, want.Total)
			}
		})
	}
}

func TestPagination_EverySortAndOrderIsAsDesigned(t *testing.T) {
	o := sampleOrganization(t)
	forEachList(t, func(t *testing.T, l list) {
		c := o.in(t)
		total := c.get(l.path).page().Total
		for _, sort := range l.sorts {
			for _, order := range []string{"asc", "desc"} {
				query := "sort=" + sort + "&order=" + order
				items := c.walk(with(l.path, query+"&size=1000"))
				if len(items) < 2 || len(items) != total {
					t.Errorf("%s: %d rows of %d", query, len(items), total)
				}
				if !sorted(items, sort, order) {
					t.Errorf("%s: not in order: %v", query, column(items, sort))
				}
			}
		}
	})
}

func TestFindings_SortedBySeverityTheWorstComesFirst(t *testing.T) {
	o := newOrganization(t)
	graded := func(name string, severity v1alpha1.Level, score string, minute int) *v1alpha1.Finding {
		return builder.Finding(name).In(o.namespace).Severity(severity).DetectedAt(firstFinding.Add(time.Duration(minute) * time.Minute)).
			Mutate(func(f *v1alpha1.Finding) { f.Spec.Details.Score = score }).Build()
	}
	o.create(graded("f-a", "low", "9.9", 5), graded("f-b", "medium", "", 4), graded("f-c", "medium", "0.0", 3), graded("f-d", "high", "7.0", 2),
		graded("f-e", "high", "10.0", 0), graded("f-f", "high", "10.0", 1), graded("f-g", "high", "9.8", 6), graded("f-h", "high", "10.0", 1))
	o.settled(8)
	want := []string{"f-a", "f-b", "f-c", "f-d", "f-g", "f-e", "f-f", "f-h"}
	for _, path := range findingLists {
		harness.Same(t, fmt.Sprintf("%s ascending", path),
			want, idsOf(o.walk(with(path, "sort=severity&order=asc&size=1"))))
		descending := slices.Clone(want)
		slices.Reverse(descending)
		harness.Same(t, fmt.Sprintf("%s descending", path),
			descending, idsOf(o.walk(with(path, "sort=severity&size=3"))))
	}
}

// The sample is created within a second or two, so its times are too similar to test a sort by
// time.
func TestPagination_WhatChangesLastIsLastByUpdatedAtAlone(t *testing.T) {
	o := apartOrganization(t)
	for path, want := range map[string]map[string][]string{
		"/v1/findings": {"updated_at": {"f-b", "f-a"}, "created_at": {"f-a", "f-b"}},
		"/v2/findings": {"updated_at": {"f-b", "f-a"}, "created_at": {"f-a", "f-b"}},
		"/v2/repos":    {"updated_at": {"second", "repo"}, "created_at": {"repo", "second"}, "last_committed_at": {"repo", "second"}},
		"/v1/reviews":  {"updated_at": {"rv-b", "rv-a"}, "pr_number": {"rv-a", "rv-b"}},
	} {
		for sort, ids := range want {
			query := with(path, "sort="+sort+"&order=")
			harness.Same(t, fmt.Sprintf("%s ascending", query), ids, idsOf(o.walk(query+"asc")))
			slices.Reverse(ids)
			harness.Same(t, fmt.Sprintf("%s descending", query), ids, idsOf(o.walk(query+"desc")))
		}
	}
}

// apartOrganization returns an organization for tests of times.
func apartOrganization(t *testing.T) *organization {
	t.Helper()
	return shared(t, &theDeployment.apart, func() *organization {
		o := newOrganization(t)
		o.updatedApart()
		return o
	})
}

// updatedApart creates two rows in each list, of which the older was updated in a later second than
// the other.
func (o *organization) updatedApart() {
	o.t.Helper()
	o.create(
		builder.Repository("second").In(o.namespace).Build(),
		builder.Review("rv-a").PullRequest("repo", 1).In(o.namespace).Build(),
		builder.Review("rv-b").PullRequest("repo", 2).In(o.namespace).Build(),
		builder.Finding("f-a").In(o.namespace).DetectedAt(firstFinding).Build(),
		builder.Finding("f-b").In(o.namespace).DetectedAt(firstFinding.Add(time.Minute)).Build(),
	)
	settled := func() {
		o.t.Helper()
		o.settled(2)
		harness.Eventually(o.t, func(g Gomega) { o.showsWhatIsStored(g) })
	}
	settled()
	changes := 0
	harness.Eventually(o.t, func(g Gomega) {
		changes++
		o.patchResource(builder.Review("rv-a").In(o.namespace).Build(), fmt.Sprintf(`{"spec":{"prTitle":"title %d"}}`, changes))
		o.patchResource(builder.Repository("repo").In(o.namespace).Build(), fmt.Sprintf(`{"spec":{"description":"change %d"}}`, changes))
		o.patch("/v2/findings/f-a", fmt.Sprintf(`{"comments":"%d"}`, changes)).wants(200, "a change")
		updated := func(path, id string) string { return o.listed(path, id).text("updated_at") }
		g.Expect(updated("/v1/findings", "f-a") > updated("/v1/findings", "f-b")).To(BeTrue())
		g.Expect(updated("/v2/repos", "repo") > updated("/v2/repos", "second")).To(BeTrue())
		g.Expect(updated("/v1/reviews", "rv-a") > updated("/v1/reviews", "rv-b")).To(BeTrue())
	})
	settled()
}

func column(items []record, name string) []string {
	var values []string
	for _, item := range items {
		values = append(values, fmt.Sprintf("%v (%s)", item[name], item.text("id")))
	}
	return values
}

func TestPagination_PagesOfAnySizeAreFullAndHoldEveryRowOnceInOrder(t *testing.T) {
	o := sampleOrganization(t)
	forEachList(t, func(t *testing.T, l list) {
		c := o.in(t)
		for _, sort := range l.sorts {
			for _, order := range []string{"asc", "desc"} {
				query := with(l.path, "sort="+sort+"&order="+order)
				want := idsOf(c.walk(with(query, "size=1000")))
				for _, size := range []int{1, 2, 3, len(want) - 1, len(want), len(want) + 1} {
					if size < 1 {
						continue
					}
					var got []string
					for page := range c.pages(with(query, "size="+strconv.Itoa(size)), "") {
						got = append(got, page.ids()...)
						if n := len(page.Items); n > size || page.HasMore && n < size || page.Total != len(want) {
							t.Errorf("%s size %d: %d rows, has_more %v, total %d of %d", query, size, n, page.HasMore, page.Total, len(want))
						}
					}
					harness.Same(t, fmt.Sprintf("%s size %d", query, size), want, got)
				}
			}
		}
	})
}

func TestPagination_SizeIsFrom1To1000(t *testing.T) {
	c := anyKey(t)
	forEachList(t, func(t *testing.T, l list) {
		c := c.in(t)
		for _, size := range []string{"1", "1000"} {
			c.get(with(l.path, "size="+size)).wants(200, "size "+size)
		}
		for _, size := range []string{"0", "-1", "1001", "99999999999999999999", "1.5", "1e2", "ten", "%201", "+1", "0x10"} {
			c.get(with(l.path, "size="+size)).badQuery("size " + size)
		}
	})
}

func TestPagination_UnknownSortsAndOrdersAreRefused(t *testing.T) {
	c := anyKey(t)
	forEachList(t, func(t *testing.T, l list) {
		c := c.in(t)
		if l.hasOneOrder() {
			return
		}
		for _, query := range []string{"sort=id", "sort=title", "sort=Created_At", "sort=%20", "order=up", "order=ASC"} {
			c.get(with(l.path, query)).badQuery(query)
		}
	})
}

func TestPagination_UnknownParametersAreIgnored(t *testing.T) {
	o := sampleOrganization(t)
	forEachList(t, func(t *testing.T, l list) {
		c := o.in(t)
		unknown := with(l.path, "limit=1&page=7&page=8&Size=0&x&foo[bar]=%ff&a;b=%zz")
		harness.Same(t, "with them", c.get(l.path).page().ids(), c.get(unknown).page().ids())
	})
}

func TestPagination_TheSizeMayChangeBetweenPages(t *testing.T) {
	o := sampleOrganization(t)
	forEachList(t, func(t *testing.T, l list) {
		c := o.in(t)
		want := idsOf(c.walk(with(l.path, "size=1000")))
		first := c.get(with(l.path, "size=1")).page()
		rest := c.get(with(l.path, "size=1000&cursor="+url.QueryEscape(first.NextCursor))).page()
		harness.Same(t, "results", want, append(first.ids(), rest.ids()...))
	})
}

func TestPagination_ACursorHoldsForItsOwnListAlone(t *testing.T) {
	o, other := sampleOrganization(t), anotherOrganization(t)
	forEachList(t, func(t *testing.T, l list) {
		c := o.in(t)
		cursor := "cursor=" + url.QueryEscape(c.get(with(l.path, "size=1")).page().NextCursor)
		c.get(with(l.path, cursor)).wants(200, "its own list")
		c.get(with(l.path, fmt.Sprintf("sort=%s&order=%s&%s", l.defaultSort, l.defaultOrder, cursor))).wants(200, "its own list, with the defaults spelled out")
		if !l.hasOneOrder() {
			c.get(with(l.path, "order=asc&"+cursor)).badQuery("another order")
		}
		for _, sort := range l.sorts {
			if sort != l.defaultSort {
				c.get(with(l.path, "sort="+sort+"&"+cursor)).badQuery("another sort")
			}
		}
		for _, another := range lists {
			if another.path != l.path {
				c.get(with(another.path, cursor)).badQuery("another endpoint")
			}
		}
		other.in(t).get(with(l.path, cursor)).badQuery("another organization")
	})
}

func TestPagination_ACursorHoldsForTheValueOfATimeHoweverItIsWritten(t *testing.T) {
	o := sampleOrganization(t)
	spelled := func(at, rest string) string { return "/v1/reviews?size=1&start_time=" + url.QueryEscape(at) + rest }
	next := o.get(spelled("2020-01-01T00:00:00Z", "")).page().NextCursor
	want := o.get(spelled("2020-01-01T00:00:00Z", "&cursor="+url.QueryEscape(next))).page()
	for _, same := range []string{"2020-01-01T02:00:00+02:00", "2019-12-31T23:30:00-00:30", "2020-01-01T00:00:00.000Z", "2020-01-01t00:00:00z"} {
		harness.Same(t, same, want, o.get(spelled(same, "&end_time=&cursor="+url.QueryEscape(next))).page())
	}
	o.get(spelled("2020-01-01T00:00:00.001Z", "&cursor="+url.QueryEscape(next))).badQuery("another instant")
}

const maxPageBytes = 8 << 20

func TestPagination_APageThatWouldPass8MiBEndsEarly(t *testing.T) {
	t.Parallel()
	o := newOrganization(t)
	findings, repositories := o.heavy()
	for _, test := range []struct {
		path string
		want []string
		// row is an upper bound for the size of a row, in bytes.
		row int
	}{{"/v1/findings", findings, 300 << 10}, {"/v2/findings", findings, 300 << 10}, {"/v2/repos", repositories, 1300 << 10}} {
		path := with(test.path, "size=1000&sort=created_at&order=asc")
		a := o.get(path, apiclient.Header("Accept-Encoding", "identity"))
		page := a.page()
		if len(a.Body) > maxPageBytes || len(a.Body) < maxPageBytes-test.row || !page.HasMore || page.Total != len(test.want) {
			t.Errorf("%s: %d bytes in %d rows, has_more %v, total %d of %d", path, len(a.Body), len(page.Items), page.HasMore, page.Total, len(test.want))
		}
		got := append(page.ids(), idsOf(o.walkFrom(path, page.NextCursor))...)
		slices.Sort(got)
		harness.Same(t, fmt.Sprintf("%s: not every row once", path), test.want, got)
	}
}

// heavy creates findings and repositories, more of each than fit on a page by size, and returns
// their ids.
func (o *organization) heavy() (findings, repositories []string) {
	o.t.Helper()
	text := func(characters int) string { return strings.Repeat("😀", characters) }
	for i := range 42 {
		findings = append(findings, fmt.Sprintf("f-%02d", i))
		o.create(builder.Finding(findings[i]).In(o.namespace).Mutate(func(f *v1alpha1.Finding) {
			d := &f.Spec.Details
			d.Description, d.Code, d.FixedCode, d.Remediation, d.ExploitWalkthrough = text(16_000), text(9_000), text(9_000), text(9_000), text(9_000)
		}).Build())
	}
	repositories = []string{"repo"}
	for i := range 9 {
		name := fmt.Sprintf("repo-%d", i)
		repositories = append(repositories, name)
		o.create(builder.Repository(name).In(o.namespace).Build())
		for j := range 9 {
			o.create(builder.Project(fmt.Sprintf("%s-%d", name, j)).Repository(name).In(o.namespace).Mutate(func(p *v1alpha1.Project) {
				p.Spec.Purpose, p.Spec.Evidence = text(4096), text(4096)
				p.Spec.Scanner.Summary, p.Spec.User.Summary = text(8192), text(8192)
			}).Build())
		}
	}
	// Do not read them here, because each answer is large.
	harness.Eventually(o.t, func(g Gomega) {
		g.Expect(o.get("/v2/finding-counts").object()["total"]).To(BeEquivalentTo(len(findings)))
		for _, name := range repositories[1:] {
			g.Expect(o.do("HEAD", projectPath(name, name+"-8"), "").Status).To(Equal(200))
		}
	})
	return findings, repositories
}

func TestPagination_ATamperedCursorIsRefused(t *testing.T) {
	o := sampleOrganization(t)
	forEachList(t, func(t *testing.T, l list) {
		c := o.in(t)
		cursor := c.get(with(l.path, "size=1")).page().NextCursor
		for i := range cursor {
			letter := "A"
			if cursor[i] == 'A' {
				letter = "B"
			}
			changed := cursor[:i] + letter + cursor[i+1:]
			c.get(with(l.path, "cursor="+url.QueryEscape(changed))).badQuery("changed at " + strconv.Itoa(i))
		}
		for _, bad := range []string{
			"x", "0", "-1", "null", "AQ", "e30", "../..", "\x00", "\xff", cursor[1:], cursor[:len(cursor)-1], cursor[:len(cursor)/2], cursor + "A", cursor + "=",
			cursor + "\n", cursor + "\x00", " " + cursor, cursor + cursor, strings.ToUpper(cursor), strings.Repeat("A", 4096), strings.Repeat("A", 4097), strings.Repeat("A", 5000),
		} {
			c.get(with(l.path, "cursor="+url.QueryEscape(bad))).badQuery("no cursor: " + bad)
		}
	})
}

func TestPagination_ARowThatDoesNotChangeIsReturnedOnceWhateverElseChanges(t *testing.T) {
	t.Parallel()
	o := newOrganization(t)
	stay := o.restless(12, 4)
	done := make(chan struct{})
	var writers sync.WaitGroup
	writers.Go(func() { o.unrest(done, 4) })
	forEachList(t, func(t *testing.T, l list) {
		c := o.in(t)
		for _, sort := range l.sorts {
			for _, order := range []string{"asc", "desc"} {
				query := "size=3&sort=" + sort + "&order=" + order
				seen := map[string]int{}
				for _, item := range c.walk(with(l.path, query)) {
					seen[item.id()]++
				}
				for _, id := range stay {
					harness.Same(t, query+": times that "+id+" was returned", 1, seen[id])
				}
			}
		}
	})
	close(done)
	writers.Wait()
	for _, l := range lists {
		harness.Eventually(t, func(g Gomega) {
			g.Expect(o.get(with(l.path, "size=1")).page().Total).To(Equal(len(o.walk(with(l.path, "size=1000")))), l.path)
		})
	}
}

// restless creates rows in every list: some that stay unchanged, whose ids it returns, and some to
// be changed.
func (o *organization) restless(stay, busy int) (ids []string) {
	o.t.Helper()
	row := func(id string, number int) {
		at := firstFinding.Add(time.Duration(number/2) * time.Minute) // with ties
		o.create(builder.Repository(id).In(o.namespace).Mutate(func(r *v1alpha1.Repository) {
			committed := v1alpha1.NewTime(at)
			r.Spec.LastCommit = &v1alpha1.Commit{Hash: "8f3e1c2d", CommittedAt: &committed}
		}).Build())
		o.create(builder.Review(id).PullRequest("repo", int32(number+1)).In(o.namespace).Mutate(func(r *v1alpha1.Review) {
			r.Spec.PRTitle, r.Spec.PRAuthor = fmt.Sprint("title ", number/3), fmt.Sprint("author ", number/4)
		}).Build())
		o.create(builder.Finding(id).In(o.namespace).DetectedAt(at).Build(),
			builder.WebhookDelivery(id, at).Endpoint("absent").In(o.namespace).Build(),
			builder.Scan(id, at).In(o.namespace).Ended(at, v1alpha1.ScanSucceeded).Build(),
			builder.TriageOperation(id, "none").In(o.namespace).Build(),
			builder.TriagePolicy(id, "finding.title == 'nobody'").In(o.namespace).Build())
	}
	for i := range stay {
		ids = append(ids, fmt.Sprintf("stay-%02d", i))
		row(ids[i], 2*i)
	}
	for i := range busy {
		row(busyID(i), 2*i+1)
	}
	o.settled(stay + busy)
	o.operations(listedOperation)
	issues := slices.Clone(ids)
	for i := range busy {
		issues = append(issues, busyID(i))
	}
	o.listedIssues(issues...)
	harness.Eventually(o.t, func(g Gomega) { o.showsWhatIsStored(g) })
	return ids
}

func busyID(i int) string { return fmt.Sprintf("busy-%d", i) }

const (
	// maxNewRows bounds how many rows unrest adds to each list, however long it runs: every walk reads all of them.
	maxNewRows = 100
	// newRowEvery is the number of rounds of unrest per new row, so that rows appear during as many
	// walks as possible.
	newRowEvery = 3
)

// unrest changes the busy rows of every list, adds new ones, and deletes the new findings again, until done is closed.
func (o *organization) unrest(done <-chan struct{}, busy int) {
	ctx, c := o.t.Context(), theDeployment.cluster.Client
	for i := 0; ; i++ {
		select {
		case <-done:
			return
		default:
		}
		meta := metav1.ObjectMeta{Namespace: o.namespace, Name: busyID(i % busy)}
		status := []string{"open", "closed"}[i/busy%2]
		decided := []string{"open", "muted"}[i/busy%2]
		answer, err := o.Do(ctx, "PATCH", "/v2/findings/"+meta.Name, fmt.Sprintf(`{"comments":"%d","user_status":%q}`, i, decided))
		if err == nil && answer.Status != http.StatusOK {
			err = fmt.Errorf("PATCH %s: got %d %s, want 200", meta.Name, answer.Status, answer.Body)
		}
		errs := []error{
			err,
			merge(ctx, &v1alpha1.Repository{ObjectMeta: meta}, fmt.Sprintf(`{"spec":{"lastCommit":{"committedAt":%q}}}`, shownTime(firstFinding.Add(time.Duration(i)*time.Minute)))),
			merge(ctx, &v1alpha1.Review{ObjectMeta: meta}, fmt.Sprintf(`{"spec":{"prTitle":"title %d","prAuthor":"author %d","prStatus":%q}}`, i%7, i%5, status)),
			merge(ctx, &v1alpha1.ReviewIssue{ObjectMeta: meta}, fmt.Sprintf(`{"spec":{"description":"change %d"}}`, i)),
		}
		if i%newRowEvery == 0 && i/newRowEvery < maxNewRows {
			id, before := fmt.Sprintf("new-%d", i), builder.Finding(fmt.Sprintf("new-%d", i-newRowEvery)).In(o.namespace).Build()
			errs = append(errs,
				client.IgnoreNotFound(c.Delete(ctx, before)),
				c.Create(ctx, builder.Finding(id).In(o.namespace).Build()),
				c.Create(ctx, builder.Repository(id).In(o.namespace).Build()),
				c.Create(ctx, builder.Scan(id, firstFinding).In(o.namespace).Ended(firstFinding, v1alpha1.ScanSucceeded).Build()),
				c.Create(ctx, builder.WebhookDelivery(id, firstFinding).Endpoint("absent").In(o.namespace).Build()),
				c.Create(ctx, builder.TriageOperation(id, "none").In(o.namespace).Build()),
				c.Create(ctx, builder.Review(id).PullRequest("repo", int32(1000+i)).In(o.namespace).Build()),
				c.Create(ctx, builder.ReviewIssue(id).Review(listedReview).In(o.namespace).Build()))
		}
		if err := errors.Join(errs...); err != nil {
			o.t.Error(err)
			return
		}
	}
}

func merge(ctx context.Context, object client.Object, patch string) error {
	return theDeployment.cluster.Client.Patch(ctx, object, testenv.MergePatch(patch))
}
