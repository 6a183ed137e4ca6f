package conformance

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/test/apiclient"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestManners_AnswersAreJSON(t *testing.T) {
	c := anyKey(t)
	for _, a := range []answer{c.get("/v1/findings"), c.get("/nowhere"), c.do("DELETE", "/v1/findings", ""), anonymous(t).get("/v1/findings")} {
		harness.Same(t, a.request+": Content-Type", "application/json", a.Header.Get("Content-Type"))
	}
}

func TestManners_HeadIsGetWithoutTheBody(t *testing.T) {
	c := anyKey(t)
	for _, path := range []string{"/v1/findings", "/v2/findings", "/v2/repos", "/v1/reviews", "/v1/findings?size=0", "/v2/finding-export", "/v2/finding-export?format=sarif", "/nowhere", findingPath("r", "p", "f"), "/openapi.json", "/docs"} {
		get, head := c.get(path, apiclient.Header("Accept-Encoding", "identity")), c.do(http.MethodHead, path, "", apiclient.Header("Accept-Encoding", "identity"))
		harness.Same(t, path+": the status of HEAD", get.Status, head.Status)
		if len(head.Body) > 0 {
			t.Errorf("%s: HEAD has a body of %d bytes", path, len(head.Body))
		}
		for _, name := range []string{"Content-Type", "Content-Length", "Content-Disposition", "Etag", "Vary"} {
			harness.Same(t, path+": "+name+" for HEAD, compared with GET", get.Header.Get(name), head.Header.Get(name))
		}
	}
}

func TestManners_OptionsListsTheMethods(t *testing.T) {
	c := anyKey(t)
	for path, methods := range allowedMethods() {
		a := c.do(http.MethodOptions, path, "").wants(204, "OPTIONS")
		got := strings.Split(a.Header.Get("Allow"), ", ")
		want := append(slices.Clone(methods), http.MethodOptions)
		slices.Sort(got)
		slices.Sort(want)
		harness.Same(t, fmt.Sprintf("%s: Allow", path), want, got)
	}
	c.do(http.MethodOptions, "/nowhere", "").notFound("a path that is none")
}

func TestManners_WritesNeedTheContentTypeJSON(t *testing.T) {
	c := anyKey(t)
	for _, contentType := range []string{
		"text/plain", "", "application/merge-patch+json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
		"application/json; charset=latin1", "application/json; charset=utf-16", "json", strings.Repeat("a", 9000),
	} {
		c.patch("/v1/findings/f-none", `{"user_status":"open"}`, apiclient.Header("Content-Type", contentType)).badRequest(contentType)
		c.patch("/v2/findings/f-none", `{"comments":"x"}`, apiclient.Header("Content-Type", contentType)).badRequest(contentType)
		c.post("/v2/webhook-deliveries/none/verify", `{"payload":"x","signature":"y"}`, apiclient.Header("Content-Type", contentType)).badRequest(contentType)
	}
	c.patch("/v1/findings/f-none", `{"user_status":"open"}`, apiclient.Without("Content-Type")).badRequest("none")
	for _, contentType := range []string{"application/json", "application/json; charset=utf-8", "Application/JSON", "application/json;charset=UTF-8"} {
		c.patch("/v1/findings/f-none", `{"user_status":"open"}`, apiclient.Header("Content-Type", contentType)).notFound(contentType)
	}
}

func TestManners_CompressedBodiesAreRefused(t *testing.T) {
	c := anyKey(t)
	for _, encoding := range []string{"gzip", "deflate", "br", "identity, gzip"} {
		c.patch("/v1/findings/f-none", `{"user_status":"open"}`, apiclient.Header("Content-Encoding", encoding)).badRequest(encoding)
	}
	c.patch("/v1/findings/f-none", `{"user_status":"open"}`, apiclient.Header("Content-Encoding", "Identity")).notFound("no coding, in any case of letters")
}

func TestManners_LongAnswersAreCompressedForThoseWhoAskForIt(t *testing.T) {
	o := crowdedOrganization(t)
	compressed := o.get("/v1/findings")
	if !compressed.Uncompressed {
		t.Error("the page came as it is, though gzip was asked for")
	}
	plain := o.get("/v1/findings", apiclient.Header("Accept-Encoding", "identity"))
	harness.Same(t, "Content-Encoding where identity was asked for", "", plain.Header.Get("Content-Encoding"))
	harness.Same(t, "compressed, where plain is wanted", plain.page(), compressed.page())
	for _, a := range []answer{compressed, plain} {
		harness.Contains(t, "Vary, without which a cache could send the wrong form", strings.ToLower(strings.Join(a.Header.Values("Vary"), ",")), "accept-encoding")
	}
}

func TestManners_ShortAnswersAreNotCompressed(t *testing.T) {
	if anyKey(t).get("/v1/findings/none").Uncompressed {
		t.Error("an error was compressed")
	}
}

// singleReads returns a path of each resource that can be read singly.
func singleReads() []string {
	return []string{findingPath("full", "full", "f-full"), "/v2/findings/f-full", "/v2/findings/f-full/history", "/v2/repos/full", projectPath("full", "full"), "/v2/issues/ri-open", "/v2/full-issues/ri-open", "/v2/issues/ri-open/history", "/v2/reviews/rv-open"}
}

func TestManners_IfNoneMatchOfTheSameStateIs304(t *testing.T) {
	o := sampleOrganization(t)
	for _, path := range singleReads() {
		tag := o.get(path).Header.Get("Etag") // without one, or with another each time, there would be no 304
		for _, condition := range []string{tag, `"other", ` + tag, "*", "W/" + strings.TrimPrefix(tag, "W/")} {
			a := o.get(path, apiclient.Header("If-None-Match", condition)).wants(304, condition)
			harness.Same(t, path+": the ETag", tag, a.Header.Get("Etag"))
		}
		o.do(http.MethodHead, path, "", apiclient.Header("If-None-Match", tag)).wants(304, "HEAD")
		o.get(path, apiclient.Header("If-None-Match", `"other"`)).wants(200, "another state")
	}
	harness.Same(t, "the ETag of a list", "", o.get("/v1/findings").Header.Get("Etag"))
}

func TestManners_IfMatchOfAnotherStateIs412AndWritesNothing(t *testing.T) {
	o := newOrganization(t)
	finding := o.finding(builder.Finding("f-1"))
	o.laterSecond(finding)
	stale := o.get(pathOf(finding)).Header.Get("Etag")
	fresh := o.patch("/v2/findings/f-1", `{"comments":"theirs"}`, apiclient.Header("If-Match", stale)).wants(200, "the state that was read").Header.Get("Etag")
	if fresh == "" || fresh == stale {
		t.Errorf("the ETag of the answer is %q, before it was %q", fresh, stale)
	}
	harness.Within(t, replicaDelay, func(g Gomega) {
		g.Expect(o.get(pathOf(finding), apiclient.Header("If-None-Match", stale)).Status).To(Equal(200), "the ETag of reads changes, too")
	})
	for _, path := range []string{"/v1/findings/f-1", "/v2/findings/f-1"} {
		a := o.patch(path, `{"user_status":"muted"}`, apiclient.Header("If-Match", stale)).wantsError(412, "Precondition failed", "a state that is over")
		wantsShape(t, path, a.object(), errorShape)
		o.patch(path, `{"user_status":"muted"}`, apiclient.Header("If-Match", "W/"+fresh)).wantsError(412, "Precondition failed", "a weak tag")
	}
	if got := o.storedFinding("f-1").Spec.Triage; got.UserStatus != "open" || got.Comments != "theirs" {
		t.Errorf("the finding is now %+v", got)
	}
	// v1 and v2 are two shapes of the same state.
	o.patch("/v1/findings/f-1", `{"user_status":"active"}`, apiclient.Header("If-Match", fresh)).wants(200, "the tag of the answer in v2")
	o.patch("/v2/findings/f-1", `{"user_status":"muted"}`, apiclient.Header("If-Match", "*")).wants(200, "any state")
	o.patch("/v1/findings/f-none", `{"user_status":"open"}`, apiclient.Header("If-Match", "*")).notFound("any state of no finding")
}

func TestManners_ARequestIDIsKeptIfItIsFitForALog(t *testing.T) {
	c := anyKey(t)
	const given = "conformance-7f3a"
	got := c.get("/v1/findings?size=1", apiclient.Header("X-Request-Id", given)).Header.Get("X-Request-Id")
	harness.Same(t, "x-request-id", given, got)
	for _, bad := range []string{strings.Repeat("a", 500), "a b", "<script>", `"x"`} {
		if got := c.get("/v1/findings?size=1", apiclient.Header("X-Request-Id", bad)).Header.Get("X-Request-Id"); got == bad || got == "" {
			t.Errorf("x-request-id is %q", got)
		}
	}
}

func TestManners_RequestIDsDiffer(t *testing.T) {
	c := anyKey(t)
	seen := map[string]bool{}
	for range 20 {
		seen[c.get("/v1/findings?size=1").Header.Get("X-Request-Id")] = true
	}
	harness.Same(t, "the different ids in 20 answers", 20, len(seen))
}

func TestManners_AnswersAreNotKeptByCachesNorSniffed(t *testing.T) {
	c := anyKey(t)
	for _, path := range []string{"/v1/findings?size=1", "/nowhere"} {
		a := c.get(path)
		if got := a.Header.Get("Cache-Control"); !strings.Contains(got, "no-store") && !strings.Contains(got, "private") && !strings.Contains(got, "no-cache") {
			t.Errorf("%s: Cache-Control is %q", path, got)
		}
		harness.Same(t, path+": X-Content-Type-Options", "nosniff", a.Header.Get("X-Content-Type-Options"))
	}
}

func TestVersioning_TheContractIsServedAndLabeled2(t *testing.T) {
	served := harness.Decoded[record](t, anonymous(t).get("/openapi.json").wants(200, "to anybody").Body)
	harness.Same(t, "info.version", "2.0.0", served.object("info")["version"])
	if got := served.text("openapi"); !strings.HasPrefix(got, "3.1") {
		t.Errorf("openapi is %s", got)
	}
	anonymous(t).do(http.MethodPost, "/openapi.json", "").wants(401, "other methods need a key")
}

func TestVersioning_TheServedContractIsThatOfThisRepository(t *testing.T) {
	enter(t)
	spec, err := openapi.Load()
	harness.Must(t, err)
	served := harness.Decoded[record](t, anonymous(t).get("/openapi.json").Body)
	for path, item := range spec.Paths.Map() {
		for method := range item.Operations() {
			if served.object("paths").object(path)[strings.ToLower(method)] == nil {
				t.Errorf("%s %s is not in the served contract", method, path)
			}
		}
	}
	harness.Same(t, "the paths that are served", spec.Paths.Len(), len(served.object("paths")))
}
