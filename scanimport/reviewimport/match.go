package reviewimport

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
)

// match assigns each result to its issue. results are sorted by name.
func (p *plan) match(results []found, issues []v1alpha1.ReviewIssue) {
	existing := indexed(issues)
	distinct, again := merge(results)
	certain := p.recognise(distinct, existing)
	names := p.names(distinct, existing, certain)
	shown := map[string]bool{}
	for i, name := range names {
		ch := change{name: name, found: distinct[i], again: again[i], before: existing[name]}
		if name == "" {
			ch.name = ch.found.Name
			p.unread = append(p.unread, ch)
			continue
		}
		shown[name] = true
		ch.found.certain = certain[i] != ""
		p.changes = append(p.changes, ch)
	}
	for name, issue := range existing {
		if !shown[name] {
			p.changes = append(p.changes, change{name: name, before: issue})
		}
	}
	slices.SortFunc(p.changes, func(a, b change) int { return cmp.Compare(a.name, b.name) })
}

// own returns a function that returns the tool's results that are, or may be, open issues. A similar finding of the
// base must not hide one of them: nothing would show the issue, and it would count as resolved. known holds the results
// that the base has, which are not issues.
func (p *plan) own(results []found, issues []v1alpha1.ReviewIssue,
	tool string) func(known importer.ResultSet) importer.Distances {
	results, existing := p.ofTool(tool, results, issues)
	all, _ := merge(results)
	certain := sync.OnceValue(func() []string { return p.certain(all, existing) })
	return func(known importer.ResultSet) importer.Distances {
		own, left := importer.Distances{}, maps.Clone(existing)
		for i, name := range certain() {
			// At another line it may be another result: two results equally far from two issues count as certain if all have the
			// same code.
			if known[all[i].at()] && name != "" && all[i].line() == existing[name].Spec.Line {
				delete(left, name) // only this result is the issue
			}
		}
		distinct, again := merge(slices.DeleteFunc(slices.Clone(results), func(f found) bool {
			return known[f.at()]
		}))
		names, doubtful := p.pair(distinct, left)
		for i, name := range names {
			issue := left[cmp.Or(name, doubtful[i])]
			if issue == nil || p.wasResolved(&issue.Spec) {
				continue
			}
			for _, f := range append(again[i], distinct[i]) {
				var lines int32
				if name == "" {
					lines = importer.LinesBetween(f.line(), issue.Spec.Line)
				}
				own[f.at()] = lines
			}
		}
		return own
	}
}

// ofTool returns the results and the issues of a tool, under all its names. An issue without a result may come from any
// tool.
func (p *plan) ofTool(tool string, results []found, issues []v1alpha1.ReviewIssue) ([]found,
	map[string]*v1alpha1.ReviewIssue) {
	tool = p.toolOf(tool)
	existing := indexed(issues)
	maps.DeleteFunc(existing, func(_ string, issue *v1alpha1.ReviewIssue) bool {
		return issue.Spec.Result != nil && p.toolOf(issue.Spec.Result.Tool) != tool
	})
	return slices.DeleteFunc(slices.Clone(results), func(f found) bool { return p.toolOf(f.Facts.Tool) != tool }), existing
}

// indexed returns the issues by name.
func indexed(issues []v1alpha1.ReviewIssue) map[string]*v1alpha1.ReviewIssue {
	out := make(map[string]*v1alpha1.ReviewIssue, len(issues))
	for i := range issues {
		out[issues[i].Name] = &issues[i]
	}
	return out
}

// markKnownInBase recognises the commit's issues that the base has by now, because it was scanned after the first
// review of the commit. The results, sorted by name, are those that the base has. For an issue that shows this commit
// the line must be the same: the same code elsewhere in the file is another issue.
func (p *plan) markKnownInBase(results []found) {
	left := map[string]*v1alpha1.ReviewIssue{}
	p.inBase = map[string]bool{}
	for i := range p.changes {
		if ch := &p.changes[i]; ch.found == nil && p.shows(&ch.before.Spec) {
			left[ch.name] = ch.before
		}
	}
	distinct, _ := merge(results)
	for i, name := range p.certain(distinct, left) {
		if name != "" && (distinct[i].line() == left[name].Spec.Line || !p.ofLast()) {
			p.inBase[name] = true
		}
	}
}

// names returns the name of each result's issue. Results that certainly are a known issue come first. The others are
// matched by their names alone, which may belong to another problem by now: if somebody has decided about that issue,
// or commented on it, the result gets the next free name. It gets none if its own issue is unreadable.
func (p *plan) names(results []*found, existing map[string]*v1alpha1.ReviewIssue, certain []string) []string {
	names := slices.Clone(certain)
	taken, unreadable := map[string]bool{}, sets.New(p.unreadable...)
	var rest []int
	var identities []fingerprints.Identity
	for i := range results {
		if names[i] == "" && !results[i].Takes(unreadable) {
			rest, identities = append(rest, i), append(identities, results[i].Identity)
		}
		taken[names[i]] = true
	}
	p.unseen = sets.List(unreadable)
	unfit := func(name string) bool {
		return taken[name] || isDecided(existing[name]) || slices.Contains(p.unreadable, name)
	}
	recorded := func(name string) bool { return existing[name] != nil && !unfit(name) }
	by := func(same func(*v1alpha1.FindingDetails, *v1alpha1.ReviewIssueSpec) bool) func(int, string) bool {
		return func(i int, name string) bool { return same(&results[rest[i]].Facts.Details, &existing[name].Spec) }
	}
	for at, name := range fingerprints.Match(identities, recorded, by(sameFacts), by(sameText)) {
		names[rest[at]] = importer.FreeName(name, unfit)
		taken[names[rest[at]]] = true
	}
	return names
}

// maxRounds bounds how often results are recognised again.
const maxRounds = 8

// recognise returns for each result the name of the issue that it certainly is, or "". If a decision does not cover its
// issue's result, or may be about another one, that result alone is recognised again, among the issues without a
// result. A decided issue at another line does not match then, because a result without its own issue easily resembles
// a similar problem elsewhere. The last round leaves out the issues whose decisions cover none of the results.
func (p *plan) recognise(results []*found, existing map[string]*v1alpha1.ReviewIssue) []string {
	names, free := make([]string, len(results)), maps.Clone(existing)
	own := make([][]*v1alpha1.ReviewIssue, len(results)) // the issues whose decisions do not cover a result
	redo := make([]int, len(results))
	for i := range redo {
		redo[i] = i
	}
	for round := range maxRounds {
		if len(redo) == 0 {
			break
		}
		if round == maxRounds-1 {
			maps.DeleteFunc(free, func(_ string, issue *v1alpha1.ReviewIssue) bool {
				covers := func(i int) bool { return !p.outgrown(issue, results[i]) }
				return !slices.ContainsFunc(redo, covers)
			})
		}
		others := make([]*found, len(redo))
		for k, i := range redo {
			others[k] = results[i]
		}
		var again []int
		for k, name := range p.certain(others, free) {
			i, issue := redo[k], existing[name]
			delete(free, name)
			elsewhere := func(o *v1alpha1.ReviewIssue) bool { return o.Spec.Line != issue.Spec.Line }
			switch {
			case p.outgrown(issue, results[i]) || isDecided(issue) && p.mayBeUnreadable(issue, results[i]):
				own[i], again = append(own[i], issue), append(again, i)
			case !isDecided(issue) || !slices.ContainsFunc(own[i], elsewhere):
				names[i] = name
			}
		}
		redo = again
	}
	return names
}

// certain returns for each result the name of the issue that it certainly is by its evidence, or "". Two jobs may have
// reported one problem under two names of a tool: among equal issues, a decided one comes first.
func (p *plan) certain(results []*found, existing map[string]*v1alpha1.ReviewIssue) []string {
	names, _ := p.pair(results, existing)
	return names
}

// pair is certain, but also returns for each other result the name of the issue that it may be, or "".
func (p *plan) pair(results []*found, existing map[string]*v1alpha1.ReviewIssue) (names, doubtful []string) {
	names, doubtful = make([]string, len(results)), make([]string, len(results))
	known := map[string][]v1alpha1.Finding{}
	for _, name := range slices.SortedFunc(maps.Keys(existing), func(a, b string) int {
		decisions := cmp.Compare(reviewstate.UserStatus(existing[a]), reviewstate.UserStatus(existing[b])) // open is last
		return cmp.Or(decisions, cmp.Compare(a, b))
	}) {
		facts := reviewstate.Facts(existing[name], nil)
		facts.Spec.Analysis = ""  // the results of all analyses are compared together
		facts.Spec.Triage.By = "" // no undo restores a decision about an issue
		if p.wasResolved(&existing[name].Spec) {
			facts.Spec.Closed = &v1alpha1.FindingClosure{}
		}
		if tool := p.toolOf(facts.Spec.Tool); facts.Spec.Evidence != "" {
			known[tool] = append(known[tool], *facts)
		}
	}
	for tool, issues := range known {
		var of []int
		var described []*importer.Described
		for i := range results {
			if p.toolOf(results[i].Facts.Tool) == tool {
				of, described = append(of, i), append(described, &results[i].Described)
			}
		}
		certain, inDoubt := importer.Certain(described, issues)
		for i, at := range of {
			names[at], doubtful[at] = certain[i], inDoubt[i]
		}
	}
	byName(results, existing, names)
	return names, doubtful
}

// outgrown reports whether a decision to mute the issue no longer covers the result. A commit before the last does not
// change what the issue shows.
func (p *plan) outgrown(issue *v1alpha1.ReviewIssue, f *found) bool {
	return isMuted(issue) && p.ofLast() && findingstate.Outgrown(&reviewstate.Facts(issue, nil).Spec, &f.Facts)
}

// mayBeUnreadable reports whether the result may be an unreadable issue, rather than this one at another line.
func (p *plan) mayBeUnreadable(issue *v1alpha1.ReviewIssue, f *found) bool {
	return f.line() != issue.Spec.Line && slices.ContainsFunc(p.unreadable, func(name string) bool {
		return f.Name == name || slices.Contains(f.Exact, name) || slices.Contains(f.Shared, name)
	})
}

// toolOf returns the current name of a tool, which is the same for all its names.
func (p *plan) toolOf(name string) string {
	return fingerprints.CurrentName(cmp.Or(p.renamed[name], name))
}

// wasResolved reports whether the issue was resolved before the commit was reviewed. A commit that was reviewed before
// shows the same issues again, and another file for it may also show those of the commit before it.
func (p *plan) wasResolved(issue *v1alpha1.ReviewIssueSpec) bool {
	if !contains(p.before, p.commit) {
		return reviewstate.Observe(issue, p.before).State == v1alpha1.ReviewIssueResolved
	}
	return !p.shows(issue) && !p.wasShown(issue)
}

// byName adds the issues without evidence, which an earlier version imported: the key or the place must confirm the
// name.
func byName(results []*found, existing map[string]*v1alpha1.ReviewIssue, names []string) {
	taken := map[string]bool{}
	for i, f := range results {
		for _, name := range slices.Concat([]string{f.Name}, f.Exact, f.Shared) {
			if issue := existing[name]; names[i] == "" && issue != nil && !taken[name] && f.isEarlier(&issue.Spec) {
				names[i], taken[name] = name, true
			}
		}
	}
}

// isDecided reports whether somebody has decided about the issue, or commented on it; it may be nil. A decision that
// has ended counts, because it is still shown.
func isDecided(issue *v1alpha1.ReviewIssue) bool {
	return issue != nil && reviewstate.IsTriaged(issue)
}

// isMuted reports whether somebody has decided to mute the issue; it may be nil.
func isMuted(issue *v1alpha1.ReviewIssue) bool {
	return issue != nil && reviewstate.UserStatus(issue) == v1alpha1.UserStatusMuted
}

func sameText(d *v1alpha1.FindingDetails, issue *v1alpha1.ReviewIssueSpec) bool {
	return d.Title == issue.Title && d.Description == issue.Description
}

func sameFacts(d *v1alpha1.FindingDetails, issue *v1alpha1.ReviewIssueSpec) bool {
	at := d.Place()
	return sameText(d, issue) && d.Severity == issue.Severity && at.FilePath == issue.File && at.LineNumber == issue.Line
}
