package conformance

import (
	"net/url"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Filters of findings are an addition to the contract.
func TestFindings_FiltersLeaveOutWhatDoesNotMatch(t *testing.T) {
	o := newOrganization(t)
	class := func(class string) func(*v1alpha1.Finding) {
		return func(f *v1alpha1.Finding) { f.Spec.Class = class }
	}
	o.create(
		builder.Finding("f-low").In(o.namespace).Build(),
		builder.Finding("f-high").In(o.namespace).Severity("high").Mutate(class("CWE-22")).Build(),
		builder.Finding("f-muted").In(o.namespace).Triage("muted", "").Mutate(class("cwe-22")).Build(),
		builder.Finding("f-active").In(o.namespace).Triage("active", "").Severity("medium").Mutate(class("js/x")).Build(),
		builder.Finding("f-closed").In(o.namespace).Closed(firstFinding, "").Project("repo", "other").Build(),
		builder.Finding("f-other").In(o.namespace).Project("other", "proj").Build(),
	)
	o.settled(6)
	for _, path := range []string{"/v1/findings", "/v2/findings"} {
		for _, test := range []struct{ query, want string }{
			{"status=open", "f-active f-high f-low f-other"},
			{"status=open_muted", "f-muted"},
			{"status=closed", "f-closed"},
			{"user_status=open", "f-closed f-high f-low f-other"},
			{"user_status=active", "f-active"},
			{"user_status=muted", "f-muted"},
			{"severity=high", "f-high"},
			{"severity=medium", "f-active"},
			{"severity=low", "f-closed f-low f-muted f-other"},
			{"repo_id=other", "f-other"},
			{"project_id=other", "f-closed"},
			{"repo_id=repo&project_id=proj", "f-active f-high f-low f-muted"},
			{"class=CWE-22", "f-high"},
			{"class=", "f-active f-closed f-high f-low f-muted f-other"},
			{"repo_id=repo&class=js/x", "f-active"},
			{"project_id=proj&class=js/x", "f-active"},
			{"repo_id=repo/js&class=x", ""},
			{"project_id=proj/js&class=x", ""},
			{"repo_id=none", ""},
			{"status=open&user_status=muted", ""},
			{"status=open&severity=low&project_id=proj", "f-low f-other"},
		} {
			o.wantsIDs(with(path, test.query), strings.Fields(test.want)...)
		}
	}
}

// Each filter, alone and combined, on each list of findings, in one order after the other.
func TestFindings_EachFilterFindsWhatHasTheValue(t *testing.T) {
	o := askedOrganization(t)
	orders := []string{"", "&sort=updated_at", "&order=asc", "&sort=updated_at&order=asc", "&sort=severity", "&sort=severity&order=asc"}
	for n, path := range findingLists {
		for i, test := range []struct{ query, want string }{
			{"tool=gosec", "f-1"},
			{"tool=trivy", "f-2 f-3 f-4"},
			{"tool=Trivy", ""},
			{"rule=G304", "f-1"},
			{"vulnerability=CVE-2019-1549", "f-2 f-3"},
			{"vulnerability=ghsa-29mw-wpgm-hmr9", "f-2"},
			{"vulnerability=CVE-2019-154", ""},
			{"package=openssl", "f-2 f-3"},
			{"package=OpenSSL", "f-2 f-3"},
			{"package=pkg:apk/alpine/openssl", "f-2 f-3"},
			{"package=pkg:apk/alpine/openssl@1.1.1d-r0", "f-3"},
			{"owner=team-b", "f-3"},
			{"file=api/download.go", "f-1"},
			{"file=Web/", "f-2 f-3"},
			{"file=web/", ""},
			{"file=Web", ""},
			{"category=Package", "f-2 f-3"},
			{"category=Secret", "f-4"},
			{"created_since=2026-03-02T00:00:00Z", "f-2 f-3 f-4"},
			{"created_since=2026-03-02T00:00:00Z&created_until=2026-03-03T00:00:00%2B00:00", "f-2"},
			{"created_until=2026-03-02T00:00:00Z", "f-1"},
			{"updated_since=2020-01-01T00:00:00Z", "f-1 f-2 f-3 f-4"},
			{"updated_until=2020-01-01T00:00:00Z", ""},
			{"min_score=7.5", "f-1 f-3"},
			{"min_score=7.51", "f-3"},
			{"min_score=0", "f-1 f-2 f-3"},
			{"min_score=10", ""},
			{"text=TRAVERSAL", "f-1"},
			{"text=api/+go+path", "f-1"},
			{"text=lock", "f-2 f-3"},
			{"text=openssl+1549", "f-2 f-3"},
			{"text=openssl+traversal", ""},
			{"text=gr%C3%96%C3%9Fe", "f-4"},
			{"text=++", "f-1 f-2 f-3 f-4"},
			{"owner=team-a&created_since=2026-03-02T00:00:00Z", "f-2 f-4"},
			{"vulnerability=CVE-2019-1549&owner=team-a&severity=low", "f-2"},
			{"category=Package&text=openssl&min_score=9&updated_since=2020-01-01T00:00:00Z&created_since=2026-03-01T00:00:00Z", "f-3"},
			{"tool=&rule=&vulnerability=&package=&owner=&category=&created_since=&min_score=&text=&file=&policy=", "f-1 f-2 f-3 f-4"},
		} {
			o.wantsIDs(with(path, test.query+orders[(n+i)%len(orders)]), strings.Fields(test.want)...)
		}
	}
}

// Stale decisions and suppressions in the source can be filtered like everything else.
func TestFindings_FiltersFindStaleDecisionsAndSuppressions(t *testing.T) {
	o := newOrganization(t)
	o.create(
		builder.Finding("f-fresh").In(o.namespace).Triage("muted", "").Severity("high").Build(),
		builder.Finding("f-stale").In(o.namespace).Triage("muted", "").Severity("low").Build(),
		builder.Finding("f-suppressed").In(o.namespace).Mutate(func(f *v1alpha1.Finding) {
			f.Spec.Suppression = &v1alpha1.FindingSuppression{Kind: v1alpha1.SuppressionInSource, Justification: "a constant"}
		}).Build(),
	)
	o.settled(3)
	o.patchResource(o.storedFinding("f-stale"), `{"spec":{"details":{"severity":"high"}}}`)
	harness.Eventually(t, func(g Gomega) { g.Expect(o.get("/v1/findings?severity=high").page().Total).To(Equal(2)) })
	for _, path := range findingLists {
		for query, want := range map[string]string{
			"stale=true": "f-stale", "stale=false": "f-fresh f-suppressed", "stale=": "f-fresh f-stale f-suppressed",
			"suppressed=true": "f-suppressed", "suppressed=false": "f-fresh f-stale", "stale=true&suppressed=true": "",
			"stale=false&status=open_muted": "f-fresh f-suppressed", "stale=true&sort=updated_at": "f-stale",
		} {
			o.wantsIDs(with(path, query), strings.Fields(want)...)
		}
	}
	// Repeating the decision bases it on the current facts.
	o.patch("/v1/findings/f-stale", `{"user_status":"muted"}`).wants(200, "the decision again")
	harness.Eventually(t, func(g Gomega) { g.Expect(o.get("/v1/findings?stale=true").page().Total).To(Equal(0)) })
}

// askedOrganization returns an organization for all tests that only read findings by their fields.
func askedOrganization(t *testing.T) *organization {
	t.Helper()
	return shared(t, &theDeployment.asked, func() *organization {
		o := newOrganization(t)
		o.asked()
		return o
	})
}

// asked creates findings that differ in all filterable fields.
func (o *organization) asked() {
	o.t.Helper()
	march := time.Date(2026, 3, 1, 8, 30, 0, 0, time.UTC)
	openssl := func(version string, score string, aliases ...string) func(*v1alpha1.Finding) {
		return func(f *v1alpha1.Finding) {
			s := &f.Spec
			s.RuleID, s.Vulnerability = "CVE-2019-1549", &v1alpha1.FindingVulnerability{ID: "CVE-2019-1549", Aliases: aliases}
			s.Package = &v1alpha1.FindingPackage{Name: "OpenSSL", PURL: "pkg:apk/alpine/openssl@" + version, Version: version}
			s.Details.Score, s.Details.Location = score, &v1alpha1.FileLocation{FilePath: "Web/Yarn.LOCK"}
		}
	}
	owned := func(name, owner string) *v1alpha1.Project {
		return builder.Project(name).In(o.namespace).Mutate(func(p *v1alpha1.Project) { p.Spec.Owner = owner }).Build()
	}
	o.create(owned("a", "team-a"), owned("b", "team-b"),
		builder.Finding("f-1").In(o.namespace).Title("Path Traversal").Tool("gosec", v1alpha1.CategoryCode).DetectedAt(march).
			Mutate(func(f *v1alpha1.Finding) {
				f.Spec.RuleID, f.Spec.Details.Score = "G304", "7.5"
				f.Spec.Details.Location = &v1alpha1.FileLocation{FilePath: "api/download.go"}
			}).Build(),
		builder.Finding("f-2").In(o.namespace).Title("openssl: CVE-2019-1549").Project("repo", "a").Tool("trivy", v1alpha1.CategoryPackage).
			DetectedAt(march.AddDate(0, 0, 1)).Mutate(openssl("1.1.1c-r0", "5.3", "GHSA-29mw-wpgm-hmr9")).Build(),
		builder.Finding("f-3").In(o.namespace).Title("openssl: CVE-2019-1549").Project("repo", "b").Tool("trivy", v1alpha1.CategoryPackage).
			DetectedAt(march.AddDate(0, 0, 2)).Mutate(openssl("1.1.1d-r0", "9.8")).Build(),
		builder.Finding("f-4").In(o.namespace).Title("Key in Größe").Project("repo", "a").Tool("trivy", v1alpha1.CategorySecret).
			DetectedAt(march.AddDate(0, 0, 3)).Build(),
	)
	o.settled(4)
	harness.Eventually(o.t, func(g Gomega) {
		g.Expect(o.get("/v1/findings?owner=team-a").page().Total).To(Equal(2))
		g.Expect(o.get("/v1/findings?owner=team-b").page().Total).To(Equal(1))
	})
}

// A cursor is bound to the filters' values, and the pages with a filter are those of its list.
func TestFindings_CursorsAreBoundToTheValuesOfFilters(t *testing.T) {
	o := askedOrganization(t)
	for _, path := range findingLists {
		for _, test := range []struct{ first, same, other string }{
			{"status=open", "status=open", "status=open&severity=low"},
			{"tool=trivy", "tool=trivy&tool=", "tool=gosec"},
			{"vulnerability=CVE-2019-1549", "vulnerability=cve-2019-1549", "rule=CVE-2019-1549"},
			{"package=openssl", "package=OPENSSL", "package=pkg:apk/alpine/openssl"},
			{"owner=team-a", "owner=team-a", "owner=team-b"},
			{"category=Package", "category=Package&x=y", ""},
			{"created_since=2026-03-01T00:00:00Z", "created_since=2026-03-01T01:00:00%2B01:00", "updated_since=2026-03-01T00:00:00Z"},
			{"created_until=2030-03-01T00:00:00Z", "created_until=2030-03-01t00:00:00.0z", "created_until=2030-03-01T00:00:01Z"},
			{"updated_since=2020-03-01T00:00:00Z", "updated_since=2020-03-01T00:00:00Z", "updated_until=2020-03-01T00:00:00Z"},
			{"updated_until=2099-03-01T00:00:00Z", "updated_until=2099-03-01T00:00:00Z", "updated_since=2020-03-01T00:00:00Z"},
			{"min_score=5", "min_score=5.0", "min_score=5.1"},
			{"text=openssl+cve", "text=OpenSSL++CVE+", "text=openssl"},
		} {
			first := o.get(with(path, test.first+"&size=1")).page()
			if !first.HasMore {
				t.Fatalf("%s?%s has one page", path, test.first)
			}
			next := "&size=1&cursor=" + url.QueryEscape(first.NextCursor)
			second := o.get(with(path, test.same+next)).page()
			if len(second.Items) != 1 || second.ids()[0] == first.ids()[0] || second.Total != first.Total {
				t.Errorf("%s?%s: then %v of %d, first %v of %d", path, test.same, second.ids(), second.Total, first.ids(), first.Total)
			}
			o.get(with(path, strings.TrimPrefix(test.other+next, "&"))).badQuery(test.other)
		}
	}
}

func TestFindings_UnknownFilterValuesAreRefused(t *testing.T) {
	c := anyKey(t)
	for _, path := range findingLists {
		for _, query := range []string{
			"status=muted", "status=OPEN", "status=%20", "user_status=closed", "severity=critical",
			"repo_id=%00", "project_id=%ff", "class=%ff", "repo_id=" + strings.Repeat("a", 254), "status=open&status=closed",
			"category=code", "category=Other", "tool=%ff", "tool=" + strings.Repeat("a", 129), "rule=" + strings.Repeat("a", 513), "owner=" + strings.Repeat("a", 257),
			"vulnerability=" + strings.Repeat("a", 129), "package=" + strings.Repeat("a", 513), "file=" + strings.Repeat("a", 1025), "policy=%00", "policy=" + strings.Repeat("a", 254), "text=" + strings.Repeat("a", 257), "text=1+2+3+4+5+6+7+8+9",
			"created_since=monday", "created_until=2026-03-01", "updated_since=1", "updated_until=2026-02-30T00:00:00Z",
			"created_since=2026-03-02T00:00:00Z&created_until=2026-03-01T00:00:00Z", "updated_since=2026-03-02T00:00:00Z&updated_until=2026-03-01T00:00:00Z",
			"min_score=-1", "min_score=10.1", "min_score=x", "min_score=1e1", "min_score=%2B1", "min_score=.5", "min_score=NaN", "tool=a&tool=b", "text=a&text=b", "stale=1", "suppressed=True",
		} {
			c.get(with(path, query)).badQuery(query)
		}
	}
}
