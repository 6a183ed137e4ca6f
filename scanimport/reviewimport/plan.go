package reviewimport

import (
	"slices"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
)

// change is the planned change of one issue.
type change struct {
	name string
	// found is nil if the commit's scan does not report the issue.
	found *found
	// again holds the repetitions of found by other analyses.
	again []*found
	// before is nil if the issue does not exist.
	before *v1alpha1.ReviewIssue
}

// plan holds the changes that a review of one commit makes to the issues of its pull request.
type plan struct {
	// review is the one that the issues belong to.
	review string
	// commit is the reviewed one, page its page.
	commit, page string
	// reviewed holds the review's commits after this import, before those before it.
	reviewed, before []v1alpha1.ReviewedCommit
	// renamed holds the tools by the former names that the user gave.
	renamed map[string]string
	// unreadable holds the names of unreadable issues. No result gets them.
	unreadable []string
	// unread holds the results whose issue is unreadable.
	unread []change
	// unseen holds the unreadable issues without a result.
	unseen []string
	// inBase holds the names of the commit's issues that the base has by now. They do not count, and the next commit
	// resolves them.
	inBase map[string]bool
	// changes are sorted by name. There is one for each issue that exists or was found, even if it changes nothing.
	changes []change
}

// last returns the last reviewed commit, which may be later than that of the plan.
func (p *plan) last() string { return p.reviewed[len(p.reviewed)-1].SHA }

// ofLast reports whether the plan's commit is the last reviewed one. An earlier commit changes which commits an issue
// lists, and not what it shows.
func (p *plan) ofLast() bool { return p.last() == p.commit }

// isOpen reports whether an issue is open as of the commit. If a pull request went back to a commit that was reviewed
// before, the stored states are those of a later commit.
func (p *plan) isOpen(issue *v1alpha1.ReviewIssueSpec) bool {
	if !p.ofLast() {
		return p.shows(issue)
	}
	return reviewstate.Observe(issue, p.reviewed).State == v1alpha1.ReviewIssueOpen
}

// next returns the new spec of an issue; before is nil if it does not exist.
func (p *plan) next(before *v1alpha1.ReviewIssue, f *found) v1alpha1.ReviewIssueSpec {
	if before == nil {
		spec := v1alpha1.ReviewIssueSpec{
			ReviewRef: v1alpha1.ReviewReference{Name: v1alpha1.ResourceName(p.review)},
			CommitSHA: p.commit,
			Links:     v1alpha1.ReviewIssueLinks{Commit: p.page},
		}
		return p.seen(spec, nil, f)
	}
	spec := p.forget(*before.Spec.DeepCopy())
	if f == nil || p.shows(&spec) && !f.replaces(&spec) {
		return spec
	}
	return p.seen(spec, before, f)
}

// shows reports whether the issue lists the commit.
func (p *plan) shows(issue *v1alpha1.ReviewIssueSpec) bool {
	return slices.Contains(issue.SeenInCommits, v1alpha1.CommitSHA(p.commit))
}

// wasShown reports whether the issue lists the commit that was reviewed before this one.
func (p *plan) wasShown(issue *v1alpha1.ReviewIssueSpec) bool {
	at := slices.IndexFunc(p.reviewed, func(c v1alpha1.ReviewedCommit) bool { return c.SHA == p.commit })
	return at > 0 && slices.Contains(issue.SeenInCommits, v1alpha1.CommitSHA(p.reviewed[at-1].SHA))
}

// seen adds the commit to the issue. An earlier commit does not change the issue's text, which is that of the last
// reviewed commit.
func (p *plan) seen(spec v1alpha1.ReviewIssueSpec, before *v1alpha1.ReviewIssue, f *found) v1alpha1.ReviewIssueSpec {
	if !p.shows(&spec) {
		spec.SeenInCommits = append(spec.SeenInCommits, v1alpha1.CommitSHA(p.commit))
	}
	if spec.Title != "" && !p.ofLast() {
		return spec
	}
	return f.shownBy(spec, before)
}

// judged returns an issue as of the plan's commit, while the stored one is as of the last reviewed commit.
func (p *plan) judged(ch *change) v1alpha1.ReviewIssueSpec {
	next := p.next(ch.before, ch.found)
	if p.ofLast() || ch.found == nil || !ch.found.replaces(&next) {
		return next
	}
	return ch.found.shownBy(next, ch.before)
}

// forget drops commits that the review no longer holds: the oldest, and those of imports that were cut off. An issue
// without commits counts as not shown; its commitSHA must then name the first commit that showed it.
func (p *plan) forget(spec v1alpha1.ReviewIssueSpec) v1alpha1.ReviewIssueSpec {
	if spec.CommitSHA == "" && len(spec.SeenInCommits) > 0 {
		spec.CommitSHA = string(spec.SeenInCommits[0])
	}
	spec.SeenInCommits = slices.DeleteFunc(spec.SeenInCommits, func(sha v1alpha1.CommitSHA) bool {
		return !contains(p.reviewed, string(sha))
	})
	return spec
}

// Action is what a review does to an issue.
type Action = importer.Action

// The actions.
const (
	// ActionCreate: no commit showed the issue before.
	ActionCreate = importer.ActionCreate
	// ActionReopen: the issue was resolved.
	ActionReopen = importer.ActionReopen
	// ActionSee: the issue was open, and the commit shows it too, or a second file for the commit describes it
	// differently.
	ActionSee Action = "see"
	// ActionResolve: the issue was open, and the commit no longer shows it.
	ActionResolve Action = "resolve"
	// ActionKeep: the issue stays as it was.
	ActionKeep = importer.ActionKeep
)

// action compares the states before and after the whole review.
func (p *plan) action(ch *change, next *v1alpha1.ReviewIssueSpec) Action {
	if ch.before == nil {
		return ActionCreate
	}
	was := reviewstate.Observe(&ch.before.Spec, p.before).State
	is := reviewstate.Observe(next, p.reviewed).State
	switch {
	case was == is && ch.found != nil && (!p.shows(&ch.before.Spec) || looks(next) != looks(&ch.before.Spec)):
		return ActionSee
	case was == is:
		return ActionKeep
	case is == v1alpha1.ReviewIssueResolved:
		return ActionResolve
	case !p.wasResolved(&ch.before.Spec): // only an earlier file for the commit did not show it
		return ActionSee
	default:
		return ActionReopen
	}
}

// looks returns the fields of an issue that users see.
func looks(issue *v1alpha1.ReviewIssueSpec) [5]any {
	return [...]any{issue.Title, issue.Description, issue.Severity, issue.File, issue.Line}
}
