package conformance

import (
	"bytes"
	"encoding/base64"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/test/apiclient"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// revocationDelay is how long a key may work after it was disabled or deleted or has expired:
// somewhat more than the designed second, to allow for the request that detects it.
const revocationDelay = 2 * time.Second

// with sends a request with exactly these Authorization headers.
func (c *caller) with(method, path, body string, authorization []string) answer {
	c.t.Helper()
	return c.do(method, path, body, func(r *http.Request) { r.Header["Authorization"] = authorization })
}

func TestAuth_EveryEndpointNeedsAKey(t *testing.T) {
	c := anonymous(t)
	spec, err := openapi.Load()
	harness.Must(t, err)
	for path, item := range spec.Paths.Map() {
		for method, operation := range item.Operations() {
			if !isEndpoint(method, path) && !slices.Contains(noEndpoints, operation.OperationID) {
				t.Errorf("%s %s: add it to endpoints, for the tests of keys, scopes and limits", method, path)
			}
		}
	}
	for _, e := range endpoints {
		a := c.with(e.method, e.path, e.body, nil).wantsError(401, "Unauthorized", "no key")
		if got := a.Header.Get("WWW-Authenticate"); !strings.HasPrefix(got, "Bearer") {
			t.Errorf("%s: WWW-Authenticate is %q", a.request, got)
		}
	}
}

func TestAuth_UnknownPathsAndMethodsNeedAKeyToo(t *testing.T) {
	c := anonymous(t)
	c.with("GET", "/nowhere", "", nil).wantsError(401, "Unauthorized", "an unknown path")
	c.with("DELETE", "/v1/findings", "", nil).wantsError(401, "Unauthorized", "an unknown method")
	c.with("PATCH", "/v1/findings/f", "not JSON", nil).wantsError(401, "Unauthorized", "a bad body")
	c.with("GET", "/v1/findings?size=0", "", nil).wantsError(401, "Unauthorized", "a bad query")
}

func TestAuth_EveryReasonGetsTheSame401(t *testing.T) {
	valid := anyKey(t).Token
	c := anonymous(t)
	parts := strings.Split(valid, ".")
	if len(parts) != 3 {
		t.Fatalf("the key is no JWT")
	}
	changed := decoded(t, parts[1])
	changed["org"] = "another"
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`))
	reasons := map[string][]string{
		"no header":                     nil,
		"an empty header":               {""},
		"the scheme alone":              {"Bearer"},
		"no token":                      {"Bearer "},
		"another scheme":                {"Basic " + valid},
		"Token":                         {"Token " + valid},
		"JWT":                           {"JWT " + valid},
		"DPoP":                          {"DPoP " + valid},
		"a scheme that looks the same":  {"\u0412earer " + valid},
		"a scheme with a small capital": {"Bea\u0280er " + valid},
		"no scheme":                     {valid},
		"the scheme twice":              {"Bearer Bearer " + valid},
		"no space":                      {"Bearer" + valid},
		"two spaces":                    {"Bearer  " + valid},
		"eight kilobytes of spaces":     {"Bearer " + strings.Repeat(" ", 8000) + valid},
		"a tab":                         {"Bearer\t" + valid},
		"a no-break space":              {"Bearer\u00a0" + valid},
		"a colon":                       {"Bearer: " + valid},
		"an equals sign":                {"Bearer=" + valid},
		"quotes":                        {`Bearer "` + valid + `"`},
		"no JWT":                        {"Bearer secret"},
		"two credentials":               {"Bearer " + valid, "Bearer " + valid},
		"twenty credentials":            slices.Repeat([]string{"Bearer " + valid}, 20),
		"a bad one first":               {"Bearer x", "Bearer " + valid},
		"a bad one last":                {"Bearer " + valid, "Bearer x"},
		"an empty one too":              {"", "Bearer " + valid},
		"another scheme too":            {"Basic eDp5", "Bearer " + valid},
		"two credentials in a header":   {"Bearer " + valid + ", Bearer " + valid},
		"two tokens":                    {"Bearer " + valid + "," + valid},
		"something behind":              {"Bearer " + valid + " x"},
		"a parameter behind":            {"Bearer " + valid + ", realm=x"},
		"a changed signature":           {"Bearer " + valid[:len(valid)-6] + "AAAAAA"},
		"algorithm none":                {"Bearer " + none + "." + parts[1] + "."},
		"changed claims":                {"Bearer " + parts[0] + "." + base64.RawURLEncoding.EncodeToString(harness.JSON(t, changed)) + "." + parts[2]},
		"far too long":                  {"Bearer " + strings.Repeat("A", 9000)},
	}
	var first []byte
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		a := c.with("GET", "/v1/findings", "", reasons[reason]).wantsError(401, "Unauthorized", reason)
		if first == nil {
			first = a.Body
		}
		if !bytes.Equal(first, a.Body) {
			t.Errorf("%s: the body differs: %s", reason, a.Body)
		}
	}
}

// decoded returns a part of a token.
func decoded(t *testing.T, part string) record {
	t.Helper()
	content, err := base64.RawURLEncoding.DecodeString(part)
	harness.Must(t, err)
	return harness.Decoded[record](t, content)
}

func TestAuth_TheCaseOfTheSchemeAndBlanksAroundTheValueDoNotMatter(t *testing.T) {
	valid, c := anyKey(t).Token, anonymous(t)
	for _, value := range []string{"bearer " + valid, "BEARER " + valid, "Bearer " + valid + " ", " Bearer " + valid} {
		c.with("GET", "/v1/findings", "", []string{value}).wants(200, "RFC 9110, sections 11.1 and 5.5")
	}
}

func TestAuth_TheKeyIsTakenFromNoOtherPlace(t *testing.T) {
	valid, c := anyKey(t).Token, anonymous(t)
	c.get("/v1/findings?access_token="+valid+"&api_key="+valid).wants(401, "a key in the query")
	for _, name := range []string{"Proxy-Authorization", "X-Authorization", "X-Api-Key", "Api-Key", "Token", "X-Auth-Token", "Cookie"} {
		c.get("/v1/findings", apiclient.Header(name, "Bearer "+valid)).wants(401, "the key in "+name)
	}
}

func TestAuth_TheTokenIsAJWTThatSaysWhoseItIs(t *testing.T) {
	o := sampleOrganization(t)
	key := testenv.Get(t, NewWithT(t), theDeployment.cluster, builder.APIKey("conformance").In(o.namespace).Build())
	parts := strings.Split(o.Token, ".")
	header, claims := decoded(t, parts[0]), decoded(t, parts[1])
	if header["alg"] != "EdDSA" || header["kid"] == nil {
		t.Errorf("the header is %v", header)
	}
	wantsMembers(t, "the claims", record{"sub": string(key.UID), "org": o.name, "jti": key.Status.KeyID}, claims)
	for _, name := range []string{"iss", "iat", "exp"} {
		if claims[name] == nil {
			t.Errorf("the claim %s is missing", name)
		}
	}
	harness.Same(t, "the default life of a key, in seconds", 90.*24*60*60, claims["exp"].(float64)-claims["iat"].(float64))
}

func (c *caller) refusedSoon(reason string) {
	c.t.Helper()
	NewWithT(c.t).Eventually(func() int { return c.with("GET", "/v1/findings?size=1", "", []string{"Bearer " + c.Token}).Status }).
		WithContext(c.t.Context()).WithTimeout(revocationDelay).WithPolling(10*interval).Should(Equal(401), reason)
}

func TestAuth_ADisabledKeyIsRefusedAtOnceAndMayComeBack(t *testing.T) {
	o := sampleOrganization(t)
	c := o.key("disabled")
	o.patchResource(c.apiKey, `{"spec":{"disabled":true}}`)
	c.refusedSoon("disabled")
	o.patchResource(c.apiKey, `{"spec":{"disabled":false}}`)
	harness.Eventually(t, func(g Gomega) { g.Expect(c.get("/v1/findings?size=1").Status).To(Equal(200)) })
}

func TestAuth_ADeletedKeyIsRefusedAtOnce(t *testing.T) {
	o := sampleOrganization(t)
	c := o.key("deleted")
	harness.Must(t, theDeployment.cluster.Client.Delete(t.Context(), c.apiKey))
	c.refusedSoon("deleted")
}

func TestAuth_AnExpiredKeyIsRefusedAtOnce(t *testing.T) {
	o := sampleOrganization(t)
	c := o.key("expired")
	o.patchResource(c.apiKey, `{"spec":{"expiresAt":"`+shownTime(time.Now().Add(-time.Minute))+`"}}`)
	c.refusedSoon("expired")
}

func TestAuth_ARotatedKeysOldTokenIsRefused(t *testing.T) {
	o := sampleOrganization(t)
	c := o.key("rotated")
	o.patchResource(c.apiKey, `{"spec":{"rotation":{"serial":1}}}`)
	harness.Eventually(t, func(g Gomega) {
		g.Expect(testenv.Get(t, g, theDeployment.cluster, c.apiKey).Status.RotationSerial).To(BeEquivalentTo(1))
	})
	c.refusedSoon("rotated")
	var err error
	c.Token, err = testenv.Token(t.Context(), theDeployment.cluster.Client, c.apiKey)
	harness.Must(t, err)
	harness.Eventually(t, func(g Gomega) { g.Expect(c.get("/v1/findings?size=1").Status).To(Equal(200)) })
}

func TestAuth_AKeyIsLimitedToItsScopes(t *testing.T) {
	o := sampleOrganization(t)
	for _, scope := range v1alpha1.Scopes() {
		c := o.key(strings.ReplaceAll(string(scope), ":", "-"), scope)
		for _, e := range endpoints {
			a := c.do(e.method, e.path, e.body)
			if e.scope != scope && e.scope != anyScope {
				a.wantsError(403, "Forbidden", "a key for "+string(scope)).wantsCode("missing_scope")
				continue
			}
			if a.Status == 403 {
				t.Errorf("%s: refused to a key for %s", a.request, scope)
			}
		}
	}
}

func TestAuth_AKeyCanAskWhatItMayDo(t *testing.T) {
	o := sampleOrganization(t)
	c := o.key("triage", v1alpha1.ScopeFindingsTriage)
	who := c.get("/v2/whoami").wants(200, "any key").object()
	wantsShape(t, "the key", who, whoAmIShape)
	want := record{"organization_id": o.name, "key": c.apiKey.Name, "scopes": []any{"findings:triage"}}
	wantsMembers(t, "the key", want, who)
	if all := o.key("unlimited").get("/v2/whoami").wants(200, "no scope listed").object().list("scopes"); len(all) != 5 {
		t.Errorf("a key that lists no scope has %v", all)
	}
}

// An upgrade must not give a key a scope that was introduced later.
func TestAuth_AKeyWithNoScopeListedHasTheDefaultOnes(t *testing.T) {
	c := sampleOrganization(t).key("defaults")
	inherited := []v1alpha1.Scope{
		v1alpha1.ScopeFindingsRead, v1alpha1.ScopeFindingsTriage, v1alpha1.ScopeReposRead, v1alpha1.ScopeReviewsRead, v1alpha1.ScopeWebhooksVerify,
		anyScope,
	}
	for _, e := range endpoints {
		a := c.do(e.method, e.path, e.body)
		if refused := a.Status == 403; refused == slices.Contains(inherited, e.scope) {
			t.Errorf("%s: %d %s", a.request, a.Status, a.Body)
		}
	}
}

func TestAuth_ScopesComeBeforeTheBodyAndTheResource(t *testing.T) {
	o := sampleOrganization(t)
	reader := o.key("reader", v1alpha1.ScopeFindingsRead)
	reader.patch("/v1/findings/f-none", `not JSON`).wantsError(403, "Forbidden", "a bad body")
	reader.patch("/v1/findings/f-none", `{"user_status":"open"}`).wantsError(403, "Forbidden", "no such finding")
}
