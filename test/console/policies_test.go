package console_test

import (
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// verdicts expects the policy to mute these findings and no others.
func (o *organization) verdicts(policy string, muted map[string]bool) {
	o.Helper()
	harness.Eventually(o.TB, func(g Gomega) {
		for name, is := range muted {
			verdict := o.finding(name).Status.Verdict
			g.Expect(verdict != nil && string(verdict.Policy) == policy).To(Equal(is), name)
		}
	})
}

func TestAListBecomesARuleThatIsPreviewedAppliedAndStopped(t *testing.T) {
	t.Parallel()
	o := newOrganization(t)
	o.has(some(6)...) // every other one is by gosec
	o.hasOthers("The signing key is in the source")
	p := loggedIn(t, o.key("ada", v1alpha1.Scopes()...))
	p.goes("/console/findings?tool=gosec&stale=false")
	p.clicks(`a[href^="/console/policies/_new"]`)
	p.reads("main", "A new policy", "Not in the policy", "Decision in doubt: not in doubt")
	p.sees("!document.querySelector('#manifest')") // without a reason it could not be applied
	p.sees(`document.querySelector("#match").value === "finding.tool == 'gosec'"`)
	p.do(chromedp.SetValue("#match", "finding.tool = 1"), chromedp.SetValue("#name", "mute-gosec"))
	p.clicks(`button[value="preview"]`)
	p.reads(".wrong", "The reason is required to mute")
	p.do(chromedp.SetValue("#reason", "used-in-tests"))
	p.clicks(`button[value="preview"]`)
	p.reads(".wrong", "The expression does not compile", "line 1, column")
	p.reads("main", "Not in the policy", "Decision in doubt: not in doubt")
	p.sees(`document.querySelector("#name").value === "mute-gosec" && document.querySelector("#reason").value === "used-in-tests"`)
	p.do(chromedp.SetValue("#match", "finding.tool == 'gosec'"))
	p.clicks(`button[value="yaml"]`)
	p.reads("#manifest", "name: mute-gosec", "reason: used-in-tests", "match: finding.tool == 'gosec'")
	p.clicks(`button[value="preview"]`)
	p.reads("main", "mute-gosec", "preview", "by apikey/ada", "Would decide about", "Finding number 0")
	p.sees(`[...document.querySelectorAll(".figures dd")].map((n) => n.textContent.trim()).join() === "3,3,0,0,0"`)
	gosec := map[string]bool{"f-0000": true, "f-0001": false, "f-0002": true, "f-0004": true}
	p.clicks(`button[value="apply"]`)
	p.reads("main", "in force", "Stop it")
	o.verdicts("mute-gosec", gosec)
	p.sees(`document.querySelector('.figures a[href="/console/findings?policy=mute-gosec"]')?.textContent === "3"`) // no reload
	p.goes("/console/policies")
	p.reads("main", "mute-gosec", "in force", "p-wrong", "does not compile", "Fix the error shown below")
	p.sees(`document.querySelector('td a[href="/console/findings?policy=mute-gosec"]').textContent === "3"`)
	p.clicks(`td a[href="/console/findings?policy=mute-gosec"]`)
	p.sees(`document.querySelector(".total strong").textContent === "3" && document.querySelectorAll(".row").length === 3`)
	p.sees(`((f) => f.querySelector(".word").textContent === "mute-gosec" && f.querySelector(".count").textContent === "3")(document.querySelector('[aria-labelledby="facet-policy"]'))`)
	p.clicks(`a[href="/console/policies/_new?policy=mute-gosec"]`)
	p.reads(".conflict", "Policy: mute-gosec", "cannot read what other policies decide")
	p.goes("/console/policies")
	p.clicks(`main a[href="/console/policies/mute-gosec"]`)
	p.sees(`document.querySelector('.figures a[href="/console/findings?policy=mute-gosec"]').textContent === "3"`)
	p.clicks(`button[value="preview"]`)
	p.reads("main", "Apply it", "stopped", "what it muted is open again")
	o.verdicts("mute-gosec", map[string]bool{"f-0000": false, "f-0002": false, "f-0004": false})
	p.sees(`document.querySelector(".figures").innerText.includes("Would decide about")`)
	p.goes("/console/findings")
	p.sees(`!!document.querySelector(".facet") && !document.querySelector('[aria-labelledby="facet-policy"]')`)

	p.goes("/console/findings")
	p.clicks(`#finding-f-0001 input[name="id"]`)
	p.clicks(`#finding-f-0003 input[name="id"]`)
	p.do(chromedp.SetValue("#many-comments", strings.Repeat("不", 400))) // too long for a redirect
	p.clicks(`button[formaction="/console/policies/_new"]`)
	p.sees(`location.search.includes("tool=semgrep")`) // where a reload or a login leads
	p.sees(`document.querySelector("#match")?.value.includes("finding.tool == 'semgrep'") && !document.querySelector("#match").value.includes("severity")`)
	p.sees(`((form) => [1, 2].map(() => form.dispatchEvent(new SubmitEvent("submit", { cancelable: true }))).join() === "true,false")(document.querySelector(".draft"))`)
	p.reads("#messages", "It is being sent. Wait for the answer.")

	p.goes("/console/keys")
	p.reads("main", "ada", "yours", "valid", "described", "The signing key is in the source", "policies:write")
	p.do(chromedp.EmulateViewport(390, 900))
	p.goes("/console/keys")
	p.reads("tbody", "ends", "never used")
	p.sees("[...document.querySelectorAll('tbody tr')].every((row) => row.offsetHeight < 100 && row.cells[0].offsetWidth > 180)")
}

func TestADeliveryIsSentAgainFromItsPage(t *testing.T) {
	t.Parallel()
	o := newOrganization(t)
	ids := make(chan string, 16)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { ids <- r.Header.Get("Webhook-Id") }))
	defer receiver.Close()
	env.Create(t, builder.WebhookEndpoint("team").URL(receiver.URL).In(o.namespace).Build(),
		builder.WebhookDelivery("d-sent", time.Now()).Endpoint("team").In(o.namespace).Build())
	p := loggedIn(t, o.key("ada", v1alpha1.Scopes()...))
	harness.Eventually(t, func(g Gomega) {
		delivery := testenv.Get(t, g, env, builder.WebhookDelivery("d-sent", time.Now()).In(o.namespace).Build())
		g.Expect(delivery.Status.Phase).To(Equal(v1alpha1.WebhookDeliveryDelivered))
	})
	p.goes("/console/deliveries/d-sent")
	p.sees(`document.querySelectorAll(".delivery tbody tr").length === 1`)
	p.clicks(".delivery form button")
	p.sees(`document.querySelectorAll(".delivery tbody tr").length === 2 && document.querySelector(".delivery .badge").textContent === "delivered"`)
	p.reads("main", "Redelivery requested", "200 OK")
	receiver.Close()
	close(ids)
	sent := map[string]int{}
	for id := range ids {
		sent[id]++
	}
	if sent["d-sent"] != 2 {
		t.Errorf("the receiver got %v", sent)
	}
}

// The pages do not offer actions that a key may not perform, and refuse them if they are sent
// nevertheless.
func TestAKeyThatMayNotWriteGetsYAMLAndIsRefused(t *testing.T) {
	o := newOrganization(t)
	o.hasOthers("The signing key is in the source")
	v := newUser(t, o.key("reads", v1alpha1.ScopeFindingsRead, v1alpha1.ScopeFindingsTriage, v1alpha1.ScopeWebhooksRead))
	token := v.token()
	draft := url.Values{"token": {token}, "match": {"true"}, "name": {"mute-all"},
		"user_status": {"muted"}, "reason": {"duplicate"}, "do": {"yaml"}}
	if got := v.asks("/console/policies/_new?tool=gosec", draft); got.StatusCode != http.StatusOK || !strings.Contains(got.text, "kind: TriagePolicy") ||
		strings.Contains(got.text, `value="preview"`) {
		t.Errorf("the draft answers %s", got.Status)
	}
	draft.Set("do", "preview")
	for path, form := range map[string]url.Values{
		"/console/policies/_new": draft, "/console/policies/p-1": {"token": {token}, "mode": {"apply"}, "generation": {"1"}},
		"/console/deliveries/d-1/redeliver": {"token": {token}},
	} {
		if got := v.asks(path, form); got.StatusCode != http.StatusForbidden || !strings.Contains(got.text, "lacks the scope") {
			t.Errorf("%s answers %s", path, got.Status)
		}
		form.Del("token")
		harness.Same(t, path+" without a token", http.StatusForbidden, v.asks(path, form).StatusCode)
	}
	many := url.Values{"token": {token}, "id": slices.Repeat([]string{"x"}, 401)}
	if got := v.asks("/console/policies/_new", many); got.StatusCode != http.StatusBadRequest || !strings.Contains(got.text, "At most 400") {
		t.Errorf("a selection of 401 answers %s", got.Status)
	}
	harness.Same(t, "the keys", http.StatusForbidden, v.asks("/console/keys", nil).StatusCode)
	harness.Lacks(t, "the page does not offer to apply", v.asks("/console/policies/p-1", nil).text, "Apply it")
	got := v.asks("/console/deliveries/d-1", nil)
	harness.Contains(t, "the page does not offer to send again", got.text, "kubectl findings redeliver")
	harness.Lacks(t, "the page does not offer to send again", got.text, "Send again")
}

var draftedMatch = regexp.MustCompile(`(?s)<textarea id="match"[^>]*>(.*?)</textarea>`)

// A policy created from a list matches what the list shows under its filters.
func TestARuleMatchesWhatTheListShows(t *testing.T) {
	o := newOrganization(t)
	o.has(append(some(6), builder.Finding("f-dep").Title("Größe of OPENSSL, 'quoted' \\").Mutate(func(f *v1alpha1.Finding) {
		f.Spec.RuleID, f.Spec.Class, f.Spec.Details.Score = "it's\\a\nrule", "CWE-1", "7.5"
		f.Spec.Vulnerability = &v1alpha1.FindingVulnerability{ID: "CVE-2026-1", Aliases: []string{"GHSA-x"}}
		f.Spec.Package = &v1alpha1.FindingPackage{Name: "OpenSSL", PURL: "pkg:apk/alpine/openssl@1.1"}
		f.Spec.Details.Location = &v1alpha1.FileLocation{FilePath: "test/lib/a.go"}
	}).DetectedAt(found), builder.Finding("f-scoped").Mutate(func(f *v1alpha1.Finding) {
		f.Spec.Package = &v1alpha1.FindingPackage{Name: "@angular/core", PURL: "pkg:npm/@angular/core@12"}
	}).DetectedAt(found))...)
	key := o.key("ada", v1alpha1.Scopes()...)
	v := newUser(t, key)
	token := v.token()
	for _, filters := range []url.Values{
		{"severity": {"high"}}, {"tool": {"gosec"}, "severity": {"medium"}}, {"rule": {"it's\\a\nrule"}}, {"class": {"CWE-1"}}, {"category": {"Code"}},
		{"vulnerability": {"cve-2026-1"}}, {"vulnerability": {"ghsa-X"}}, {"package": {"openSSL"}}, {"package": {"pkg:apk/alpine/openssl"}},
		{"package": {"pkg:apk/alpine/opens"}}, {"package": {"pkg:npm/"}}, {"min_score": {"7"}}, {"min_score": {"7.6"}}, {"file": {"test/"}}, {"file": {"test/lib/a.go"}}, {"file": {"test"}},
		{"repo_id": {"shop"}, "project_id": {"web"}}, {"project_id": {"none"}}, {"owner": {"nobody"}}, {"text": {"openssl 'QUOTED' \\"}}, {"text": {"number lib"}},
		{"created_since": {found.UTC().Format("2006-01-02T15:04:05Z")}, "created_until": {found.UTC().Format("2006-01-02T15:04:06Z")}},
	} {
		drafted := draftedMatch.FindStringSubmatch(v.asks("/console/policies/_new?"+filters.Encode(), nil).text)
		if drafted == nil {
			t.Fatalf("%v: no expression", filters)
		}
		made := v.asks("/console/policies/_new", url.Values{"token": {token}, "match": {html.UnescapeString(drafted[1])}, "user_status": {"muted"},
			"reason": {"duplicate"}, "do": {"preview"}})
		if made.StatusCode != http.StatusSeeOther {
			t.Errorf("%v: %s: %s", filters, made.Status, drafted[1])
			continue
		}
		id := strings.TrimPrefix(made.Header.Get("Location"), "/console/policies/")
		var list struct{ Total int }
		get(t, key, "/v2/findings?"+filters.Encode(), &list)
		var policy struct {
			Matched  int
			Observed bool
		}
		harness.Eventually(t, func(g Gomega) {
			get(t, key, "/v2/triage-policies/"+id, &policy)
			g.Expect(policy.Observed).To(BeTrue())
		})
		harness.Same(t, filters.Encode()+": rows of the list, as the policy matches: "+drafted[1], policy.Matched, list.Total)
	}
}

// get decodes an answer of the REST API.
func get(t *testing.T, key, path string, into any) {
	t.Helper()
	answer := askREST(t, key, http.MethodGet, path, "")
	if err := json.Unmarshal(answer.Body, into); err != nil || answer.Status != http.StatusOK {
		t.Fatalf("%s: %d %s: %v", path, answer.Status, answer.Body, err)
	}
}
