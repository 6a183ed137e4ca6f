package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/apiclient"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// killedResults is enough for two imports at the same time to take several seconds.
const killedResults = 400

// uploadAnswer holds the members of an upload that a client reads.
type uploadAnswer struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Scans  []struct {
		Message string         `json:"message"`
		Counts  map[string]int `json:"counts"`
	} `json:"scans"`
}

func (c *restClient) upload(ctx context.Context, query, results string) (status int, upload uploadAnswer, err error) {
	answer, err := c.Do(ctx, http.MethodPost, "/v2/repos/vulnerable-service/projects/billing/scans"+query, results,
		apiclient.Header("Content-Type", "application/sarif+json"))
	if err != nil {
		return 0, upload, err
	}
	return answer.Status, upload, json.Unmarshal(answer.Body, &upload)
}

func manyResults(tool string, n int) string {
	results := make([]builder.Result, n)
	for i := range results {
		results[i] = builder.Result{Rule: "R1", Message: fmt.Sprintf("problem %d", i), Path: fmt.Sprintf("src/f%d.go", i), Line: 7}
	}
	return builder.SARIF(tool, results...)
}

// killed is an upload that was under way when the facade was killed.
type killed struct {
	tool, query, results string
	// scan is what the upload had recorded when the facade was killed.
	scan v1alpha1.Scan
}

// killUploads kills the facade once, while it works on an upload of the scan branch and on one of a pull request, both
// of which have already written something.
func killUploads(t *testing.T, r *run, rest *restClient) (scan, review *killed) {
	t.Helper()
	scan, review = &killed{tool: "killed"}, &killed{tool: "killed-review", query: "?pull_request=77&commit=1c2d3e4f5a6b7c8d"}
	uploads := []*killed{scan, review}
	ctx, cancel := context.WithCancel(t.Context())
	var answered sync.WaitGroup
	for _, u := range uploads {
		u.results = manyResults(u.tool, killedResults)
		answered.Go(func() { _, _, _ = rest.upload(ctx, u.query, u.results) }) // the facade is killed before it answers
	}
	admin, scans := r.admin(t), &v1alpha1.ScanList{}
	findings, issues := &v1alpha1.FindingList{}, &v1alpha1.ReviewIssueList{}
	eventually(t, "both uploads are writing", func() bool {
		for _, list := range []client.ObjectList{findings, issues, scans} {
			harness.Must(t, admin.List(t.Context(), list, client.InNamespace(r.env["FINDINGS_NAMESPACE"])))
		}
		return slices.ContainsFunc(findings.Items, func(f v1alpha1.Finding) bool { return f.Spec.Tool == scan.tool }) &&
			slices.ContainsFunc(issues.Items, func(i v1alpha1.ReviewIssue) bool { return i.Spec.Result != nil && i.Spec.Result.Tool == review.tool })
	})
	if err := syscall.Kill(r.pid(t, "apiserver"), syscall.SIGKILL); err != nil {
		t.Fatalf("kill the facade: %v", err)
	}
	cancel()
	answered.Wait()
	for _, u := range uploads {
		at := slices.IndexFunc(scans.Items, func(s v1alpha1.Scan) bool { return s.Spec.Tool == u.tool })
		if at < 0 || scans.Items[at].Spec.CompletedAt != nil {
			t.Fatalf("the kill came before the import of %s was recorded, or after its end: %+v", u.tool, scans.Items)
		}
		u.scan = scans.Items[at]
	}
	return scan, review
}

// repeat waits until the upload has failed, and repeats it until it completes.
func (u *killed) repeat(t *testing.T, r *run, rest *restClient) (again uploadAnswer) {
	t.Helper()
	read := func(g Gomega, id string, into *uploadAnswer) {
		answer, err := rest.Do(t.Context(), http.MethodGet, "/v2/uploads/"+id, "")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(answer.Status).To(Equal(http.StatusOK), string(answer.Body))
		g.Expect(json.Unmarshal(answer.Body, into)).To(Succeed())
	}
	// It fails once its Lease is over.
	r.kubectl(t, "wait", "--for=jsonpath={.status.phase}="+string(v1alpha1.ScanPhaseFailed), "scans.appsec.dev/"+u.scan.Name,
		"--namespace="+r.env["FINDINGS_NAMESPACE"], "--timeout="+settleTimeout.String())
	harness.Within(t, settleTimeout, func(g Gomega) {
		var upload uploadAnswer
		read(g, u.scan.Spec.Upload.ID, &upload)
		g.Expect(upload.Status).To(Equal("failed"), "the upload over REST")
		g.Expect(upload.Scans[0].Message).NotTo(BeEmpty(), "the upload over REST")
	})
	harness.Within(t, settleTimeout, func(g Gomega) {
		status, answer, err := rest.upload(t.Context(), u.query, u.results)
		g.Expect(err).NotTo(HaveOccurred(), "the same upload again")
		g.Expect(status).To(BeElementOf(http.StatusOK, http.StatusAccepted), "the same upload again")
		again = answer
	})
	harness.Within(t, settleTimeout, func(g Gomega) {
		read(g, again.ID, &again)
		g.Expect(again.Status).To(Equal("completed"), "the same upload again")
	})
	return again
}

// checkKilledUpload checks that a killed upload closes nothing halfway, and that repeating it finishes the work
// without duplicates.
func checkKilledUpload(t *testing.T, r *run, rest *restClient, upload *killed) {
	t.Helper()
	counts := upload.repeat(t, r, rest).Scans[0].Counts
	if counts["created"]+counts["unchanged"] != killedResults || counts["closed"]+counts["reopened"]+counts["updated"] != 0 {
		t.Errorf("after the second upload the counts are %v", counts)
	}
	if counts["created"] == 0 {
		t.Error("the kill came after all findings were written")
	}
	t.Logf("of %d findings the killed import had written %d", killedResults, counts["unchanged"])
	findings := &v1alpha1.FindingList{}
	harness.Must(t, r.admin(t).List(t.Context(), findings, client.InNamespace(r.env["FINDINGS_NAMESPACE"])))
	stored := 0
	for _, finding := range findings.Items {
		if finding.Spec.Tool == "killed" {
			stored++
		}
	}
	harness.Same(t, "stored findings", killedResults, stored)
}

// checkKilledReview checks the same for a pull request, whose issues must all exist once, and whose commit must
// be recorded.
func checkKilledReview(t *testing.T, r *run, rest *restClient, upload *killed) {
	t.Helper()
	again := upload.repeat(t, r, rest)
	if counts := again.Scans[0].Counts; counts["created"]+counts["updated"]+counts["unchanged"] != killedResults || counts["closed"] != 0 {
		t.Errorf("after the second upload the counts are %v", counts)
	} else if counts["created"] == 0 {
		t.Error("the kill came after all issues were written")
	} else {
		t.Logf("of %d issues the killed review had written %d", killedResults, killedResults-counts["created"])
	}
	reviews, issues := &v1alpha1.ReviewList{}, &v1alpha1.ReviewIssueList{}
	for _, list := range []client.ObjectList{reviews, issues} {
		harness.Must(t, r.admin(t).List(t.Context(), list, client.InNamespace(r.env["FINDINGS_NAMESPACE"])))
	}
	at := slices.IndexFunc(reviews.Items, func(review v1alpha1.Review) bool { return review.Spec.PRNumber == 77 })
	if at < 0 || len(reviews.Items[at].Spec.ReviewedCommits) != 1 {
		t.Fatalf("the reviews are %+v", reviews.Items)
	}
	stored := 0
	for _, issue := range issues.Items {
		if string(issue.Spec.ReviewRef.Name) == reviews.Items[at].Name {
			stored++
		}
	}
	harness.Same(t, "stored issues", killedResults, stored)
}
