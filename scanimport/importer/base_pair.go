package importer

import (
	"math"
	"slices"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// pairBase matches the results with the findings, and returns the matched results. A result that is an issue, or is at
// least as near to one, takes no finding in doubt. The findings are then matched again without all results that stay
// issues: another result may take such a finding, but none of the issues may take one just because fewer results are
// left. replaced holds the matches that do not count, because they are otherThanMuted; their results stay issues, too.
func (t *toolComparison) pairBase(results []reported) (paired []reported, matches []match,
	replaced map[ResultIndex]match) {
	// A doubtful match counts as known, so require the same subject: another resource or package would pass a gate unseen.
	c := &candidates{findings: t.findings, foreign: t.foreign(), review: true}
	var issues func(known ResultSet) Distances
	if t.base.Own != nil {
		issues = t.base.Own(t.tool())
	}
	replaced = map[ResultIndex]match{}
	for {
		matches = pair(results, c, nil)
		for i, m := range matches {
			if m.otherThanMuted(&results[i].spec) {
				replaced[results[i].at()], matches[i] = m, match{}
			}
		}
		distances := ownOf(results, matches, issues)
		var others []reported
		inDoubt := false
		for i, m := range matches {
			lines, own := distances[results[i].at()]
			own = own && (!m.inDoubt() || lines <= m.lines())
			inDoubt = inDoubt || own && m.inDoubt()
			if _, isIssue := replaced[results[i].at()]; isIssue {
				continue
			}
			if !own || m.before != nil && m.doubt == "" {
				others = append(others, results[i])
			}
		}
		if !inDoubt {
			return results, matches, replaced
		}
		results = others
	}
}

// ownOf returns the results that are, or may be, open issues of the pull request. Similar results are ambiguous, so it
// first leaves out those that the base certainly has, then also those with the code of their finding.
func ownOf(results []reported, matches []match, issues func(known ResultSet) Distances) Distances {
	if issues == nil || !slices.ContainsFunc(matches, func(m match) bool { return m.inDoubt() }) {
		return nil
	}
	certain, sameCode := ResultSet{}, ResultSet{}
	for i, m := range matches {
		if m.before == nil {
			continue
		}
		result := results[i].at()
		if m.doubt == "" {
			certain[result] = true
		}
		if m.doubt == "" || m.is.Snippet != "" && m.is.Snippet == m.was.Snippet {
			sameCode[result] = true
		}
	}
	own := issues(certain)
	if len(sameCode) > len(certain) { // each call compares all results of the tool with its issues
		for result, lines := range issues(sameCode) {
			if before, ok := own[result]; !ok || lines < before {
				own[result] = lines
			}
		}
	}
	return own
}

// otherThanMuted reports whether somebody muted the finding, but perhaps another problem than that of the result: the
// result has other code. As known from the base it would pass every gate, and be muted after the merge. The code that
// the decision was about stays known, even if the base has changed it since. What the source suppresses is no issue.
func (m *match) otherThanMuted(result *v1alpha1.FindingSpec) bool {
	return m.inDoubt() && m.otherCode() && result.Suppression == nil &&
		findingstate.UserStatus(m.before) == v1alpha1.UserStatusMuted && findingstate.OtherCode(m.before, result)
}

// inDoubt reports whether the result may be a different problem than its finding.
func (m *match) inDoubt() bool { return m.before != nil && m.doubt != "" }

// lines returns how many lines the result is away from its finding. In another file it is farther away than any issue.
func (m *match) lines() int32 {
	if m.was.Path != m.is.Path {
		return math.MaxInt32
	}
	return LinesBetween(m.is.Line, m.was.Line)
}

// LinesBetween returns the distance between two lines.
func LinesBetween(a, b int32) int32 { return max(a-b, b-a) }

// foreign returns a function that reports whether a finding belongs to an analysis that the files do not contain, or to
// a project that they do not cover. Whether such a finding is gone from its file is unknown, so a result in another
// file is another problem.
func (c *coverage) foreign() func(*v1alpha1.Finding) bool {
	otherAnalysis := c.otherAnalysis()
	return func(f *v1alpha1.Finding) bool { return otherAnalysis(f) || c.excludes(f.Spec.ProjectRef) }
}

// otherAnalysis returns a function that reports whether a finding belongs to an analysis that the files do not contain.
// Files and findings without an analysis may belong to any.
func (c *coverage) otherAnalysis() func(*v1alpha1.Finding) bool {
	named := map[string]bool{"": true}
	for _, batch := range c.batches {
		analyses := batch.analyses()
		if slices.Contains(analyses, "") {
			return func(*v1alpha1.Finding) bool { return false }
		}
		for _, analysis := range analyses {
			named[analysis] = true
		}
	}
	return func(f *v1alpha1.Finding) bool { return !named[f.Spec.Analysis] }
}

// analyses returns the analyses of the results in a reviewed batch. As in an import, a chosen analysis replaces those
// that the files name.
func (b *Batch) analyses() []string {
	if b.Analysis != "" {
		return []string{b.Analysis}
	}
	return b.OfFiles
}
