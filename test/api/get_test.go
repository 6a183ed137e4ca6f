package api_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/test/builder"
)

func TestAFindingIsFoundByItsThreeIDsAlone(t *testing.T) {
	o, other := newOrganization(t), newOrganization(t)
	c, foreign := o.key("ci"), other.key("ci")
	o.finding(c, builder.Finding("f-1"))
	other.finding(foreign, builder.Finding("f-theirs"))
	got := decoded[shown](c.get(someFinding).wants(200, "all three agree"))
	if got.ID != "f-1" || got.OrganizationID != o.name {
		t.Errorf("got %+v", got)
	}
	missing := c.get("/v2/repos/repo/projects/proj/findings/none").wantsError(404, "Resource not found", "no such finding")
	for reason, path := range map[string]string{
		"another repository":          "/v2/repos/other/projects/proj/findings/f-1",
		"another project":             "/v2/repos/repo/projects/other/findings/f-1",
		"another organization's":      "/v2/repos/repo/projects/proj/findings/f-theirs",
		"an upper-case id":            "/v2/repos/repo/projects/proj/findings/F-1",
		"an encoded slash":            "/v2/repos/repo/projects/proj/findings/f-1%2F",
		"a path out of the folder":    "/v2/repos/repo/projects/proj/findings/..%2Ff-1",
		"dots":                        "/v2/repos/repo/projects/proj/findings/..",
		"white space":                 "/v2/repos/repo/projects/proj/findings/%20f-1",
		"a plus sign":                 "/v2/repos/repo/projects/proj/findings/f+1",
		"an id of 253 bytes":          "/v2/repos/repo/projects/proj/findings/" + strings.Repeat("a", 253),
		"another script":              "/v2/repos/repo/projects/proj/findings/%D1%84-1",
		"the namespace and the name":  "/v2/repos/repo/projects/proj/findings/" + o.namespace + "%2Ff-1",
		"a repository that is not so": "/v2/repos/%2A/projects/proj/findings/f-1",
	} {
		a := c.get(path).wants(404, reason)
		if !bytes.Equal(a.body, missing.body) {
			t.Errorf("%s: the body tells more than that there is none: %s", reason, a.body)
		}
	}
	c.get("/v2/repos/repo/projects/proj/findings/f%2D1").wants(200, "an id may be percent-encoded")
}

func TestAnIDThatCannotBeIsRefused(t *testing.T) {
	c := newOrganization(t).key("ci")
	for reason, id := range map[string]string{
		"NUL": "a%00", "a line break": "a%0Ab", "DEL": "%7F", "a C1 control character": "%C2%85",
		"no UTF-8": "%FF", "half a character": "a%C3", "254 bytes": strings.Repeat("a", 254), "127 characters of two bytes": strings.Repeat("%C3%A9", 127),
	} {
		for _, path := range []string{
			"/v2/repos/" + id + "/projects/proj/findings/f-1",
			"/v2/repos/repo/projects/" + id + "/findings/f-1",
			"/v2/repos/repo/projects/proj/findings/" + id,
		} {
			c.get(path).wantsError(400, "Invalid query parameter", reason)
		}
		c.patch("/v1/findings/"+id, `{"user_status":"open"}`).wantsError(400, "Invalid request body", reason)
		c.patch("/v2/findings/"+id, `{"user_status":"open"}`).wantsError(400, "Invalid request body", reason)
		c.patch("/v2/findings/f-1?finding_id="+id, `{"user_status":"open"}`).wantsError(400, "Invalid query parameter", reason)
	}
}
