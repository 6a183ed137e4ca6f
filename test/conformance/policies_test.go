package conformance

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/apiclient"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// Triage policies over REST, the list of API keys and redelivery are additions to the contract.

const policiesPath = "/v2/triage-policies"

// policies creates previews with these names, which match nothing.
func (o *organization) policies(names ...string) {
	o.t.Helper()
	for _, name := range names {
		o.create(builder.TriagePolicy(name, "finding.title == 'nobody'").In(o.namespace).Spec(func(s *v1alpha1.TriagePolicySpec) {
			s.Mode = v1alpha1.PolicyPreview
		}).Build())
	}
}

// awaitPolicy returns the policy once its counts match its current spec. Usually the answer to the request has
// already waited for that.
func (o *organization) awaitPolicy(policy record) record {
	o.t.Helper()
	harness.Eventually(o.t, func(g Gomega) {
		if policy["observed"] != true {
			policy = o.get(policiesPath+"/"+policy.text("id")).wants(200, "the policy").object()
		}
		g.Expect(policy).To(HaveKeyWithValue("observed", true))
	})
	return policy
}

// condition returns a condition of a resource.
func condition(of record, kind string) record {
	for _, c := range of.records("conditions") {
		if c["type"] == kind {
			return c
		}
	}
	return nil
}

func TestTriagePolicies_FromPreviewToForceAndBack(t *testing.T) {
	o := newOrganization(t)
	o.finding(builder.Finding("f-test"))
	o.finding(builder.Finding("f-other").Title("Another"))
	c := o.key("ci", v1alpha1.Scopes()...)
	given := `{"name":"mute-one","match":"finding.name == 'f-test'","set":{"user_status":"muted","reason":"used-in-tests","comment":"Seen."},"max_findings":5}`
	made := c.post(policiesPath, given)
	if made.Status != http.StatusCreated || made.Header.Get("Location") != policiesPath+"/mute-one" {
		t.Fatalf("got %d, Location %q: %s", made.Status, made.Header.Get("Location"), made.Body)
	}
	preview := o.awaitPolicy(made.object())
	wantsShape(t, "a preview", preview, triagePolicyShape)
	wantsShape(t, "what it decides", preview.object("set"), triagePolicySetShape)
	wantsShapes(t, "its conditions", preview.records("conditions"), conditionShape)
	wantsMembers(t, "the preview", record{
		"mode": "preview", "in_force": false, "matched": 1.0, "would_apply": 1.0, "max_findings": 5.0,
		"author": "apikey/" + c.apiKey.Name,
	}, preview)
	wantsMembers(t, "the preview's condition InForce", record{"reason": "Preview"}, condition(preview, "InForce"))
	o.shows("f-test", "open", "a preview decides nothing")
	c.post(policiesPath, given).wantsError(409, "Conflict", "the name is taken")

	again := c.patch(policiesPath+"/mute-one", `{"mode":"preview"}`).wants(200, "the mode that it has").object()
	harness.Same(t, "the author after a change that changes nothing", "apikey/"+c.apiKey.Name, again["author"])
	c.patch(policiesPath+"/mute-one", `{"mode":"apply"}`, apiclient.Header("If-Match", `"3"`)).wantsError(400, "Invalid request body", "a policy has no tag")
	c.patch(policiesPath+"/mute-one", `{"mode":"apply","generation":7}`).wantsError(412, "Precondition failed", "another was looked at")
	c.patch(policiesPath+"/mute-one", `{"mode":"apply","generation":1,"uid":"of-one-before"}`).wantsError(412, "Precondition failed", "another was made")
	applied := o.awaitPolicy(c.patch(policiesPath+"/mute-one", fmt.Sprintf(`{"mode":"apply","generation":1,"uid":%q}`, preview.text("uid"))).wants(200, "apply").object())
	wantsMembers(t, "in force it", record{"mode": "apply", "in_force": true, "applied": 1.0}, applied)
	o.shows("f-test", "open_muted", "a policy in force decides")
	o.shows("f-other", "open", "about nothing else")
	decided := o.wantsDecidedBy("mute-one", "f-test")
	if got := o.get(with("/v2/findings", "policy=mute-one&severity=high")).page().Total; got != 0 || !cmp.Equal(decided, map[string]float64{"mute-one": 1}) {
		t.Errorf("%d of severity high; counts are %v", got, decided)
	}
	o.patch("/v2/findings/f-test", `{"user_status":"active"}`).wants(200, "a person's decision")
	o.settled(2)
	o.wantsDecidedBy("mute-one")
	o.patch("/v2/findings/f-test", `{"user_status":"open"}`).wants(200, "taken back")
	o.shows("f-test", "open_muted", "the policy decides again")
	stopped := o.awaitPolicy(c.patch(policiesPath+"/mute-one", `{"mode":"preview"}`).wants(200, "stop").object())
	harness.Same(t, "stopped it is in force", false, stopped["in_force"])
	o.shows("f-test", "open", "what a policy decided goes with it")
}

// wantsDecidedBy expects that lists, exports, operations and counts that filter by the policy contain exactly these
// findings, and returns the counts by policy.
func (o *organization) wantsDecidedBy(policy string, ids ...string) map[string]float64 {
	o.t.Helper()
	for _, path := range findingLists {
		o.wantsIDs(with(path, "policy="+policy), ids...)
	}
	export := string(o.get("/v2/finding-export?policy="+policy).wants(200, "an export").Body)
	harness.Same(o.t, "the lines of the export, with its header", 1+len(ids), strings.Count(export, "\r\n"))
	preview := o.operate(`{"filters":{"policy":"`+policy+`"},"set":{"comments":"x"}}`, "preview")
	harness.Same(o.t, "what an operation matches", float64(len(ids)), preview["matched"])
	return o.counted("field=policy")["policy"]
}

// shows expects a finding to reach that status soon.
func (o *organization) shows(id, status, reason string) {
	o.t.Helper()
	harness.Eventually(o.t, func(g Gomega) {
		g.Expect(o.get("/v2/findings/"+id).wants(200, reason).object()).To(HaveKeyWithValue("status", status), reason)
	})
}

func TestTriagePolicies_InvalidOnesAreRefused(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci", v1alpha1.Scopes()...)
	const set = `,"set":{"user_status":"muted","reason":"duplicate"}`
	for body, detail := range map[string]string{
		`{"match":"true"}`:                                                 "set is required",
		`{"match":""` + set + `}`:                                          "match is empty",
		`{"match":"finding.nosuch == 1"` + set + `}`:                       "line 1, column 8",
		`{"match":"1 + 1"` + set + `}`:                                     "must return a bool",
		`{"match":"true","set":{"user_status":"muted"}}`:                   "set.reason is required to mute",
		`{"match":"true","set":{"user_status":"open"}}`:                    "set.user_status must be one of",
		`{"match":"true","by":"apikey/other"` + set + `}`:                  `no member "by"`,
		`{"match":"true","mode":"Apply"` + set + `}`:                       "mode must be one of preview, apply",
		`{"match":"true","max_findings":0` + set + `}`:                     "max_findings must be an integer from 1 to 100000",
		`{"match":"true","max_findings":"7"` + set + `}`:                   "max_findings must be an integer",
		`{"match":"true","priority":1.5` + set + `}`:                       "priority must be an integer",
		`{"match":"true","valid_until":"2020-01-01T00:00:00Z"` + set + `}`: "valid_until must be in the future",
		`{"match":"true","valid_from":"2099-01-02T00:00:00Z","valid_until":"2099-01-01T00:00:00Z"` + set + `}`: "after valid_from",
		`{"match":"true","valid_from":"soon"` + set + `}`:                                                      "valid_from",
		`{"match":"true","name":"Not a name"` + set + `}`:                                                      "name holds",
	} {
		c.post(policiesPath, body).badRequest(body).wantsDetail(detail)
	}
	for _, body := range []string{`{"mode":"stop"}`, `{"mode":"apply","match":"true"}`, `{}`} {
		c.patch(policiesPath+"/none", body).badRequest(body)
	}
	harness.Same(t, "the policies that were made", 0, o.get(policiesPath).page().Total)
}

// A key that may not make decisions may neither create a policy nor apply another's preview.
func TestTriagePolicies_WritingOneTakesTwoScopes(t *testing.T) {
	o := newOrganization(t)
	o.policies("mute-a")
	const body = `{"match":"true","set":{"user_status":"muted","reason":"duplicate"},"mode":"apply"}`
	for lacks, scopes := range map[v1alpha1.Scope][]v1alpha1.Scope{
		v1alpha1.ScopeFindingsTriage: {v1alpha1.ScopePoliciesWrite, v1alpha1.ScopeFindingsRead},
		v1alpha1.ScopePoliciesWrite:  {v1alpha1.ScopeFindingsTriage, v1alpha1.ScopeFindingsRead},
	} {
		c := o.key("without-"+strings.ReplaceAll(string(lacks), ":", "-"), scopes...)
		c.post(policiesPath, body).wantsError(403, "Forbidden", "make one").wantsDetail(string(lacks))
		c.patch(policiesPath+"/mute-a", `{"mode":"apply"}`).wantsError(403, "Forbidden", "apply one").wantsDetail(string(lacks))
	}
	if got := o.get(policiesPath).page(); got.Total != 1 || got.Items[0]["mode"] != "preview" {
		t.Errorf("the policies are %v", got.Items)
	}
}

// An expression that was stored with kubectl may be invalid; the policy then reports the position
// of the error.
func TestTriagePolicies_AnExpressionThatDoesNotCompileSaysWhere(t *testing.T) {
	o := newOrganization(t)
	o.create(builder.TriagePolicy("wrong", "true &&\n  finding.nosuch").In(o.namespace).Build())
	got := o.awaitPolicy(o.get(policiesPath + "/wrong").object())
	wrong := got.object("compile_error")
	if wrong["line"] != 2.0 || wrong["column"] != 10.0 || !strings.Contains(wrong.text("message"), "nosuch") || got["in_force"] != false {
		t.Errorf("the policy is %v", got)
	}
}

func TestAPIKeys_ShowEndsScopesAndUseAndNoSecret(t *testing.T) {
	o := newOrganization(t)
	reader := o.key("reader", v1alpha1.ScopeKeysRead)
	a := reader.get("/v2/api-keys").wants(200, "keys:read")
	items := a.page().Items
	for _, key := range items {
		wantsShape(t, "a key", key, apiKeyShape)
		wantsShapes(t, "its conditions", key.records("conditions"), conditionShape)
		if key["id"] == reader.apiKey.Name && (len(key.list("scopes")) != 1 || key["expires_at"] == nil ||
			key["issued_at"] == nil || key["disabled"] != false) {
			t.Errorf("the key is %v", key)
		}
	}
	if first := reader.get("/v2/api-keys?size=1").page(); len(first.Items) != 1 || !first.HasMore || first.Total != len(items) || len(items) < 2 {
		t.Errorf("of %d keys a page of one is %v", len(items), first)
	} else if rest := reader.get("/v2/api-keys?size=1&cursor=" + first.NextCursor).page(); rest.Items[0]["id"] == first.Items[0]["id"] {
		t.Errorf("the second page has %v again", rest.Items[0]["id"])
	}
	stored := testenv.Get(t, NewWithT(t), theDeployment.cluster, reader.apiKey)
	for _, secret := range []string{reader.Token, strings.Split(reader.Token, ".")[2], stored.Status.KeyID, string(stored.UID), "secret"} {
		if strings.Contains(string(a.Body), secret) {
			t.Errorf("the answer has %q: %s", secret, a.Body)
		}
	}
}

func TestWebhookDeliveries_AreSentAgainWithTheSameID(t *testing.T) {
	o := newOrganization(t)
	sent := o.sent(builder.WebhookEndpoint("watched"))
	path := "/v2/webhook-deliveries/" + sent.id
	harness.Eventually(t, func(g Gomega) { g.Expect(o.get(path).object()["status"]).To(Equal("delivered")) })
	again := o.key("again", v1alpha1.ScopeWebhooksRedeliver)
	if got := again.post(path+"/redeliver", "").wants(202, "again").object(); got["redelivered_at"] == nil {
		t.Errorf("the answer is %v", got)
	}
	// The receiver no longer exists.
	harness.Eventually(t, func(g Gomega) { g.Expect(len(o.get(path).object().list("attempts"))).To(BeNumerically(">", 1)) })
	o.key("reads", v1alpha1.ScopeWebhooksRead).post(path+"/redeliver", "").wantsError(403, "Forbidden", "another scope")
}
