package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
)

const someFinding = "/v2/repos/repo/projects/proj/findings/f-1"

// requests are one of every operation, and what is none.
var requests = []struct{ method, path, body string }{
	{"GET", "/v1/findings", ""},
	{"PATCH", "/v1/findings/f-1", `{"user_status":"open"}`},
	{"GET", "/v2/findings", ""},
	{"PATCH", "/v2/findings/f-1", `{"comments":"x"}`},
	{"GET", someFinding, ""},
	{"GET", "/v2/repos", ""},
	{"GET", "/v2/repos/repo/projects/proj", ""},
	{"GET", "/v2/issues/i-1", ""},
	{"GET", "/v1/reviews", ""},
	{"POST", "/v2/webhook-deliveries/d-1/verify", `{"payload":"x","signature":"y"}`},
	{"OPTIONS", "/v1/findings", ""},
	{"GET", "/nowhere", ""},
	{"DELETE", "/v1/findings", ""},
	{"PATCH", "/v1/findings/f-1", `not JSON`},
	{"GET", "/v1/findings?size=0", ""},
}

// What a caller without a valid key learns is the same for every reason and every path.
func TestWithoutAValidKeyEveryRequestGetsTheSame401(t *testing.T) {
	o := newOrganization(t)
	valid := o.key("ci").token
	parts := strings.Split(valid, ".")
	var first []byte
	for reason, authorization := range map[string][]string{
		"no header":            nil,
		"an empty header":      {""},
		"no token":             {"Bearer "},
		"another scheme":       {"Basic " + valid},
		"no scheme":            {valid},
		"no JWT":               {"Bearer secret"},
		"a changed signature":  {"Bearer " + parts[0] + "." + parts[1] + "." + strings.Repeat("A", len(parts[2]))},
		"no signature":         {"Bearer " + parts[0] + "." + parts[1] + "."},
		"two keys":             {"Bearer " + valid, "Bearer " + valid},
		"two keys in a header": {"Bearer " + valid + ", Bearer " + valid},
	} {
		for _, r := range requests {
			c := newCaller(t, facade, "")
			a := c.do(r.method, r.path, r.body, func(request *http.Request) { request.Header["Authorization"] = authorization })
			a.wantsError(401, "Unauthorized", reason+": "+r.method+" "+r.path)
			if first == nil {
				first = a.body
			}
			if !bytes.Equal(a.body, first) {
				t.Errorf("%s: %s %s: the body differs: %s", reason, r.method, r.path, a.body)
			}
			if got := a.header.Get("WWW-Authenticate"); got != "Bearer" {
				t.Errorf("%s: WWW-Authenticate is %q", reason, got)
			}
		}
	}
}

func TestADisabledKeyIsRefusedAndMayComeBack(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	for _, step := range []struct {
		disabled bool
		status   int
	}{{true, 401}, {false, 200}} {
		key := builder.APIKey("ci").In(o.namespace).Build()
		patch := fmt.Appendf(nil, `{"spec":{"disabled":%t}}`, step.disabled)
		if err := env.Client.Patch(t.Context(), key, client.RawPatch(types.MergePatchType, patch)); err != nil {
			t.Fatal(err)
		}
		o.eventually(func(g Gomega) { g.Expect(c.get("/v1/findings").status).To(Equal(step.status)) })
	}
}

func TestAKeyIsLimitedToItsScopes(t *testing.T) {
	o := newOrganization(t)
	o.finding(o.key("all"), builder.Finding("f-1"))
	for _, test := range []struct {
		reason       string
		scopes       []v1alpha1.Scope
		read, triage int
	}{
		{"a key with none listed has all", nil, 200, 200},
		{"findings:read reads", []v1alpha1.Scope{v1alpha1.ScopeFindingsRead}, 200, 403},
		{"findings:triage triages", []v1alpha1.Scope{v1alpha1.ScopeFindingsTriage}, 403, 200},
		{"both do both", []v1alpha1.Scope{v1alpha1.ScopeFindingsRead, v1alpha1.ScopeFindingsTriage}, 200, 200},
		{"others do neither", []v1alpha1.Scope{v1alpha1.ScopeReposRead, v1alpha1.ScopeWebhooksVerify}, 403, 403},
	} {
		name := strings.ToLower(strings.NewReplacer(" ", "-", ":", "-").Replace(test.reason))
		c := o.key(name, test.scopes...)
		c.get("/v1/findings").wants(test.read, test.reason)
		c.get("/v2/findings").wants(test.read, test.reason)
		c.get(someFinding).wants(test.read, test.reason)
		c.patch("/v1/findings/f-1", `{"user_status":"open"}`).wants(test.triage, test.reason)
		c.patch("/v2/findings/f-1", `{"comments":""}`).wants(test.triage, test.reason)
		c.get("/nowhere").wants(404, test.reason)
	}
	reader := o.key("reader", v1alpha1.ScopeFindingsRead)
	reader.patch("/v1/findings/f-1", `not JSON`).wantsError(403, "Forbidden", "scopes come before the body")
	reader.patch("/v1/findings/none", `{"user_status":"open"}`).wantsError(403, "Forbidden", "scopes come before the finding")
}

func TestUnknownPathsAre404(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	o.finding(c, builder.Finding("f-1"))
	for _, path := range []string{
		"/", "/v1", "/v3/findings", "/v1/findings/", "/v2/findings/", "//v1/findings", "/v1//findings", "/V1/findings", "/v1/Findings",
		"/v1/findings/f-1/x", "/v1/./findings", "/v1/findings/../findings", "/v1/%66indings", "/v1%2Ffindings",
		someFinding + "/", "/v2/repos/repo/projects/proj/findings/", "/v2/repos//projects/proj/findings/f-1", "/healthz", "/metrics",
	} {
		a := c.get(path).wantsError(404, "Resource not found", path)
		if location := a.header.Get("Location"); location != "" {
			t.Errorf("%s: redirected to %s", path, location)
		}
	}
}

func TestUnknownMethodsAre405WithAllow(t *testing.T) {
	c := newOrganization(t).key("ci")
	for path, allowed := range map[string]string{
		"/v1/findings":                      "GET, HEAD, OPTIONS",
		"/v2/findings":                      "GET, HEAD, OPTIONS",
		"/v1/findings/f-1":                  "OPTIONS, PATCH",
		"/v2/findings/f-1":                  "OPTIONS, PATCH",
		someFinding:                         "GET, HEAD, OPTIONS",
		"/v2/repos":                         "GET, HEAD, OPTIONS",
		"/v2/repos/repo/projects/proj":      "GET, HEAD, OPTIONS",
		"/v2/issues/i-1":                    "GET, HEAD, OPTIONS",
		"/v1/reviews":                       "GET, HEAD, OPTIONS",
		"/v2/webhook-deliveries/d-1/verify": "OPTIONS, POST",
	} {
		options := c.do("OPTIONS", path, "").wants(204, "OPTIONS "+path)
		if got := options.header.Get("Allow"); got != allowed {
			t.Errorf("OPTIONS %s: Allow is %q, want %q", path, got, allowed)
		}
		for _, method := range []string{"PUT", "DELETE", "TRACE", "PROPFIND"} {
			a := c.do(method, path, "").wantsError(405, "Method not allowed", method+" "+path)
			if got := a.header.Get("Allow"); got != allowed {
				t.Errorf("%s %s: Allow is %q, want %q", method, path, got, allowed)
			}
		}
	}
	c.get("/v1/findings/f-1").wantsError(405, "Method not allowed", "there is no GET of one finding in v1")
}

func TestTheContractIsServedToAnybody(t *testing.T) {
	c := newCaller(t, facade, "")
	a := c.get("/openapi.json").wants(200, "the contract")
	var document struct {
		OpenAPI string                    `json:"openapi"`
		Info    struct{ Version string }  `json:"info"`
		Paths   map[string]map[string]any `json:"paths"`
	}
	a.decode(&document)
	if document.OpenAPI != "3.1.0" || document.Info.Version != "2.0.0" || document.Paths["/v1/findings"] == nil {
		t.Errorf("got %+v", document)
	}
	c.do("POST", "/openapi.json", "").wants(401, "other methods need a key")
}
