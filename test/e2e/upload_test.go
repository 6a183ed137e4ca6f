package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// killedResults is enough for an import to take several seconds.
const killedResults = 800

// uploadAnswer holds the members of an upload that a client reads.
type uploadAnswer struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Scans  []struct {
		Message string         `json:"message"`
		Counts  map[string]int `json:"counts"`
	} `json:"scans"`
}

func (c *restClient) upload(ctx context.Context, query, results string) (status int, answer uploadAnswer, err error) {
	path := c.base + "/v2/repos/vulnerable-service/projects/billing/scans" + query
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(results))
	if err != nil {
		return 0, answer, err
	}
	request.Header.Set("Authorization", "Bearer "+c.key)
	request.Header.Set("Content-Type", "application/sarif+json")
	status, content, err := harness.Answer(c.http, request)
	if err != nil {
		return 0, answer, err
	}
	return status, answer, json.Unmarshal(content, &answer)
}

func manyResults(tool string, n int) string {
	results := make([]string, n)
	for i := range results {
		results[i] = fmt.Sprintf(`{"ruleId":"R1","message":{"text":"problem %d"},"locations":[{"physicalLocation":{"artifactLocation":`+
			`{"uri":"src/f%d.go"},"region":{"startLine":7}}}]}`, i, i)
	}
	return `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"` + tool + `"}},"results":[` + strings.Join(results, ",") + `]}]}`
}

// killAmid kills the facade while it works on an upload of the tool, waits until that upload has failed, and repeats
// the upload until it completes.
func killAmid(t *testing.T, r *run, rest *restClient, tool, query string) (again uploadAnswer) {
	t.Helper()
	results := manyResults(tool, killedResults)
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _, _ = rest.upload(ctx, query, results) // the facade is killed before it answers
	}()
	var first v1alpha1.Scan
	eventually(t, "the upload of "+tool+" is recorded", func() bool {
		list := &v1alpha1.ScanList{}
		r.read(t, list, "scans.appsec.dev")
		at := slices.IndexFunc(list.Items, func(s v1alpha1.Scan) bool { return s.Spec.Tool == tool })
		if at >= 0 {
			first = list.Items[at]
		}
		return at >= 0
	})
	if err := syscall.Kill(r.pid(t, "apiserver"), syscall.SIGKILL); err != nil {
		t.Fatalf("kill the facade: %v", err)
	}
	cancel()
	<-answered
	if first.Spec.CompletedAt != nil {
		t.Fatalf("the import had ended before the kill: %+v", first.Spec)
	}
	read := func(id string, into *uploadAnswer) bool {
		status, content, err := rest.call(t.Context(), http.MethodGet, "/v2/uploads/"+id, nil)
		return err == nil && status == http.StatusOK && json.Unmarshal(content, into) == nil
	}
	// It fails once its Lease is over.
	r.kubectl(t, "wait", "--for=jsonpath={.status.phase}="+string(v1alpha1.ScanPhaseFailed), "scans.appsec.dev/"+first.Name,
		"--namespace="+r.env["FINDINGS_NAMESPACE"], "--timeout="+settleTimeout.String())
	eventually(t, "the upload is failed over REST", func() bool {
		var upload uploadAnswer
		return read(first.Spec.Upload.ID, &upload) && upload.Status == "failed" && upload.Scans[0].Message != ""
	})
	eventually(t, "the same upload again is taken", func() bool {
		status, answer, err := rest.upload(t.Context(), query, results)
		again = answer
		return err == nil && (status == http.StatusOK || status == http.StatusAccepted)
	})
	eventually(t, "it is completed", func() bool { return read(again.ID, &again) && again.Status == "completed" })
	return again
}

// checkKilledUpload checks that a killed upload closes nothing halfway, and that repeating it finishes the work
// without duplicates.
func checkKilledUpload(t *testing.T, r *run, rest *restClient) {
	t.Helper()
	counts := killAmid(t, r, rest, "killed", "").Scans[0].Counts
	if counts["created"]+counts["unchanged"] != killedResults || counts["closed"]+counts["reopened"]+counts["updated"] != 0 {
		t.Errorf("after the second upload the counts are %v", counts)
	}
	if counts["created"] == 0 {
		t.Error("the kill came after all findings were written")
	}
	t.Logf("of %d findings the killed import had written %d", killedResults, counts["unchanged"])
	stored := 0
	for _, finding := range r.findings(t) {
		if finding.Spec.Tool == "killed" {
			stored++
		}
	}
	harness.Same(t, "stored findings", killedResults, stored)
}

// checkKilledReview checks the same for a pull request, whose issues must all exist once, and whose commit must
// be recorded.
func checkKilledReview(t *testing.T, r *run, rest *restClient) {
	t.Helper()
	const commit = "1c2d3e4f5a6b7c8d"
	again := killAmid(t, r, rest, "killed-review", "?pull_request=77&commit="+commit)
	if counts := again.Scans[0].Counts; counts["created"]+counts["updated"]+counts["unchanged"] != killedResults || counts["closed"] != 0 {
		t.Errorf("after the second upload the counts are %v", counts)
	} else if counts["created"] == 0 {
		t.Error("the kill came after all issues were written")
	} else {
		t.Logf("of %d issues the killed review had written %d", killedResults, killedResults-counts["created"])
	}
	reviews, issues := &v1alpha1.ReviewList{}, &v1alpha1.ReviewIssueList{}
	r.read(t, reviews, "reviews.appsec.dev")
	r.read(t, issues, "reviewissues.appsec.dev")
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

// findings reads all Findings with kubectl.
func (r *run) findings(t *testing.T) []v1alpha1.Finding {
	t.Helper()
	list := &v1alpha1.FindingList{}
	r.read(t, list, "findings.appsec.dev")
	return list.Items
}
