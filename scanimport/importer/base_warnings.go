package importer

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// warnOfUnscanned names the batches for which the base has no scan, or no successful one.
func (t *toolComparison) warnOfUnscanned() {
	for _, batch := range t.batches {
		switch name := batch.Name(); {
		case t.past.succeeded():
		case len(t.findings) == 0:
			t.out.Unscanned = append(t.out.Unscanned, name)
		case len(t.past) > 0:
			t.warn("No scan of the base with %s has succeeded yet: results without a finding in the base count as new. Import a scan of the base branch", name)
		}
	}
}

// warnOfCategory warns if the base was only scanned with another category: then its findings are those of another job.
func (t *toolComparison) warnOfCategory() {
	b := t.batches[0]
	last := t.past[t.past.newest(func(s pastScan) bool { return s.succeeded })].category
	if last != "" && !t.past.has(func(s pastScan) bool { return s.succeeded && s.category == b.Category }) {
		advice := fmt.Sprintf("Review with --category %s (over REST category)", last)
		if b.Category == v1alpha1.CategorySecret { // the other category would show the secrets
			advice = "Import the base with --category Secret (over REST category)"
		} else if last == v1alpha1.CategorySecret {
			advice = "Issues may show secrets. " + advice
		}
		t.warn("The results of %s are reviewed as category %s, but the base was scanned "+
			"with category %s: no finding counts as fixed. %s", b.Tool, b.Category, last, advice)
	}
}

// warnOfForeign warns if the whole base belongs to other analyses: they may be the same scans under another name.
func (t *toolComparison) warnOfForeign() {
	b, otherAnalysis := t.batches[0], t.otherAnalysis()
	scanned := func(s pastScan) bool { return slices.Contains(b.analyses(), s.analysis) }
	own := func(f v1alpha1.Finding) bool { return !otherAnalysis(&f) }
	if len(t.findings) > 0 && !slices.ContainsFunc(t.findings, own) && !t.past.has(scanned) {
		t.warn("The base has no scan of %s for the analysis %s: renamed files count as new. "+
			"If its scans have another analysis, name that with --analysis (over REST analysis)",
			b.Tool, strings.Join(b.analyses(), ", "))
	}
}

// warnOfUnsuppressed counts the open findings of the base that the commit reports without their suppression in the
// source, and warns of them. Recognition ignores suppressions and may swap results alike, so among results with the
// same rule, file and evidence the opposite cases are subtracted.
func (t *toolComparison) warnOfUnsuppressed(results []reported, matches []match) {
	inSource := func(s *v1alpha1.FindingSuppression) bool {
		return s != nil && s.Kind == v1alpha1.SuppressionInSource
	}
	counts := map[sameProblem]int{}
	for i, m := range matches {
		if m.before == nil || m.before.Spec.Closed != nil {
			continue
		}
		was, is := m.before.Spec.Suppression, results[i].spec.Suppression
		if inSource(was) && is == nil {
			counts[problemOf(&results[i].spec)]++
		} else if was == nil && inSource(is) {
			counts[problemOf(&results[i].spec)]--
		}
	}
	sum, examples := 0, map[string]bool{}
	for problem, n := range counts {
		if n > 0 {
			sum += n
			examples[cmp.Or(problem.path, problem.rule)] = true
		}
	}
	if sum > 0 {
		t.out.Unsuppressed += sum
		t.warn("Results of %s that are suppressed in the source of the base, but not in this "+
			"commit: %d. They are known from the base, so no gate fails. If the pull request removes the "+
			"comments, they will be open after the merge. If not, update its branch, or let the scanner honour the comments as in the base. "+
			"The first is in %s", t.tool(), sum, slices.Min(slices.Collect(maps.Keys(examples))))
	}
}

// warnOfReplaced counts the results that are issues because they have other code than a muted finding of the base, and
// warns of them: the pull request may not have changed that code.
func (t *toolComparison) warnOfReplaced(replaced map[ResultIndex]match) {
	if len(replaced) == 0 {
		return
	}
	var places []string
	for _, m := range replaced {
		places = append(places, cmp.Or(m.is.Path, m.before.Spec.RuleID))
	}
	t.out.Replaced += len(replaced)
	t.warn("Results of %s with other code in the place of findings that are muted in the "+
		"base: %d. They count as issues. If the pull request did not change this code, update its branch, or import the "+
		"base with the same version of the scanner. The first is in %s", t.tool(), len(replaced), slices.Min(places))
}

// warnOfRenamedProjects warns if a project's folder may have been renamed: new results outside of all projects' folders
// are like open findings, in files of the same name, of projects that were not scanned.
func (t *toolComparison) warnOfRenamedProjects(results []reported, matches []match) {
	otherAnalysis := t.otherAnalysis()
	inAnyFolder := func(spec *v1alpha1.FindingSpec) sameProblem {
		p := problemOf(spec)
		p.path = path.Base(p.path)
		return p
	}
	open := map[sameProblem]map[v1alpha1.ResourceName]int{}
	for i := range t.findings {
		spec := &t.findings[i].Spec
		if spec.Closed == nil && t.excludes(spec.ProjectRef) && !otherAnalysis(&t.findings[i]) {
			problem := inAnyFolder(spec)
			if open[problem] == nil {
				open[problem] = map[v1alpha1.ResourceName]int{}
			}
			open[problem][spec.ProjectRef.Name]++
		}
	}
	alike := map[v1alpha1.ResourceName]int{}
	for i, m := range matches {
		r := &results[i]
		like := open[inAnyFolder(&r.spec)]
		if len(like) == 0 || m.before != nil || r.spec.Suppression != nil ||
			len(t.base.Holding(r.result.Location.File())) > 0 {
			continue
		}
		for project, left := range like {
			if left > 0 {
				like[project]--
				alike[project]++
			}
		}
	}
	for _, project := range slices.Sorted(maps.Keys(alike)) {
		t.warn("Results of %s that count as new (%d) are like open findings of the "+
			"project %s, whose folder was not scanned: if the folder was renamed, they are not new. Set spec.relativePath "+
			"of the Project when the new folder is in the base branch", t.tool(), alike[project], project)
	}
}

// warnOfProjects names the projects whose folders hold new results, and of which the base has neither a successful scan
// nor a finding, if it has one of another scanned project. A project that shares its folder with that one is not named.
func (t *toolComparison) warnOfProjects(results []reported) {
	if len(t.scanned) == 0 || !t.past.succeeded() {
		return
	}
	inBase := map[string]bool{}
	for _, scan := range t.past {
		if scan.succeeded {
			inBase[string(scan.project)] = true
		}
	}
	for i := range t.findings {
		inBase[string(t.findings[i].Spec.ProjectRef.Name)] = true
	}
	missing := map[string]bool{}
	for _, r := range results {
		if r.spec.Suppression != nil || t.out.Known[r.at()] {
			continue
		}
		projects := t.base.Holding(r.result.Location.File())
		if slices.ContainsFunc(projects, func(project string) bool { return inBase[project] }) {
			continue
		}
		for _, project := range projects {
			missing[project] = true
		}
	}
	if len(missing) > 0 {
		t.warn("The base has no successful scan with %s of these projects: %s. Their "+
			"results count as new. If the base was never scanned there, import a scan of it. If it was, and nothing was found, have "+
			"the tool list the files that it scanned", t.tool(), strings.Join(slices.Sorted(maps.Keys(missing)), ", "))
	}
}

// warnOfUnknownProject warns that unreported findings do not count as fixed, because the scanned projects are unknown.
func (t *toolComparison) warnOfUnknownProject(unreported []*v1alpha1.Finding) {
	if len(unreported) > 0 {
		t.warn("No result and no scanned file (an artifact with the role "+
			"analysisTarget) of %s says which project of the repository was scanned, so no finding counts as fixed. To count "+
			"them, have the tool list the files that it scanned. If these are of one project, you can name that with "+
			"--project instead (over REST upload to /v2/repos/{id}/projects/{project_id}/scans)", t.tool())
	}
}
