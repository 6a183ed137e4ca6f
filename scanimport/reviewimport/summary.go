package reviewimport

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
)

// Summary reports what an import did, or with DryRun would do: Results = Created + Reopened + Seen + Unchanged +
// Skipped + Base.Known.
type Summary struct {
	// Review is the name of the review.
	Review     string                     `json:"review"`
	Repository string                     `json:"repository"`
	PRNumber   int32                      `json:"prNumber"`
	PRStatus   v1alpha1.PullRequestStatus `json:"prStatus"`
	Commit     string                     `json:"commit,omitempty"`
	// NewReview means that the pull request had no review before.
	NewReview bool `json:"newReview,omitempty"`
	// Results that were read.
	Results   int `json:"results"`
	Created   int `json:"created"`
	Reopened  int `json:"reopened"`
	Seen      int `json:"seen"`
	Unchanged int `json:"unchanged"`
	Skipped   int `json:"skipped"`
	// Resolved issues were open before.
	Resolved int `json:"resolved"`
	// Open counts the pull request's open issues as of this commit, in total and by severity.
	Open       int `json:"open"`
	OpenHigh   int `json:"openHigh"`
	OpenMedium int `json:"openMedium"`
	OpenLow    int `json:"openLow"`
	// Issues lists the open issues, the most severe first; at most MaxIssues.
	Issues []Issue `json:"issues,omitempty"`
	// Base compares the results with the base branch; nil without results.
	Base *BaseSummary `json:"base,omitempty"`
	// Gate is the verdict of the gate, if one was requested.
	Gate *GateResult `json:"gate,omitempty"`
	// SkippedBecause counts the skipped results by reason.
	SkippedBecause map[string]int `json:"skippedBecause,omitempty"`
	// SkippedExamples describes some of them.
	SkippedExamples []string `json:"skippedExamples,omitempty"`
	// Notes counts the corrections made while reading.
	Notes map[string]int `json:"notes,omitempty"`
	// Warnings are problems that need a user's attention.
	Warnings []string `json:"warnings,omitempty"`
	// Changes in a dry run, at most importer.MaxChanges of each action.
	Changes []importer.Change `json:"changes,omitempty"`

	// fromScanners holds the first of the scanners' warnings, and moreFromScanners counts the others.
	fromScanners     []string
	moreFromScanners int
	// known counts the results that the base has.
	known int
	// shares holds each batch's part of the counts, in the terms of a Scan: an issue seen again counts as updated.
	shares []*importer.Summary
}

// MaxIssues bounds how many open issues a Summary names.
const MaxIssues = 50

// Issue is an open issue of the pull request.
type Issue struct {
	Name     string         `json:"name"`
	Severity v1alpha1.Level `json:"severity"`
	Title    string         `json:"title"`
	// Place is the file and the line.
	Place string `json:"place,omitempty"`
	// New means that the previous commit did not show it.
	New bool `json:"new,omitempty"`
}

// BaseSummary compares the results of a commit with the findings of the base branch.
type BaseSummary struct {
	// Known counts the results that are findings of the base; InDoubt counts those that may be another problem of the
	// same kind.
	Known   int `json:"known"`
	InDoubt int `json:"inDoubt,omitempty"`
	// Unsuppressed counts those that the base suppresses in the source, and the commit does not.
	Unsuppressed int `json:"unsuppressed,omitempty"`
	// Replaced counts results that are issues, because they have other code than a muted finding of the base.
	Replaced int `json:"replaced,omitempty"`
	// Fixed counts the base's findings that are not among the results; FixedExamples lists at most importer.MaxChanges
	// of them.
	Fixed         int               `json:"fixed"`
	FixedExamples []importer.Change `json:"fixedExamples,omitempty"`
	// Unscanned names the tools that never scanned the base, so that all their results count as new.
	Unscanned []string `json:"unscanned,omitempty"`
}

// Reasons for skipping a result, besides the importer's.
const (
	skipUnread  = "its issue cannot be read"
	skipDecided = "somebody decided about its issue, or commented on it, meanwhile; review the commit again"
)

// passOver warns about each unreadable issue, and counts the results that are such issues.
func (s *Summary) passOver(p *plan) {
	for _, name := range p.unreadable {
		s.Warnings = append(s.Warnings, importer.PassedOver("issue", name))
	}
	for i := range p.unread {
		ch := &p.unread[i]
		s.leave(ch, skipUnread, fmt.Sprintf("issue %s: %s", ch.name, skipUnread))
	}
}

// warnOfNumber warns if a pull request that has ended has no review: its number may be mistyped, or retention has
// removed the review. reviewed means that the import also reviews a commit.
func (s *Summary) warnOfNumber(pr PullRequest, reviewed, dryRun bool) {
	warning := fmt.Sprintf("pull request %d has no review: check its number, unless retention has removed its review", pr.Number)
	if !dryRun {
		warning += "; if it is wrong, " + takeBack(pr)
		if reviewed {
			warning += losing
		}
	}
	s.Warnings = append(s.Warnings, warning)
}

// read counts everything in a batch except findings, in the summary and in the batch's share.
func (s *Summary) read(b *importer.Batch) {
	share := &importer.Summary{SkippedBecause: map[string]int{}}
	maps.Copy(share.SkippedBecause, b.Skipped)
	if n := len(b.Suppressed); n > 0 {
		share.SkippedBecause[importer.SkipSuppressed] += n
	}
	for reason, n := range share.SkippedBecause {
		share.Skipped += n
		s.SkippedBecause[reason] += n
	}
	s.shares = append(s.shares, share)
	s.Skipped += share.Skipped
	s.Results += len(b.Results) + share.Skipped
	for _, example := range b.Examples {
		s.example(example)
	}
	for note, n := range b.Notes {
		s.Notes[note] += n
	}
	for _, warning := range b.Warnings {
		if !slices.Contains(s.Warnings, warning) { // each project's part of a batch has them
			s.Warnings = append(s.Warnings, warning)
		}
	}
}

// skip counts a result of a batch that does not become an issue.
func (s *Summary) skip(batch int, reason, example string) {
	s.Skipped++
	s.SkippedBecause[reason]++
	s.shares[batch].Skipped++
	s.shares[batch].SkippedBecause[reason]++
	s.example(example)
}

// refused counts an issue that the API server refused.
func (s *Summary) refused(ch *change, err error) {
	example := fmt.Sprintf("issue %s: %s (%v)", ch.name, importer.SkipRefused, err)
	if ch.found != nil {
		s.leave(ch, importer.SkipRefused, example)
		return
	}
	s.Skipped++
	s.SkippedBecause[importer.SkipRefused]++
	s.example(example)
}

// leave counts the result, and its repetitions, of a change that was not made.
func (s *Summary) leave(ch *change, reason, example string) {
	for _, f := range append([]*found{ch.found}, ch.again...) {
		s.skip(f.batch, reason, example)
	}
}

// know counts a result that the base already has.
func (s *Summary) know(batch int) {
	s.known++
	s.shares[batch].Unchanged++
}

func (s *Summary) example(example string) {
	if len(s.SkippedExamples) < importer.MaxExamples {
		s.SkippedExamples = append(s.SkippedExamples, example)
	}
}

// add counts the action on an issue. Repetitions of its result count as unchanged.
func (s *Summary) add(action Action, ch *change) {
	share := &importer.Summary{} // belongs to no batch
	if ch.found != nil {
		share = s.shares[ch.found.batch]
	}
	for _, f := range ch.again {
		s.Unchanged++
		s.shares[f.batch].Unchanged++
	}
	switch action {
	case ActionCreate:
		s.Created++
		share.Created++
	case ActionReopen:
		s.Reopened++
		share.Reopened++
	case ActionSee:
		s.Seen++
		share.Updated++
	case ActionResolve:
		s.Resolved++
	case ActionKeep:
		if ch.found != nil {
			s.Unchanged++
			share.Unchanged++
		}
	}
}

// list counts a plan as if it were carried out, and lists its changes.
func (s *Summary) list(p *plan) {
	listed := map[Action]int{}
	for i := range p.changes {
		ch := &p.changes[i]
		next := p.next(ch.before, ch.found)
		action := p.action(ch, &next)
		s.add(action, ch)
		if listed[action]++; action == ActionKeep || listed[action] > importer.MaxChanges {
			continue
		}
		s.Changes = append(s.Changes, importer.Change{
			Action: action, Name: ch.name, Severity: next.Severity, Title: next.Title, Place: placeOf(&next),
		})
	}
}

func placeOf(issue *v1alpha1.ReviewIssueSpec) string {
	return importer.FileAndLine(issue.File, issue.Line)
}

// count counts the issues that are open as of the commit after the plan and that the base does not have, and lists the
// most severe. Unreadable ones count as open, because nothing shows that they are not.
func (s *Summary) count(p *plan) {
	if last := p.last(); last != p.commit {
		s.Warnings = append(s.Warnings, fmt.Sprintf("commit %s was reviewed before %s. This counts and judges what %s shows; the states of the stored issues stay those of %s, until a new commit is reviewed",
			p.commit, last, p.commit, last))
	}
	if n := len(p.inBase); n > 0 {
		s.Warnings = append(s.Warnings, fmt.Sprintf("The base now has %s that this commit shows: they are neither counted nor judged. The next new commit resolves what is still open",
			number(n, "issue")))
	}
	var counts reviewstate.Counts
	for i := range p.changes {
		ch := &p.changes[i]
		next := p.judged(ch)
		if !p.isOpen(&next) || p.inBase[ch.name] {
			continue
		}
		counts.AddOpen(&next)
		s.Issues = append(s.Issues, Issue{
			Name: ch.name, Severity: next.Severity, Title: next.Title, Place: placeOf(&next),
			New: p.shows(&next) && !p.wasShown(&next),
		})
	}
	for _, ch := range p.unread {
		issue := p.next(nil, ch.found)
		counts.AddOpen(&issue)
		s.Issues = append(s.Issues, Issue{
			Name: ch.name, Severity: issue.Severity, Title: issue.Title, Place: placeOf(&issue),
		})
	}
	if contains(p.before, p.commit) { // another file for the commit may have shown them
		for _, name := range p.unseen {
			counts.AddOpen(&v1alpha1.ReviewIssueSpec{Severity: v1alpha1.LevelHigh})
			s.Issues = append(s.Issues, Issue{Name: name, Severity: v1alpha1.LevelHigh, Title: "An issue that cannot be read"})
		}
	}
	s.Open, s.OpenHigh = int(counts.Open), int(counts.OpenHigh)
	s.OpenMedium, s.OpenLow = int(counts.OpenMedium), int(counts.OpenLow)
	slices.SortFunc(s.Issues, func(a, b Issue) int {
		return cmp.Or(cmp.Compare(rank(a.Severity), rank(b.Severity)), cmp.Compare(a.Place, b.Place),
			cmp.Compare(a.Name, b.Name))
	})
	s.Issues = s.Issues[:min(len(s.Issues), MaxIssues)]
}

// warnOfOthers warns if the plan resolves issues of projects other than the one that the review names.
func (s *Summary) warnOfOthers(p *plan, project string) {
	resolved := map[string]int{}
	for i := range p.changes {
		ch := &p.changes[i]
		if next := p.next(ch.before, ch.found); project == "" || next.Result == nil || p.action(ch, &next) != ActionResolve {
			continue
		}
		if of := string(ch.before.Spec.Result.Project); of != "" && of != project {
			resolved[of]++
		}
	}
	for _, of := range slices.Sorted(maps.Keys(resolved)) {
		s.Warnings = append(s.Warnings, fmt.Sprintf("The review of the project %s resolves %s of the project %s, because it does not show them. "+
			"Review all projects of a pull request at once, without naming a project", project, number(resolved[of], "issue"), of))
	}
}

// rank orders severities, the highest first.
func rank(l v1alpha1.Level) int {
	return slices.Index([]v1alpha1.Level{v1alpha1.LevelHigh, v1alpha1.LevelMedium, v1alpha1.LevelLow}, l)
}

// compare records how the results compare with the base.
func (s *Summary) compare(base *importer.Compared, batches []*importer.Batch) {
	s.Warnings = append(s.Warnings, base.Warnings...)
	if len(batches) == 0 {
		return // nothing was scanned
	}
	s.Base = &BaseSummary{
		Known: s.known, InDoubt: base.InDoubt, Unsuppressed: base.Unsuppressed, Replaced: base.Replaced,
		Fixed: base.Fixed, FixedExamples: base.Examples, Unscanned: base.Unscanned,
	}
}

func newSummary(pr PullRequest, batches []*importer.Batch) *Summary {
	s := &Summary{
		Review: Name(pr.Repository, pr.Number), Repository: pr.Repository, PRNumber: pr.Number,
		SkippedBecause: map[string]int{}, Notes: map[string]int{},
	}
	for _, b := range batches {
		s.read(b)
	}
	s.keepScannerWarnings(s.Warnings, len(s.Warnings))
	return s
}

// keepScannerWarnings keeps the first maxShownWarnings of the scanners' n warnings for the comment, and counts the
// others. The scanners' warnings come first in the list, which may lack some that were not recorded.
func (s *Summary) keepScannerWarnings(warnings []string, n int) {
	s.fromScanners = slices.Clone(warnings[:min(n, len(warnings), maxShownWarnings)])
	s.moreFromScanners = n - len(s.fromScanners)
}
