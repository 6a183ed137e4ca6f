package uploads

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/provision"
	"github.com/appsec-dev/findings-operator/scanimport/reviewimport"
)

// PullRequest is the scanned pull request as the client describes it.
type PullRequest struct {
	// Number at the provider; 0 for none, unless the ref names one.
	Number int32
	// Empty values leave the stored ones as they are.
	Title, Author string
	Status        v1alpha1.PullRequestStatus
	// OpenedAt is when it was opened; zero means at its first review.
	OpenedAt time.Time
	// Gate to evaluate; empty for none.
	Gate reviewimport.Gate
}

// pullRef matches the ref of a pull request at GitHub, or of a merge request at GitLab.
var pullRef = regexp.MustCompile(`^refs/(?:pull|merge-requests)/([0-9]+)/(?:head|merge)$`)

// resolve completes the pull request from the ref. It refuses contradictions, and a gate without a pull
// request, which would have nothing to evaluate.
func (r *Request) resolve() error {
	pr := &r.PullRequest
	if ref := pullRef.FindStringSubmatch(r.Ref); ref != nil {
		number, err := strconv.ParseInt(ref[1], 10, 32)
		if err != nil || number < 1 {
			return r.invalid("ref", "is "+r.Ref+", which is not that of a pull request: its number must be at least 1")
		}
		if pr.Number != 0 && int64(pr.Number) != number {
			return problem.InvalidQuery(fmt.Sprintf("pull_request is %d and ref is %s: leave one out", pr.Number, r.Ref)).
				In("pull_request")
		}
		pr.Number = int32(number)
	}
	if pr.Number != 0 {
		if r.Choices.Analysis == nil {
			r.Choices.Analysis = new(string) // issues are not distinguished by the analysis
		}
		return nil
	}
	const missing = " is about a pull request, and neither pull_request nor ref names one"
	switch {
	case pr.Gate != "":
		return problem.InvalidQuery("fail_on" + missing).In("fail_on")
	case pr.Title != "":
		return problem.InvalidQuery("pr_title" + missing).In("pr_title")
	case pr.Author != "":
		return problem.InvalidQuery("pr_author" + missing).In("pr_author")
	case pr.Status != "":
		return problem.InvalidQuery("pr_status" + missing).In("pr_status")
	case !pr.OpenedAt.IsZero():
		return problem.InvalidQuery("pr_opened_at" + missing).In("pr_opened_at")
	}
	return nil
}

// invalid refuses a parameter of the query, or the member of the body that replaces it: GitHub's form has no query. The
// detail follows the name.
func (r *Request) invalid(name, detail string) *problem.Problem {
	if r.Settings == nil {
		return problem.InvalidQuery(name + " " + detail).In(name)
	}
	if name == "commit" {
		name = "commit_sha"
	}
	return problem.InvalidBody(name + " " + detail).In(name)
}

// reviewedCommit returns the commit that the client names, or else the file's.
func reviewedCommit(request *Request, batches []*importer.Batch) (*reviewimport.Commit, error) {
	sha := request.Choices.Commit
	for _, b := range batches {
		sha = cmp.Or(sha, b.Commit)
	}
	sha = strings.ToLower(sha)
	switch {
	case sha == "":
		return nil, request.invalid("commit", "is needed to review a pull request, and the file does not name it")
	case !provision.IsCommitHash(sha):
		return nil, request.invalid("commit", "must be the hash of a commit: 7 to 64 hexadecimal digits")
	}
	return &reviewimport.Commit{SHA: sha}, nil
}

// review records the results for the commit of a pull request.
func (j *job) review(ctx context.Context, c *importer.Client, recorded func()) (*reviewimport.Summary, error) {
	pr := reviewimport.PullRequest{
		Namespace: j.Namespace, Repository: j.Repository, Project: j.Project,
		Number: j.PullRequest.Number, Title: j.PullRequest.Title, Author: j.PullRequest.Author,
		Status: j.PullRequest.Status, OpenedAt: j.PullRequest.OpenedAt,
	}
	summary, err := reviewimport.New(c, pr, reviewimport.Options{
		DryRun: j.DryRun, Growing: j.growing(),
		Record: &reviewimport.Record{
			Upload:  v1alpha1.ScanUpload{ID: j.id, Scans: int32(len(j.batches))}, //nolint:gosec // bounded by maxScans
			Project: cmp.Or(j.Project, j.recordedIn), Importer: importedWith(),
			ImportedBy: j.Author(),
			Gate:       j.PullRequest.Gate, OnRecorded: recorded,
		},
	}).Import(ctx, j.commit, j.batches)
	if err == nil && j.PullRequest.Gate != "" {
		summary.Gate = j.PullRequest.Gate.Judge(summary)
	}
	return summary, err
}
