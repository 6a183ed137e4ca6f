package conformance

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Trends are an addition to the contract.

// total returns the number of findings that match a query.
func (o *organization) total(query url.Values) float64 {
	o.t.Helper()
	return o.get(with("/v2/finding-counts", query.Encode())).wants(200, "the counts").object()["total"].(float64)
}

// The row that the controllers write agrees with the REST counts of that day, for all projects and for
// some.
func TestTrends_AgreeWithTheCountsOnTheDayTheyAreTaken(t *testing.T) {
	o := emptyOrganization(t, plenty)
	owned := func(name, owner string) *v1alpha1.Project {
		return builder.Project(name).In(o.namespace).Mutate(func(p *v1alpha1.Project) { p.Spec.Owner = owner }).Build()
	}
	o.create(
		builder.Finding("f-first").In(o.namespace).Project("repo", "a").DetectedAt(time.Now().AddDate(0, 0, -9)).Build(),
		builder.Finding("f-now").In(o.namespace).Severity(v1alpha1.LevelHigh).DetectedAt(time.Now()).Build(),
		builder.Finding("f-worst").In(o.namespace).Project("repo", "b").Severity(v1alpha1.LevelHigh).
			Mutate(func(f *v1alpha1.Finding) { f.Spec.Details.Score = "9.1" }).Build(),
		builder.Finding("f-medium").In(o.namespace).Severity(v1alpha1.LevelMedium).Build(),
		builder.Finding("f-muted").In(o.namespace).Suppressed("inSource", "known").Build(),
		builder.Finding("f-gone").In(o.namespace).Closed(time.Now(), "s-1").Build(),
	)
	o.settled(6)
	// A row stays for an hour: the projects are created last, so that each is counted with all of its
	// findings.
	o.create(builder.Repository("repo").In(o.namespace).URL("https://github.com/acme/repo").Build(),
		builder.Project("proj").In(o.namespace).Build(), owned("a", "team-a"), owned("b", "team-b"))
	var got record
	harness.Eventually(t, func(g Gomega) {
		got = o.get("/v2/trends?group=project_id").wants(200, "the trends").object()
		g.Expect(got.list("groups")).To(HaveLen(3), "each project has a row")
		g.Expect(o.total(url.Values{"owner": {"team-a"}})).To(Equal(1.0), "findings are counted for a project that came later")
	})
	wantsShape(t, "trends", got, trendsShape)
	wantsShapes(t, "days", got.records("days"), trendDayShape)
	wantsShapes(t, "groups", got.records("groups"), trendGroupShape)
	days := func(query string) (days []any) {
		for _, row := range o.get("/v2/trends"+query).wants(200, "the trends").object().records("days") {
			days = append(days, row["day"])
		}
		return days
	}
	before, until, after := days(""), days("?to=9999-12-31"), days("")
	if !slices.Equal(until, before) && !slices.Equal(until, after) { // midnight may be between two of them
		t.Errorf("the days up to one in the future are %v, want those up to today", until)
	}
	for _, query := range []url.Values{{}, {"project_id": {"b"}}, {"owner": {"team-a"}}, {"repo_id": {"repo"}}, {"repo_id": {"none"}}} {
		days := o.get(with("/v2/trends", query.Encode())).wants(200, "the trends").object().records("days")
		if query.Get("repo_id") == "none" {
			harness.Same(t, "the days of no project", 0, len(days))
			continue
		}
		today := days[len(days)-1]
		open := today.object("open")
		wantsShape(t, "open", open, trendOpenShape)
		wantsShape(t, "age", today.object("age"), trendSpreadShape)
		for _, c := range []struct {
			what string
			got  any
			of   url.Values
		}{
			{"open", open["total"], url.Values{"status": {"open"}}},
			{"critical", open["critical"], url.Values{"status": {"open"}, "severity": {"high"}, "min_score": {"9"}}},
			{"high", open["high"], url.Values{"status": {"open"}, "severity": {"high"}}},
			{"medium", open["medium"], url.Values{"status": {"open"}, "severity": {"medium"}}},
			{"low", open["low"], url.Values{"status": {"open"}, "severity": {"low"}}},
			{"muted", today["open_muted"], url.Values{"status": {"open_muted"}}},
		} {
			for name, values := range query {
				c.of[name] = values
			}
			harness.Same(t, fmt.Sprintf("of %q those that are %s", query.Encode(), c.what), o.total(c.of), c.got)
		}
	}
}

func TestTrends_ImpossibleDaysAreRefused(t *testing.T) {
	o := sampleOrganization(t)
	for _, query := range []string{
		"from=2026-02-30", "to=yesterday", "from=2026-03-02&to=2026-03-01", "from=2000-01-01", "from=9999-12-31", "from=9999-12-30&to=9999-12-31",
		"group=tool", "values=0", "tool=gosec",
	} {
		o.get("/v2/trends?"+query).wants(400, query)
	}
	got := o.get("/v2/trends?from=2026-01-01&to=2026-01-01").wants(200, "before all history").object()
	if len(got.list("days"))+len(got.list("groups")) != 0 {
		t.Errorf("history of a day before there was any: %v", got)
	}
}
