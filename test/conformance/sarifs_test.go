package conformance

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/apiclient"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Uploads in the form of GitHub's code scanning are additions to the contract.

var (
	sarifReceiptShape = members("string: id url")
	sarifStatusShape  = members("string: processing_status analyses_url", "array?: errors")
	sarifErrorShape   = members("string: message error detail code field")
)

const sarifsPath = "/repos/acme/shaped/code-scanning/sarifs"

// sarifTarget returns an organization with the repository acme/shaped, whose branch is main.
func sarifTarget(t *testing.T) *organization {
	t.Helper()
	o := newOrganization(t)
	o.patchResource(builder.Repository("repo").In(o.namespace).Build(), `{"spec":{"fullName":"Acme/shaped","defaultBranch":"main"}}`)
	harness.Eventually(t, func(g Gomega) {
		g.Expect(o.get("/v2/repos/repo").object()["full_name"]).To(Equal("Acme/shaped"))
	})
	return o
}

// sarifCommit is the commit of every upload.
const sarifCommit = "8f3e1c2d5b7a9c4e6f8a0b2c4d6e8f0a1b3c5d7e"

func sarifBody(ref, document string) string {
	return `{"commit_sha":"` + sarifCommit + `","ref":"` + ref + `","sarif":"` +
		base64.StdEncoding.EncodeToString([]byte(apiclient.Gzip(document))) + `"}`
}

// wantsSarifError fails the test unless the answer is an error that GitHub's clients can show.
func (a answer) wantsSarifError(status int, message, reason string) {
	a.t.Helper()
	said := a.wants(status, reason).object()
	wantsShape(a.t, reason, said, sarifErrorShape)
	if !strings.HasPrefix(said.text("message"), message) {
		a.t.Errorf("%s: the message is %q, want it to begin with %q", reason, said.text("message"), message)
	}
}

func TestSarifs_AnUploadIsReceivedAndFollowed(t *testing.T) {
	o := sarifTarget(t)
	for _, below := range []string{"", "/api/v3"} {
		receipt := o.post(below+sarifsPath, sarifBody("refs/heads/main", sarifOf("one", "alpha"))).wants(202, below).object()
		wantsShape(t, "a receipt", receipt, sarifReceiptShape)
		at, err := url.Parse(receipt.text("url"))
		harness.Must(t, err)
		if at.Host == "" || at.Path != below+sarifsPath+"/"+receipt.text("id") {
			t.Errorf("the upload is at %s", at)
		}
		var status record
		harness.Eventually(t, func(g Gomega) {
			status = o.get(at.Path).wants(200, "the upload").object()
			wantsShape(t, "an upload", status, sarifStatusShape)
			g.Expect(status["processing_status"]).To(Equal("complete"))
			g.Expect(status["errors"]).To(BeNil())
		})
		analyses, err := url.Parse(status.text("analyses_url"))
		harness.Must(t, err)
		upload := o.get(analyses.RequestURI()).wants(200, "as another door shows it").object()
		wantsMembers(t, "the upload", record{"id": receipt["id"], "status": "completed", "scan_count": 1.0}, upload)
		wantsMembers(t, "its scan", record{"commit_hash": sarifCommit, "imported_by": "apikey/conformance"}, upload.records("scans")[0])
	}
}

func TestSarifs_AnUploadThatFailsSaysWhy(t *testing.T) {
	o := sarifTarget(t)
	id := o.post(sarifsPath, sarifBody("refs/heads/feature", sarifOf("one", "alpha"))).wants(202, "another branch").object().text("id")
	status := o.get(sarifsPath+"/"+id).wants(200, "the upload").object()
	wantsShape(t, "an upload", status, sarifStatusShape)
	reasons := status.list("errors")
	if status["processing_status"] != "failed" || len(reasons) != 1 || !strings.HasPrefix(reasons[0].(string), "rejecting SARIF") {
		t.Errorf("the upload is %v", status)
	}
}

func TestSarifs_ErrorsHaveAMessage(t *testing.T) {
	o := sarifTarget(t)
	good := sarifBody("refs/heads/main", sarifOf("one", "alpha"))
	none, importing := o.key("none"), o.key("import", v1alpha1.ScopeFindingsImport)
	for _, below := range []string{"", "/api/v3"} {
		path := below + sarifsPath
		o.post(path, `{}`).wantsSarifError(400, "rejecting SARIF: ", "nothing of it")
		o.post(path, strings.Replace(good, `"sarif":"`, `"sarif":"*`, 1)).wantsSarifError(400, "rejecting SARIF: ", "not base64")
		o.post(path, good[:len(good)-1]+`,"x":"`+strings.Repeat("a", 1<<17)+`"}`).wantsSarifError(413, "rejecting SARIF: ", "too long")
		o.get(path+"/"+strings.Repeat("a", 254)).wantsSarifError(400, "Invalid query parameter: ", "an id that is none")
		o.get(path+"/u-none").wantsSarifError(404, "Resource not found: there is no such upload", "no such upload")
		o.post(strings.Replace(path, "shaped", "none", 1), good).wantsSarifError(404, "Resource not found: ", "no such repository")
		o.get(strings.Replace(path, "shaped", "none", 1)+"/u-none").wantsSarifError(404, "Resource not found: ", "no such repository to read from")
		o.get(below+"/repos/acme/shaped/issues").wantsSarifError(404, "Resource not found: ", "another path of GitHub's")
		o.do("PUT", path, good).wantsSarifError(405, "Method not allowed: ", "another method")
		none.post(path, good).wantsSarifError(403, "Forbidden: the API key lacks the scope findings:import", "no scope listed")
		anonymous(t).post(path, good).wantsSarifError(401, "Unauthorized: ", "no key")
		anonymous(t).get(below+"/repos/acme/shaped/issues").wantsSarifError(401, "Unauthorized: ", "no key, and no such path")
		for _, scheme := range []string{"token ", "Token "} {
			importing.get(path+"/u-none", apiclient.Header("Authorization", scheme+o.Token)).wants(404, "the scheme "+scheme)
		}
	}
	o.get("/v2/repos", apiclient.Header("Authorization", "token "+o.Token)).wants(401, "the scheme token elsewhere")
}

// A parameter that is ignored, such as dry_run, would import.
func TestSarifs_AnUploadRefusesParameters(t *testing.T) {
	o := sarifTarget(t)
	good := sarifBody("refs/heads/main", sarifOf("one", "alpha"))
	for _, below := range []string{"", "/api/v3"} {
		for _, name := range []string{"dry_run", "force"} {
			o.post(below+sarifsPath+"?"+name+"=true", good).
				wantsSarifError(400, `rejecting SARIF: there is no parameter "`+name+`": this operation has none; uploads to /v2/`, below)
		}
	}
	harness.Same(t, "findings", 0, len(o.get("/v2/findings").page().Items))
}
