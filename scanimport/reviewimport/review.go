package reviewimport

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/provision"
)

// The bounds of the CRD, in characters.
const (
	maxTitle    = 512
	maxAuthor   = 256
	maxProvider = 63
)

// PullRequest describes a pull request.
type PullRequest struct {
	Namespace, Repository string
	// Number at the provider, from 1.
	Number int32
	// Empty fields leave the review's values unchanged. In a new review the provider defaults to the repository's and
	// the status to open.
	Title, Author, Provider string
	Status                  v1alpha1.PullRequestStatus
	// Project whose findings are the base of the comparison; empty: the projects that the results belong to.
	Project string
	// OpenedAt is when the pull request began; zero: at its first review.
	OpenedAt time.Time
	// Server is the address of the API server, for advice to users of several clusters; may be empty.
	Server string
}

// takeBack returns how to remove the record of a pull request, since a merged one stays merged.
func takeBack(pr PullRequest) string {
	place := ""
	if pr.Server != "" {
		place = " at the API server " + pr.Server
	}
	return fmt.Sprintf("have a cluster administrator delete the review%s: kubectl delete review %s -n %s",
		place, Name(pr.Repository, pr.Number), pr.Namespace)
}

// losing is added to takeBack if the review may have issues.
const losing = "; that also deletes its issues and people's decisions about them"

// Commit that was reviewed.
type Commit struct {
	SHA string
	// ReviewedAt is zero if unknown: then the time when the import gets the Lease is used.
	ReviewedAt time.Time
}

// recordedAs returns the commit with the hash under which the review holds it: another job may have given its hash in
// full or shortened. If several recorded hashes fit, the last counts.
func (c *Commit) recordedAs(reviewed []v1alpha1.ReviewedCommit) (*Commit, error) {
	recorded, longest := c.SHA, c.SHA
	for _, other := range reviewed {
		if !sameCommit(other.SHA, c.SHA) {
			continue
		}
		if !sameCommit(other.SHA, longest) {
			return nil, &importer.RefusedError{Reason: fmt.Sprintf("commit %s may be %s or %s, which were both reviewed: give its full hash", c.SHA, longest, other.SHA)}
		}
		recorded = other.SHA
		if len(recorded) > len(longest) {
			longest = recorded
		}
	}
	return &Commit{SHA: recorded, ReviewedAt: c.ReviewedAt}, nil
}

// sameCommit reports whether two hashes belong to one commit: one may be the other shortened.
func sameCommit(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return a == b || provision.IsCommitHash(a) && strings.HasPrefix(b, a)
}

// Name returns the name of the Review of a pull request.
func Name(repository string, number int32) string {
	return "r-" + fingerprints.Hash("review", repository, strconv.Itoa(int(number)))
}

// began returns when the pull request began, as far as known. next is the review's new spec, with a commit.
func (pr *PullRequest) began(review *v1alpha1.Review, next *v1alpha1.ReviewSpec) time.Time {
	if !pr.OpenedAt.IsZero() {
		return pr.OpenedAt
	}
	return firstReviewed(review, next.ReviewedCommits)
}

// firstReviewed returns when the review with these commits began. A restored review was created after that. review may
// be nil if there are commits.
func firstReviewed(review *v1alpha1.Review, reviewed []v1alpha1.ReviewedCommit) time.Time {
	var at time.Time
	if len(reviewed) > 0 {
		at = reviewed[0].ReviewedAt.Time
	}
	if review != nil && (at.IsZero() || review.CreationTimestamp.Time.Before(at)) {
		at = review.CreationTimestamp.Time
	}
	return at
}

// refuseTime returns a RefusedError if the time is in the future, or one that programs send for a time that is not set:
// findings of the base could count as fixed, or its closed ones as known. event names what cannot have happened then.
func refuseTime(event string, at, now time.Time) error {
	var because string
	switch {
	case at.After(now.Add(importer.ClockSkew)):
		because = ", which is in the future"
	case !at.IsZero() && findingquery.IsUnset(at):
		because = ": leave out a time that is not known"
	default:
		return nil
	}
	return &importer.RefusedError{Reason: fmt.Sprintf("%s at %s%s", event, at.UTC().Format(time.RFC3339), because)}
}

// word matches a text that every shell reads as it is.
var word = regexp.MustCompile(`^[\w.-]+$`)

// refuseAnother returns a RefusedError if the review seems to be that of an earlier pull request with the same number,
// because the repository has moved: the review is older than the pull request, or has another provider. Findings that
// the base has closed since would count as known, and decisions about the earlier pull request's issues as made for
// this one. review may be nil. A commit that the review holds belongs to its pull request.
func (pr *PullRequest) refuseAnother(review *v1alpha1.Review, repository *v1alpha1.Repository, commit *Commit) error {
	if review == nil || commit == nil || contains(review.Spec.ReviewedCommits, commit.SHA) {
		return nil
	}
	began, opened := firstReviewed(review, review.Spec.ReviewedCommits).UTC(), pr.OpenedAt.UTC()
	was, is := review.Spec.Provider, cmp.Or(importer.OneLine(pr.Provider, maxProvider), repository.Spec.Provider)
	var because, same string
	switch {
	case opened.After(began.Add(importer.ClockSkew)):
		because = fmt.Sprintf("the pull request was opened at %s, after its review began (%s)", opened.Format(time.RFC3339), began.Format(time.RFC3339))
		same = "correct --opened-at (over REST pr_opened_at)"
	case was != "" && is != "" && !strings.EqualFold(was, is):
		because = fmt.Sprintf("its review names the provider %q, but the pull request is at %q", was, is)
		same = fmt.Sprintf("record the provider %q first, without a commit", is)
		if word.MatchString(is) {
			same += fmt.Sprintf(": kubectl findings review --repository %s --pr %d --provider %s -n %s", pr.Repository, pr.Number, is, pr.Namespace)
		}
	default:
		return nil
	}
	return &importer.RefusedError{Reason: fmt.Sprintf("a new commit of pull request %d of %s is refused, because %s. If it is the same pull request, %s. If the review is that of an earlier pull request with this number, as after a move of the repository, %s%s",
		pr.Number, pr.Repository, because, same, takeBack(*pr), losing)}
}

// nextReview returns the review's new spec; current is nil if the review does not exist. A commit that was reviewed
// before keeps its position. A new one is appended, and the oldest are dropped beyond the limit.
func nextReview(current *v1alpha1.ReviewSpec, pr PullRequest, repository *v1alpha1.Repository, commit *Commit,
	now time.Time) (v1alpha1.ReviewSpec, error) {
	next := v1alpha1.ReviewSpec{
		RepositoryRef: v1alpha1.RepositoryReference{Name: v1alpha1.ResourceName(pr.Repository)},
		PRNumber:      pr.Number,
		PRStatus:      v1alpha1.PullRequestOpen,
		Provider:      repository.Spec.Provider,
	}
	if current != nil {
		next = *current.DeepCopy()
	}
	next.PRTitle = cmp.Or(importer.OneLine(pr.Title, maxTitle), next.PRTitle)
	next.PRAuthor = cmp.Or(importer.OneLine(pr.Author, maxAuthor), next.PRAuthor)
	next.Provider = cmp.Or(importer.OneLine(pr.Provider, maxProvider), next.Provider)
	if next.PRStatus == v1alpha1.PullRequestMerged && pr.Status != "" && pr.Status != next.PRStatus {
		return next, &importer.RefusedError{Reason: fmt.Sprintf("pull request %d of %s is merged, and a merged pull request stays merged: leave out --status (over REST pr_status). If the status was recorded by mistake, %s%s", pr.Number, pr.Repository, takeBack(pr), losing)}
	}
	next.PRStatus = cmp.Or(pr.Status, next.PRStatus)
	if commit == nil || contains(next.ReviewedCommits, commit.SHA) {
		return next, nil
	}
	at, err := reviewedAt(commit, next.ReviewedCommits, now)
	if err != nil {
		return next, err
	}
	next.ReviewedCommits = append(next.ReviewedCommits, v1alpha1.ReviewedCommit{SHA: commit.SHA, ReviewedAt: at})
	if surplus := len(next.ReviewedCommits) - v1alpha1.MaxReviewedCommits; surplus > 0 {
		next.ReviewedCommits = next.ReviewedCommits[surplus:]
	}
	return next, nil
}

// reviewedAt returns when the commit was reviewed. It refuses a time before the last reviewed commit, because states
// are computed from the order of the commits.
func reviewedAt(commit *Commit, before []v1alpha1.ReviewedCommit, now time.Time) (v1alpha1.Time, error) {
	var last v1alpha1.ReviewedCommit
	if len(before) > 0 {
		last = before[len(before)-1]
	}
	at := commit.ReviewedAt
	if err := refuseTime("the commit cannot have been reviewed", at, now); err != nil {
		return v1alpha1.Time{}, err
	}
	switch {
	case at.IsZero():
		at = now
		if at.Before(last.ReviewedAt.Time) {
			at = last.ReviewedAt.Time // recorded by a clock that is ahead of ours
		}
	case at.UTC().Truncate(time.Second).Before(last.ReviewedAt.Time):
		return v1alpha1.Time{}, &importer.RefusedError{Reason: fmt.Sprintf("the commit was reviewed at %s, before the last one recorded (%s at %s): record reviews in their order, or leave --reviewed-at out",
			at.UTC().Format(time.RFC3339), last.SHA, last.ReviewedAt.UTC().Format(time.RFC3339))}
	}
	return v1alpha1.NewTime(at), nil
}

func contains(reviewed []v1alpha1.ReviewedCommit, sha string) bool {
	return slices.ContainsFunc(reviewed, func(c v1alpha1.ReviewedCommit) bool { return c.SHA == sha })
}
