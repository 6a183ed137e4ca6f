package reviewimport

import (
	"cmp"
	"slices"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
)

// found is a result of the commit's scan.
type found struct {
	importer.Described
	// batch that it is in.
	batch int
	// result that the issue keeps.
	result v1alpha1.ReviewIssueResult
}

// change is what becomes of one issue.
type change struct {
	name string
	// found is nil where the commit's scan does not report the issue.
	found *found
	// before is nil where the issue is not there.
	before *v1alpha1.ReviewIssue
}

// plan says what a review of one commit makes of the issues of its pull request.
type plan struct {
	// review that the issues belong to.
	review string
	// commit that was reviewed, and its page.
	commit, page string
	// reviewed are the commits that the review will keep, before those that it keeps now.
	reviewed, before []v1alpha1.ReviewedCommit
	// changes of all issues that are there or were found, by name; some change nothing.
	changes []change
}

// match finds for each result the issue that it is. results are sorted by name.
func (p *plan) match(results []found, there []v1alpha1.ReviewIssue) {
	existing := make(map[string]*v1alpha1.ReviewIssue, len(there))
	for i := range there {
		existing[there[i].Name] = &there[i]
	}
	identities := make([]fingerprints.Identity, len(results))
	for i := range results {
		identities[i] = results[i].Identity
	}
	recorded := func(name string) bool { return existing[name] != nil }
	by := func(same func(*v1alpha1.FindingDetails, *v1alpha1.ReviewIssueSpec) bool) func(int, string) bool {
		return func(i int, name string) bool { return same(&results[i].Details, &existing[name].Spec) }
	}
	for i, name := range fingerprints.Match(identities, recorded, by(sameFacts), by(sameText)) {
		p.changes = append(p.changes, change{name: name, found: &results[i], before: existing[name]})
		delete(existing, name)
	}
	for name, issue := range existing {
		p.changes = append(p.changes, change{name: name, before: issue})
	}
	slices.SortFunc(p.changes, func(a, b change) int { return cmp.Compare(a.name, b.name) })
}

func sameText(d *v1alpha1.FindingDetails, issue *v1alpha1.ReviewIssueSpec) bool {
	return d.Title == issue.Title && d.Description == issue.Description
}

func sameFacts(d *v1alpha1.FindingDetails, issue *v1alpha1.ReviewIssueSpec) bool {
	file, line, _ := place(d)
	return sameText(d, issue) && d.Severity == issue.Severity && file == issue.File && line == issue.Line
}

// next is the spec that an issue becomes; before is nil where it is not there.
func (p *plan) next(before *v1alpha1.ReviewIssueSpec, f *found) v1alpha1.ReviewIssueSpec {
	if before == nil {
		spec := v1alpha1.ReviewIssueSpec{
			ReviewRef: v1alpha1.ReviewReference{Name: v1alpha1.ResourceName(p.review)},
			CommitSHA: p.commit,
			Links:     v1alpha1.ReviewIssueLinks{Commit: p.page},
		}
		return p.seen(spec, f)
	}
	spec := p.forget(*before.DeepCopy())
	if f == nil || slices.Contains(spec.SeenInCommits, v1alpha1.CommitSHA(p.commit)) {
		return spec
	}
	return p.seen(spec, f)
}

// seen adds the commit. What the issue says is as of the last commit that was reviewed: that
// of one reviewed before is not news.
func (p *plan) seen(spec v1alpha1.ReviewIssueSpec, f *found) v1alpha1.ReviewIssueSpec {
	spec.SeenInCommits = append(spec.SeenInCommits, v1alpha1.CommitSHA(p.commit))
	if spec.Title != "" && p.reviewed[len(p.reviewed)-1].SHA != p.commit {
		return spec
	}
	spec.Title, spec.Description, spec.Severity = f.Details.Title, f.Details.Description, f.Details.Severity
	spec.File, spec.Line, spec.Links.FileLocation = place(&f.Details)
	spec.Result = &f.result
	return spec
}

// forget drops the commits that the review does not keep: the oldest, and those of imports
// that did not come to their end. An issue that is left with none has been shown by no commit
// that counts; for the rule to see that, it must say that one did show it.
func (p *plan) forget(spec v1alpha1.ReviewIssueSpec) v1alpha1.ReviewIssueSpec {
	if spec.CommitSHA == "" && len(spec.SeenInCommits) > 0 {
		spec.CommitSHA = string(spec.SeenInCommits[0])
	}
	spec.SeenInCommits = slices.DeleteFunc(spec.SeenInCommits, func(sha v1alpha1.CommitSHA) bool {
		return !contains(p.reviewed, string(sha))
	})
	return spec
}

func place(d *v1alpha1.FindingDetails) (file string, line int32, url string) {
	if d.Location == nil {
		return "", 0, ""
	}
	return d.Location.FilePath, d.Location.LineNumber, d.Location.URL
}

// Action is what a review makes of an issue.
type Action string

// The actions.
const (
	// ActionCreate is of an issue that no commit has shown before.
	ActionCreate Action = "create"
	// ActionReopen is of one that was resolved.
	ActionReopen Action = "reopen"
	// ActionSee is of an open one that the commit shows too.
	ActionSee Action = "see"
	// ActionResolve is of an open one that the commit no longer shows.
	ActionResolve Action = "resolve"
	// ActionKeep is of one of which the review says nothing new.
	ActionKeep Action = "keep"
)

// action compares the states before and after the whole review.
func (p *plan) action(ch *change, next *v1alpha1.ReviewIssueSpec) Action {
	if ch.before == nil {
		return ActionCreate
	}
	was := reviewstate.Observe(&ch.before.Spec, p.before).State
	is := reviewstate.Observe(next, p.reviewed).State
	switch {
	case was == is && ch.found != nil && len(next.SeenInCommits) > 0 && !slices.Contains(ch.before.Spec.SeenInCommits,
		v1alpha1.CommitSHA(p.commit)):
		return ActionSee
	case was == is:
		return ActionKeep
	case is == v1alpha1.ReviewIssueResolved:
		return ActionResolve
	default:
		return ActionReopen
	}
}
