package api_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/apiclient"
	"github.com/appsec-dev/findings-operator/test/builder"
)

var endpoints = []string{"/v1/findings", "/v2/findings"}

func TestAnEmptyListIsAnArray(t *testing.T) {
	c := newOrganization(t).key("ci")
	for _, endpoint := range endpoints {
		a := c.get(endpoint).wants(200, "an organization without findings")
		if want := `{"items":[],"has_more":false,"next_cursor":"","total":0}`; string(a.body) != want {
			t.Errorf("%s: got %s, want %s", endpoint, a.body, want)
		}
	}
}

// The contract's check finds members that are missing; this one those that are not documented.
func TestItemsHoldNoMemberThatIsNotDocumented(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	place := v1alpha1.FileLocation{FilePath: "a.go", LineNumber: 1}
	o.finding(c, builder.Finding("f-full").Mutate(func(f *v1alpha1.Finding) {
		f.Spec.Details.Location = &place
		f.Spec.Details.SupportingFiles = []v1alpha1.FileLocation{place}
		f.Spec.Details.EndpointLocations = []v1alpha1.EndpointLocation{{Type: v1alpha1.EndpointGRPC}}
		f.Spec.Details.ValidationEvidence = []v1alpha1.ValidationEvidence{{Criteria: "tried"}}
	}))
	spec, err := apiclient.Contract()
	if err != nil {
		t.Fatal(err)
	}
	for endpoint, schema := range map[string]string{"/v1/findings": "FindingV1List", "/v2/findings": "FindingV2List"} {
		for _, path := range undocumented(spec.Components.Schemas[schema].Value, decoded[any](c.get(endpoint)), endpoint) {
			t.Errorf("%s is not documented", path)
		}
	}
}

// undocumented lists the members of a value that its schema does not describe, at any depth.
func undocumented(schema *openapi3.Schema, value any, path string) []string {
	var found []string
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			found = append(found, undocumented(schema.Items.Value, item, path+"[]")...)
		}
	case map[string]any:
		if schema.AdditionalProperties.Schema != nil {
			return nil
		}
		for name, member := range value {
			if property := schema.Properties[name]; property != nil {
				found = append(found, undocumented(property.Value, member, path+"."+name)...)
			} else {
				found = append(found, path+"."+name)
			}
		}
	}
	return found
}

func TestListIsSortedByCreationWithTheNewestFirst(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	ids := o.findings(c, 3)
	slices.Reverse(ids)
	for _, endpoint := range endpoints {
		for _, query := range []string{"", "?sort=created_at", "?order=desc", "?sort=created_at&order=desc&size=100"} {
			if got := idsOf(decoded[listOf[shown]](c.get(endpoint + query)).Items); !cmp.Equal(got, ids) {
				t.Errorf("%s%s: got %v, want %v", endpoint, query, got, ids)
			}
		}
	}
}

func TestAPageHolds100ItemsUnlessAsked(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	o.findings(c, 101)
	for _, endpoint := range endpoints {
		first := decoded[listOf[shown]](c.get(endpoint))
		if len(first.Items) != 100 || !first.HasMore || first.NextCursor == "" || first.Total != 101 {
			t.Errorf("%s: %d items, has_more %v, next_cursor %q, total %d", endpoint, len(first.Items), first.HasMore, first.NextCursor, first.Total)
		}
		all := decoded[listOf[shown]](c.get(endpoint + "?size=1000"))
		if len(all.Items) != 101 || all.HasMore || all.NextCursor != "" {
			t.Errorf("%s?size=1000: %d items, has_more %v, next_cursor %q", endpoint, len(all.Items), all.HasMore, all.NextCursor)
		}
	}
}

// pages walks a list to its end.
func (c *caller) pages(path string, each func(page listOf[shown])) []string {
	c.t.Helper()
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	var ids []string
	cursor := ""
	for range 1000 {
		page := decoded[listOf[shown]](c.get(path+separator+"cursor="+url.QueryEscape(cursor)).wants(200, "a page"))
		ids = append(ids, idsOf(page.Items)...)
		if each != nil {
			each(page)
		}
		if page.HasMore != (page.NextCursor != "") {
			c.t.Fatalf("%s: has_more is %v and next_cursor %q", path, page.HasMore, page.NextCursor)
		}
		if !page.HasMore {
			return ids
		}
		cursor = page.NextCursor
	}
	c.t.Fatalf("%s: the list has no end", path)
	return nil
}

func TestPagesHoldEveryFindingOnceInOrder(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	ids := o.findings(c, 23)
	for _, endpoint := range endpoints {
		for _, size := range []int{1, 7, 22, 23, 24} {
			path := fmt.Sprintf("%s?size=%d&order=asc", endpoint, size)
			if got := c.pages(path, nil); !cmp.Equal(got, ids) {
				t.Errorf("%s: got %v", path, got)
			}
			backward := c.pages(fmt.Sprintf("%s?size=%d&order=desc", endpoint, size), nil)
			slices.Reverse(backward)
			if !cmp.Equal(backward, ids) {
				t.Errorf("%s size %d backward: got %v", endpoint, size, backward)
			}
			updated := c.pages(fmt.Sprintf("%s?size=%d&sort=updated_at", endpoint, size), nil)
			slices.Sort(updated)
			if !cmp.Equal(updated, ids) {
				t.Errorf("%s size %d by updated_at: got %v", endpoint, size, updated)
			}
		}
	}
}

func TestFindingsOfOneTimeAreSortedByIDInTheAskedDirection(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, id := range []string{"b", "a", "c"} {
		o.finding(c, builder.Finding(id).DetectedAt(at))
	}
	for order, want := range map[string]string{"asc": "abc", "desc": "cba"} {
		if got := strings.Join(c.pages("/v1/findings?size=1&order="+order, nil), ""); got != want {
			t.Errorf("order %s: got %s, want %s", order, got, want)
		}
	}
}

func TestTheSizeMayChangeBetweenPages(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	ids := o.findings(c, 5)
	first := decoded[listOf[shown]](c.get("/v1/findings?order=asc&size=2"))
	rest := decoded[listOf[shown]](c.get("/v1/findings?order=asc&size=1000&cursor=" + first.NextCursor))
	if got := append(idsOf(first.Items), idsOf(rest.Items)...); !cmp.Equal(got, ids) {
		t.Errorf("got %v, want %v", got, ids)
	}
}

func TestACursorHoldsForItsOwnListAlone(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	o.findings(c, 3)
	other := newOrganization(t).key("ci")
	cursor := decoded[listOf[shown]](c.get("/v1/findings?size=1&status=open")).NextCursor
	c.get("/v1/findings?status=open&cursor="+cursor).wants(200, "its own list")
	c.get("/v1/findings?sort=created_at&order=desc&status=open&size=3&cursor="+cursor).wants(200, "its own list with the defaults written out")
	for _, test := range []struct {
		reason string
		caller *caller
		path   string
	}{
		{"another endpoint", c, "/v2/findings?status=open&cursor=" + cursor},
		{"another sort", c, "/v1/findings?status=open&sort=updated_at&cursor=" + cursor},
		{"another order", c, "/v1/findings?status=open&order=asc&cursor=" + cursor},
		{"without the filter", c, "/v1/findings?cursor=" + cursor},
		{"another value of the filter", c, "/v1/findings?status=closed&cursor=" + cursor},
		{"one filter more", c, "/v1/findings?status=open&severity=low&cursor=" + cursor},
		{"another organization", other, "/v1/findings?status=open&cursor=" + cursor},
		{"cut short", c, "/v1/findings?status=open&cursor=" + cursor[:len(cursor)-1]},
		{"made longer", c, "/v1/findings?status=open&cursor=" + cursor + "A"},
		{"no cursor at all", c, "/v1/findings?status=open&cursor=x"},
		{"too long", c, "/v1/findings?status=open&cursor=" + strings.Repeat("A", 5000)},
	} {
		test.caller.get(test.path).wantsError(400, "Invalid query parameter", test.reason)
	}
	for i := range cursor {
		tampered := []byte(cursor)
		tampered[i] ^= 1
		if _, err := url.QueryUnescape(string(tampered)); err != nil {
			continue
		}
		c.get("/v1/findings?status=open&cursor="+url.QueryEscape(string(tampered))).wantsError(400, "Invalid query parameter", fmt.Sprintf("byte %d changed", i))
	}
}

func TestFiltersAndTheirTotals(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	class := func(class string) func(*v1alpha1.Finding) { return func(f *v1alpha1.Finding) { f.Spec.Class = class } }
	for i, b := range []*builder.FindingBuilder{
		builder.Finding("a").Severity(v1alpha1.LevelHigh).Mutate(class("CWE-22")),
		builder.Finding("b").Severity(v1alpha1.LevelLow).Mutate(class("CWE-89")).Triage(v1alpha1.UserStatusMuted, "no"),
		builder.Finding("c").Severity(v1alpha1.LevelLow).Project("repo", "other").Triage(v1alpha1.UserStatusActive, "yes"),
		builder.Finding("d").Severity(v1alpha1.LevelMedium).Project("other", "proj").Closed(at, "scan-1"),
	} {
		o.finding(c, b.DetectedAt(at.Add(time.Duration(i)*time.Minute)))
	}
	for query, want := range map[string]string{
		"":                                 "abcd",
		"status=open":                      "ac",
		"status=open_muted":                "b",
		"status=closed":                    "d",
		"user_status=open":                 "ad",
		"user_status=active":               "c",
		"user_status=muted":                "b",
		"severity=high":                    "a",
		"severity=medium":                  "d",
		"severity=low":                     "bc",
		"repo_id=repo":                     "abc",
		"repo_id=none":                     "",
		"project_id=proj":                  "abd",
		"repo_id=repo&project_id=proj":     "ab",
		"class=CWE-22":                     "a",
		"class=cwe-22":                     "",
		"class=":                           "abcd",
		"status=open&severity=low":         "c",
		"status=open&user_status=muted":    "",
		"severity=low&repo_id=repo&x=y":    "bc",
		"repo_id=repo&class=CWE-89&size=1": "b",
	} {
		for _, endpoint := range endpoints {
			path := endpoint + "?order=asc&" + query
			page := decoded[listOf[shown]](c.get(path).wants(200, query))
			if got := strings.Join(idsOf(page.Items), ""); got != want || page.Total != len(want) {
				t.Errorf("%s: got %q of %d, want %q of %d", path, got, page.Total, want, len(want))
			}
		}
	}
}

func TestABadQueryIsRefused(t *testing.T) {
	c := newOrganization(t).key("ci")
	for _, query := range []string{
		"size=0", "size=1001", "size=-1", "size=ten", "size=1.5", "size=1&size=2",
		"sort=name", "order=up", "order=asc&order=asc",
		"status=muted", "user_status=closed", "severity=critical", "severity=High",
		"repo_id=" + strings.Repeat("a", 254), "project_id=a%00b", "repo_id=%ff", "class=%ff", "size=%zz",
	} {
		for _, endpoint := range endpoints {
			c.get(endpoint+"?"+query).wantsError(400, "Invalid query parameter", query)
		}
	}
	a := c.get("/v1/findings?size=0")
	if want := `{"error":"Invalid query parameter","detail":"size must be an integer from 1 to 1000"}`; !jsonEqual(t, a.body, want) {
		t.Errorf("got %s, want %s", a.body, want)
	}
}

func TestAnUnknownParameterIsIgnored(t *testing.T) {
	c := newOrganization(t).key("ci")
	for _, endpoint := range endpoints {
		c.get(endpoint+"?page=2&page=3&Size=0&foo[bar]=%ff&a;b=%zz").wants(200, "unknown names")
	}
}

func TestAListShowsOneOrganizationAlone(t *testing.T) {
	o, other := newOrganization(t), newOrganization(t)
	c, foreign := o.key("ci"), other.key("ci")
	o.finding(c, builder.Finding("mine"))
	other.finding(foreign, builder.Finding("theirs"))
	for _, endpoint := range endpoints {
		page := decoded[listOf[shown]](c.get(endpoint))
		if got := idsOf(page.Items); !cmp.Equal(got, []string{"mine"}) || page.Total != 1 {
			t.Errorf("%s: got %v of %d", endpoint, got, page.Total)
		}
	}
}

// While others create, delete and triage findings, a walk shows each finding that stays as it
// is exactly once.
func TestAWalkUnderWritersShowsEveryOtherFindingOnce(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	settled := o.findings(c, 30)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for w := range 3 {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				churn := builder.Finding(fmt.Sprintf("churn-%d-%d", w, i)).In(o.namespace).
					DetectedAt(start.Add(time.Duration((i*7)%30) * time.Minute)).Build()
				if err := env.Client.Create(t.Context(), churn); err != nil {
					t.Errorf("create: %v", err)
					return
				}
				if err := o.kubectlPatch(t.Context(), churn.Name, `{"spec":{"triage":{"userStatus":"muted"}}}`); err != nil {
					t.Errorf("patch: %v", err)
					return
				}
				if err := client.IgnoreNotFound(env.Client.Delete(t.Context(), churn)); err != nil {
					t.Errorf("delete: %v", err)
					return
				}
			}
		})
	}
	for walk := range 10 {
		order := []string{"asc", "desc"}[walk%2]
		for _, sort := range []string{"created_at", "updated_at"} {
			seen := map[string]int{}
			for _, id := range c.pages("/v1/findings?size=3&order="+order+"&sort="+sort, nil) {
				seen[id]++
			}
			for _, id := range settled {
				if seen[id] != 1 {
					t.Errorf("walk %d by %s %s: %s came %d times", walk, sort, order, id, seen[id])
				}
			}
		}
	}
	close(stop)
	writers.Wait()
}

func TestHEADAnswersLikeGETWithoutABody(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	o.finding(c, builder.Finding("f-1"))
	for _, path := range []string{"/v1/findings", "/v2/findings?size=1", "/v2/repos/repo/projects/proj/findings/f-1", "/v1/findings?size=0", "/nowhere"} {
		get, head := c.get(path), c.do("HEAD", path, "")
		if head.status != get.status || len(head.body) != 0 || head.header.Get("Content-Length") != get.header.Get("Content-Length") {
			t.Errorf("%s: HEAD gave %d and %q bytes, GET %d and %q", path, head.status, head.header.Get("Content-Length"), get.status, get.header.Get("Content-Length"))
		}
	}
}

func TestAKubectlPatchShowsInRESTWithinASecond(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	f := o.finding(c, builder.Finding("f-1"))
	before := decoded[shown](c.get(pathOf(f)))
	if err := o.kubectlPatch(t.Context(), "f-1", `{"spec":{"triage":{"userStatus":"muted","comments":"by hand"}}}`); err != nil {
		t.Fatal(err)
	}
	NewWithT(t).Eventually(func(g Gomega) {
		after := decoded[shown](c.get(pathOf(f)))
		g.Expect(after.UserStatus).To(Equal("muted"))
		g.Expect(after.Status).To(Equal("open_muted"))
		g.Expect(after.Comments).To(Equal("by hand"))
		g.Expect(after.UpdatedAt >= before.UpdatedAt).To(BeTrue(), "updated_at went back")
		g.Expect(after.CreatedAt).To(Equal(before.CreatedAt))
	}).WithTimeout(time.Second).WithPolling(5 * time.Millisecond).Should(Succeed())
}

func jsonEqual(t testing.TB, got []byte, want string) bool {
	t.Helper()
	var a, b any
	if err := json.Unmarshal(got, &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &b); err != nil {
		t.Fatal(err)
	}
	return cmp.Equal(a, b)
}
