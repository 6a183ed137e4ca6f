package reviewimport

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
)

// found is a result of the commit's scan.
type found struct {
	importer.Described
	// batch is the index of its batch.
	batch int
	// result is what the issue stores.
	result v1alpha1.ReviewIssueResult
	// certain means that it is certainly its issue, and not only matched by name.
	certain bool
}

// at returns the result's index in the batches.
func (f *found) at() importer.ResultIndex {
	return importer.ResultIndex{Batch: f.batch, Result: f.Index}
}

// line returns the result's line; 0 if it has none.
func (f *found) line() int32 { return f.Facts.Details.Place().LineNumber }

// describe identifies and describes the results of all batches, sorted by name. All results get names, even if the base
// has them, so that names do not depend on the state of the base.
func describe(repository *v1alpha1.Repository, commit, project string, batches []*importer.Batch,
	s *Summary) ([]found, error) {
	var out []found
	keys := map[string]int{}
	for i, b := range batches {
		ofCommit := *b
		ofCommit.Commit = commit
		described, duplicates, err := importer.Describe(&ofCommit, repository,
			fingerprints.Scope{Prefix: "i-", Project: s.Review})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.Name(), err)
		}
		for _, example := range duplicates {
			s.skip(i, importer.SkipDuplicate, example)
		}
		for _, f := range described {
			keys[fingerprints.Key(&f.Facts)]++
			out = append(out, found{Described: f, batch: i, result: resultOf(&f.Facts, project)})
		}
	}
	for i := range out {
		if keys[out[i].result.Key] > 1 {
			out[i].result.Key = "" // ambiguous, because any of them may get into the base branch
		}
	}
	slices.SortStableFunc(out, func(a, b found) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// resultOf returns what an issue stores of a result.
func resultOf(facts *v1alpha1.FindingSpec, project string) v1alpha1.ReviewIssueResult {
	return v1alpha1.ReviewIssueResult{
		Key:     fingerprints.Key(facts),
		Project: v1alpha1.ResourceName(project),
		Tool:    facts.Tool, Analysis: facts.Analysis, Category: facts.Category, RuleID: facts.RuleID, Class: facts.Class,
		Confidence: facts.Confidence, SecretType: facts.SecretType,
		Score: facts.Details.Score, ToolSeverity: facts.Details.ToolSeverity,
		Vulnerability: facts.Vulnerability, Package: facts.Package,
		Fingerprints: facts.Fingerprints, Evidence: facts.Evidence,
	}
}

// merge returns the distinct results, and for each the repetitions of it. Several analyses may report one problem: the
// most severe result is shown.
func merge(results []found) (distinct []*found, again [][]*found) {
	type named struct {
		name string
		line int32
	}
	at := map[named]int{}
	for i := range results {
		here := named{results[i].Name, results[i].line()}
		if first, repeated := at[here]; repeated {
			other := &results[i]
			if findingstate.LessSevere(&distinct[first].Facts, &other.Facts) {
				distinct[first], other = other, distinct[first]
			}
			again[first] = append(again[first], other)
			continue
		}
		at[here] = len(distinct)
		distinct, again = append(distinct, &results[i]), append(again, nil)
	}
	return distinct, again
}

// replaces reports whether another file for a commit replaces what the issue shows for it: if the same analysis of the
// same tool reports what is certainly the same problem, or if the result is more severe.
func (f *found) replaces(issue *v1alpha1.ReviewIssueSpec) bool {
	was := issue.Result
	same := was == nil || was.Tool == f.result.Tool && was.Analysis == f.result.Analysis
	return f.certain && same || rank(f.Facts.Details.Severity) < rank(issue.Severity)
}

// shownBy returns the issue with the text of the result. A muted issue keeps its severity if the result has a lower
// one, so that the decision still covers the result if its severity rises again.
func (f *found) shownBy(spec v1alpha1.ReviewIssueSpec, before *v1alpha1.ReviewIssue) v1alpha1.ReviewIssueSpec {
	severity, result := f.Facts.Details.Severity, f.result
	if isMuted(before) {
		if was := &reviewstate.Facts(before, nil).Spec; findingstate.LessSevere(&f.Facts, was) {
			severity = was.Details.Severity
			result.Score, result.ToolSeverity = was.Details.Score, was.Details.ToolSeverity
		}
	}
	spec.Title, spec.Description, spec.Severity = f.Facts.Details.Title, f.Facts.Details.Description, severity
	at := f.Facts.Details.Place()
	spec.File, spec.Line, spec.Links.FileLocation = at.FilePath, at.LineNumber, at.URL
	spec.Result = &result
	return spec
}

// isEarlier reports whether the result is certainly the issue of that name, which has no evidence.
func (f *found) isEarlier(issue *v1alpha1.ReviewIssueSpec) bool {
	known := issue.Result
	if known != nil && known.Evidence != "" {
		return false
	}
	return known != nil && known.Key != "" && known.Key == f.result.Key || sameFacts(&f.Facts.Details, issue)
}
