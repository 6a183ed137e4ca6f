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

// The upload of a pull request that is killed halfway. An import of a project's scan branch is killed in test/faults.
const (
	killedTool = "killed-review"
	// killedQuery names a pull request that the samples do not have.
	killedQuery = "?pull_request=77&commit=1c2d3e4f5a6b7c8d"
	// killedResults is enough for an import of a second or more.
	killedResults = 150
)

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

// killUpload kills the facade once, while it works on an upload that has already written something, and returns what
// the upload had recorded then.
func killUpload(t *testing.T, r *run, rest *restClient) v1alpha1.Scan {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var answered sync.WaitGroup
	answered.Go(func() { _, _, _ = rest.upload(ctx, killedQuery, manyResults(killedTool, killedResults)) }) // no answer comes
	admin, scans, issues := r.admin(t), &v1alpha1.ScanList{}, &v1alpha1.ReviewIssueList{}
	eventually(t, "the upload is writing", func() bool {
		for _, list := range []client.ObjectList{issues, scans} {
			harness.Must(t, admin.List(t.Context(), list, client.InNamespace(r.env["FINDINGS_NAMESPACE"])))
		}
		return slices.ContainsFunc(issues.Items, func(i v1alpha1.ReviewIssue) bool {
			return i.Spec.Result != nil && i.Spec.Result.Tool == killedTool
		})
	})
	if err := syscall.Kill(r.pid(t, "apiserver"), syscall.SIGKILL); err != nil {
		t.Fatalf("kill the facade: %v", err)
	}
	cancel()
	answered.Wait()
	at := slices.IndexFunc(scans.Items, func(s v1alpha1.Scan) bool { return s.Spec.Tool == killedTool })
	if at < 0 || scans.Items[at].Spec.CompletedAt != nil {
		t.Fatalf("the kill came before the import was recorded, or after its end: %+v", scans.Items)
	}
	return scans.Items[at]
}

// repeatKilled waits until the killed upload has failed, and repeats it until it completes.
func repeatKilled(t *testing.T, r *run, rest *restClient, killed v1alpha1.Scan) (again uploadAnswer) {
	t.Helper()
	read := func(g Gomega, id string, into *uploadAnswer) {
		answer, err := rest.Do(t.Context(), http.MethodGet, "/v2/uploads/"+id, "")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(answer.Status).To(Equal(http.StatusOK), string(answer.Body))
		g.Expect(json.Unmarshal(answer.Body, into)).To(Succeed())
	}
	// It fails once its Lease is over.
	r.kubectl(t, "wait", "--for=jsonpath={.status.phase}="+string(v1alpha1.ScanPhaseFailed), "scans.appsec.dev/"+killed.Name,
		"--namespace="+r.env["FINDINGS_NAMESPACE"], "--timeout="+settleTimeout.String())
	harness.Within(t, settleTimeout, func(g Gomega) {
		var upload uploadAnswer
		read(g, killed.Spec.Upload.ID, &upload)
		g.Expect(upload.Status).To(Equal("failed"), "the upload over REST")
		g.Expect(upload.Scans[0].Message).NotTo(BeEmpty(), "the upload over REST")
	})
	harness.Within(t, settleTimeout, func(g Gomega) {
		status, answer, err := rest.upload(t.Context(), killedQuery, manyResults(killedTool, killedResults))
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

// checkKilledUpload checks that repeating a killed upload of a pull request finishes the work: all issues exist once,
// and the commit is recorded.
func checkKilledUpload(t *testing.T, r *run, rest *restClient) {
	counts := repeatKilled(t, r, rest, killUpload(t, r, rest)).Scans[0].Counts
	switch {
	case counts["created"]+counts["updated"]+counts["unchanged"] != killedResults || counts["closed"] != 0:
		t.Errorf("after the second upload the counts are %v", counts)
	case counts["created"] == 0:
		t.Error("the kill came after all issues were written")
	default:
		t.Logf("of %d issues the killed upload had written %d", killedResults, killedResults-counts["created"])
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
