package conformance

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/test/apiclient"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// All but the message are additions: for programs the kind of error as a code, and the parameter, header or member
// concerned. A parameter of the query and a member of the body are also named in the detail, for people.
func TestErrors_TheBodyHasTheDescribedMembersAloneAndSaysWhatIsWrong(t *testing.T) {
	c := anyKey(t)
	statuses := map[string]int{"unauthorized": 401, "not_found": 404, "method_not_allowed": 405} // the others: 400
	post := func(body string) answer { return c.post("/v2/webhook-deliveries/none/verify", body) }
	operation := func(body string) answer { return c.post("/v2/triage-operations", body) }
	for _, test := range []struct {
		answer      answer
		code, field string
	}{
		{c.get("/v1/findings?size=0"), "invalid_value", "size"},
		{c.get("/v1/findings?sort=x"), "invalid_value", "sort"},
		{c.get("/v1/findings?order=x"), "invalid_value", "order"},
		{c.get("/v1/findings?status=x"), "invalid_value", "status"},
		{c.get("/v1/findings?severity=x"), "invalid_value", "severity"},
		{c.get("/v1/findings?min_score=x"), "invalid_value", "min_score"},
		{c.get("/v1/findings?created_until=x"), "invalid_value", "created_until"},
		{c.get("/v1/findings?updated_since=2026-03-02T00:00:00Z&updated_until=2026-03-01T00:00:00Z"), "invalid_value", "updated_until"},
		{c.get("/v1/findings?text=1+2+3+4+5+6+7+8+9"), "invalid_value", "text"},
		{c.get("/v1/reviews?start_time=2026-03-02T00:00:00Z&end_time=2026-03-01T00:00:00Z"), "invalid_value", "end_time"},
		{c.get("/v1/findings?size=1&size=2"), "repeated", "size"},
		{c.get("/v1/findings?owner=%zz"), "malformed", "owner"},
		{c.get("/v1/findings?size=%zz"), "malformed", "size"},
		{c.get("/v1/findings?cursor=%"), "malformed", "cursor"},
		{c.get("/v1/findings?sort=%ff"), "invalid_value", "sort"},
		{c.get("/v1/findings?cursor=x"), "invalid_cursor", "cursor"},
		{c.get("/v2/findings/%ff"), "invalid_value", "id"},
		{c.get(findingPath("r", "%00", "f")), "invalid_value", "project_id"},
		{c.patch("/v1/findings/f-none", `{"user_status":"x"}`), "invalid_value", "user_status"},
		{c.patch("/v2/findings/f-none", `{"user_status":"x"}`), "invalid_value", "user_status"},
		{c.patch("/v2/findings/f-none", `{"comments":1}`), "invalid_value", "comments"},
		{c.patch("/v2/findings/f-none", `{"comments":"x","repo_id":1}`), "invalid_value", "repo_id"},
		{c.patch("/v2/findings/f-none", `{"comments":"x","comments":"y"}`), "repeated", "comments"},
		{c.patch("/v2/findings/f-none", `{"x":"x","x":"y","comments":"z"}`), "malformed", ""},
		{c.patch("/v2/findings/f-none", `{`), "malformed", ""},
		{c.patch("/v2/findings/f-none", `{"x":1}`), "missing", "user_status"},
		{c.patch("/v2/findings/f-none", `{}`), "missing", ""},
		{c.patch("/v2/findings/f-none", ""), "malformed", ""},
		{operation(`{"set":{"comments":"x"}}`), "missing", ""},
		{operation(`{"ids":["f-none"]}`), "missing", "set"},
		{operation(`{"ids":["f-none"],"undo":"op-none"}`), "invalid_value", ""},
		{operation(`{"undo":"op-none","set":{"comments":"x"}}`), "invalid_value", "set"},
		{operation(`{"filters":{"tool":""},"set":{"comments":"x"}}`), "invalid_value", "filters.tool"},
		{c.patch("/v2/findings/f-none", `{"comments":"x"}`, apiclient.Header("Content-Type", "text/plain")), "invalid_value", "content-type"},
		{c.patch("/v1/findings/f-none", `{"user_status":"open","x":"`+strings.Repeat("a", 4<<20)+`"}`), "too_long", ""},
		{c.patch("/v2/findings/f-none", `{"user_status":"open","x":"`+strings.Repeat("a", 4<<20)+`"}`), "too_long", ""},
		{post(`{"payload":"x"}`), "missing", "signature"},
		{post(`{"payload":"x","signature":"y"}`), "not_found", ""},
		{c.get("/v2/findings/f-none"), "not_found", ""},
		{c.get("/nowhere"), "not_found", ""},
		{c.do("DELETE", "/v1/findings", ""), "method_not_allowed", ""},
		{anonymous(t).get("/v1/findings"), "unauthorized", ""},
	} {
		got := test.answer.wants(cmp.Or(statuses[test.code], 400), test.code).object()
		wantsShape(t, test.answer.request, got, errorShape)
		if message := got.text("error"); !slices.Contains(messages[test.answer.Status], message) {
			t.Errorf("%s: the message is %q, want one of %q", test.answer.request, message, messages[test.answer.Status])
		}
		wantsMembers(t, test.code+" of "+test.answer.request, record{"code": test.code, "field": test.field}, got)
		if test.field != "id" && test.field != "content-type" {
			test.answer.wantsDetail(test.field)
		}
	}
}

func TestErrors_UnknownPathsAre404(t *testing.T) {
	c := anyKey(t)
	for _, path := range []string{
		"/", "/v1", "/v2", "/v3/findings", "/v1/findings/", "/v2/findings/", "//v1/findings", "/v1//findings", "/V1/findings", "/v1/Findings",
		"/v1/findings/f-1/x", "/v1/./findings", "/v1/findings/../findings", "/v1/%66indings", "/v1%2Ffindings", "/v1/repos", "/v1/webhooks", "/healthz", "/readyz", "/metrics", "/debug/pprof/", "/api",
		"/v2/repos//projects/p/findings/f", findingPath("r", "p", ""), findingPath("r", "p", "f") + "/",
	} {
		harness.Same(t, path+": redirects to", "", c.get(path).notFound(path).Header.Get("Location"))
	}
}

func TestErrors_UnknownMethodsAre405WithAllow(t *testing.T) {
	c := anyKey(t)
	for path, methods := range allowedMethods() {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND"} {
			if slices.Contains(methods, method) {
				continue
			}
			a := c.do(method, path, "").wants(405, path)
			if method != "HEAD" { // which has no body
				a.wantsError(405, "Method not allowed", path)
			}
			for _, want := range methods {
				if !slices.Contains(strings.Split(a.Header.Get("Allow"), ", "), want) {
					t.Errorf("%s %s: Allow is %q, want %s in it", method, path, a.Header.Get("Allow"), want)
				}
			}
		}
	}
}

func TestErrors_AnInvalidIDIs400(t *testing.T) {
	c := anyKey(t)
	for reason, id := range map[string]string{
		"over 253 bytes":       strings.Repeat("a", 254),
		"a control character":  "f-%00",
		"a line feed":          "f-%0a",
		"the delete character": "f-%7f",
		"invalid UTF-8":        "f-%ff",
		"half a character":     "f-%c3",
		"a C1 character":       "f-%c2%85",
		"254 bytes in 127":     strings.Repeat("%c3%a9", 127),
	} {
		c.patch("/v1/findings/"+id, `{"user_status":"open"}`).badRequest(reason)
		c.patch("/v2/findings/"+id, `{"user_status":"open"}`).badRequest(reason)
		c.patch("/v2/findings/f-1?finding_id="+id, `{"user_status":"open"}`).badQuery(reason)
		c.get(projectPath("r", id)).badQuery(reason)
		c.get("/v2/issues/" + id).badQuery(reason)
		c.post("/v2/webhook-deliveries/"+id+"/verify", `{"payload":"x","signature":"y"}`).badRequest(reason)
		c.get(findingPath(id, "p", "f")).badQuery(reason)
		c.get(findingPath("r", id, "f")).badQuery(reason)
		c.get(findingPath("r", "p", id)).badQuery(reason)
	}
}

func TestErrors_AnUnknownIDIs404(t *testing.T) {
	c := anyKey(t)
	for _, id := range []string{
		"f-none", "F-Upper", strings.Repeat("a", 253), "a%2Fb", "%E6%96%87", "a+b", "a%20b", "*", "%25", "'%20or%20'1'='1", "..%2F..", "~", "null",
	} {
		c.patch("/v1/findings/"+id, `{"user_status":"open"}`).notFound(id)
		c.patch("/v2/findings/"+id, `{"user_status":"open"}`).notFound(id)
		c.get(findingPath(id, "p", "f")).notFound(id)
		c.get(findingPath("r", "p", id)).notFound(id)
	}
}

// Errors do not reveal how the service is implemented.
func TestErrors_DoNotRevealInternals(t *testing.T) {
	c := anyKey(t)
	for _, a := range []answer{
		c.get("/v1/findings?cursor=x"), c.get("/nowhere"), c.do("DELETE", "/v1/findings", ""), c.patch("/v1/findings/f-none", `{"user_status":7}`),
		c.patch("/v2/findings/f-none", `[`), c.get(findingPath("r", "p", "f")), anonymous(t).get("/v1/findings"),
		c.patch("/v1/findings/f-none", `{"user_status":"open"}`, apiclient.Header("Content-Type", "text/plain")),
	} {
		if a.Status == http.StatusOK {
			t.Errorf("%s: no error", a.request)
		}
		text := strings.ToLower(string(a.Body))
		harness.Lacks(t, a.request+": the body", text, "kube", "appsec.dev", "admission", "namespace", ".go:", "goroutine", "json:", "struct",
			"golang", "unmarshal", "/work", "/home", "gin", "resourceversion", "etcd")
		for _, name := range []string{"Server", "X-Powered-By"} {
			harness.Same(t, a.request+": the header "+name, "", a.Header.Get(name))
		}
	}
}
