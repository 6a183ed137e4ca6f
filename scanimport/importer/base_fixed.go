package importer

import (
	"slices"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// ofJobs returns the names of the findings that the batches' scan jobs would close if they were not reported.
func (t *toolComparison) ofJobs() map[string]bool {
	names := map[string]bool{}
	for _, batch := range t.batches {
		for _, analysis := range t.past.distinct(append(slices.Clone(batch.analyses()), batch.Analysis), t.findings) {
			own, _ := t.past.ofJob(series{batch.Category, analysis}, t.findings)
			for i := range own {
				names[own[i].Name] = true
			}
		}
	}
	return names
}

// fixed returns the findings that the batches' scan jobs would close, because they are not among the reported ones, and
// that were open when the pull request began.
func (t *toolComparison) fixed(reported []*v1alpha1.Finding) (out []*v1alpha1.Finding) {
	unreported := t.ofJobs()
	analyses := map[problemAtLine][]string{} // of the reported findings
	for _, f := range reported {
		delete(unreported, f.Name)
		problem := atLine(&f.Spec)
		analyses[problem] = append(analyses[problem], f.Spec.Analysis)
	}
	for i := range t.findings {
		// A finding of another analysis is not fixed, because the results of all analyses are merged. Nor is one of a project
		// that was not scanned.
		spec := &t.findings[i].Spec
		other := func(analysis string) bool { return analysis != spec.Analysis }
		gone := unreported[t.findings[i].Name] && !t.excludes(spec.ProjectRef)
		if gone && !slices.ContainsFunc(analyses[atLine(spec)], other) && t.base.hadOpen(&t.findings[i]) {
			out = append(out, &t.findings[i])
		}
	}
	return out
}

// problemAtLine is what findings of several analyses have in common if they are one problem.
type problemAtLine struct {
	sameProblem
	line int32
}

func atLine(spec *v1alpha1.FindingSpec) problemAtLine {
	return problemAtLine{sameProblem: problemOf(spec), line: spec.Details.Place().LineNumber}
}

// hadOpen reports whether the finding is open, and was when the pull request began. It may wrongly report false, which
// counts too few as fixed: older transitions are not kept, and they have the time at which the controllers saw them.
func (b Base) hadOpen(f *v1alpha1.Finding) bool {
	next := slices.IndexFunc(f.Status.Transitions, func(t v1alpha1.Transition) bool {
		return t.At.After(b.Since) && (t.Type == v1alpha1.TransitionClosed || t.Type == v1alpha1.TransitionReopened)
	})
	wasClosed := next >= 0 && f.Status.Transitions[next].Type == v1alpha1.TransitionReopened
	return f.Spec.Closed == nil && !wasClosed && !findingstate.CreatedAt(f).After(b.Since)
}

// countFixed counts the open findings of the base that the batches of their own scan job do not report.
func (t *toolComparison) countFixed(fixed []*v1alpha1.Finding) {
	for _, f := range fixed {
		t.out.Fixed++
		if len(t.out.Examples) < MaxChanges {
			t.out.Examples = append(t.out.Examples, shown(ActionClose, f.Name, &f.Spec.Details))
		}
	}
}
