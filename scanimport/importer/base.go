package importer

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// Base is the base branch of a pull request, as known from the findings of its repository.
type Base struct {
	Namespace string
	// Project of the findings; if empty, the projects that Scanned returns.
	Project string
	// Scanned returns the projects that a tool's batches cover. all means that others may have been scanned too: then all
	// projects of the repository count, but a finding of such a project matches only in its own file. Without any project
	// it is unknown which one was scanned, and no finding counts as fixed. If Scanned is nil, any project may have been
	// scanned.
	Scanned func(batches []*Batch) (scanned map[string]bool, all bool)
	// Holding returns the projects of the repository in whose folder a file is. Set it with Scanned.
	Holding func(file string) []string
	// Since is when the pull request began. A finding closed later still counts as present in the base; one detected or
	// reopened later cannot have been fixed by the pull request.
	Since time.Time
	// Own prepares the comparison of a tool's results with the open issues of the pull request. The function that it
	// returns reports which results are, or may be, such issues, given the results that the base has. A doubtful match in
	// the base then makes such a result known only if its line is nearer. If Own is nil, no result is an issue.
	Own func(tool string) func(known ResultSet) Distances
	// Between is called between two tools, when no findings are in memory. It may end the turn and wait for the next. nil:
	// nothing is done.
	Between func(ctx context.Context) error
}

// ResultIndex identifies a result by the index of its batch and its index in the batch's Results.
type ResultIndex struct{ Batch, Result int }

// ResultSet holds results.
type ResultSet map[ResultIndex]bool

// Distances holds how many lines results are away from their issues; 0 if they are certainly the same.
type Distances map[ResultIndex]int32

// Compared reports which results of some batches the base already has.
type Compared struct {
	// Known holds the results of the batches' Results that the base has.
	Known ResultSet
	// InDoubt counts those that may be another problem of the same kind.
	InDoubt int
	// Unsuppressed counts those that the base suppresses in the source, and the commit does not.
	Unsuppressed int
	// Replaced counts results that are not known, because they have other code than a muted finding of the base.
	Replaced int
	// Fixed counts findings that are open in the base, belong to the reviewed analyses, and are not reported. Examples
	// lists some of them.
	Fixed    int
	Examples []Change
	// Unscanned names the tools that never scanned the base, so that all their results are new.
	Unscanned []string
	// Warnings are problems that need a user's attention.
	Warnings []string
}

// Compare recognises findings of the base among the results of the batches, as an import would. The caller holds a
// Turn.
func (b Base) Compare(ctx context.Context, c *Client, repository *v1alpha1.Repository,
	batches []*Batch) (*Compared, error) {
	out := &Compared{Known: ResultSet{}}
	for i, batch := range batches {
		if slices.ContainsFunc(batches[:i], func(o *Batch) bool { return o.Tool == batch.Tool }) {
			continue // handled with the first batch of its tool
		}
		if i > 0 && b.Between != nil {
			if err := b.Between(ctx); err != nil {
				return nil, err
			}
		}
		places := map[*Batch]int{}
		var ofTool []*Batch
		for k := i; k < len(batches); k++ {
			if batches[k].Tool == batch.Tool {
				places[batches[k]], ofTool = k, append(ofTool, batches[k])
			}
		}
		if err := b.compareTool(ctx, c, repository, b.coverageOf(ofTool), places, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// compareTool compares the batches of one tool, and drops its findings before those of the next are listed. places are
// the batches' indexes among all batches.
func (b Base) compareTool(ctx context.Context, c *Client, repository *v1alpha1.Repository, covered coverage,
	places map[*Batch]int, out *Compared) error {
	past, findings, err := b.read(ctx, c, repository, covered, out)
	if err != nil {
		return err
	}
	if err := out.compare(ctx, b, repository, covered, places, past, findings); err != nil {
		return fmt.Errorf("%s: %w", covered.batches[0].Name(), err)
	}
	return nil
}

// coverage holds the batches of one tool, and the projects of the repository that they cover.
type coverage struct {
	batches []*Batch
	scanned map[string]bool // these projects; empty: any
	all     bool            // findings of other projects belong to the base, too
	unknown bool            // the files do not show which projects they cover
}

// coverageOf returns the coverage of the batches of one tool. Call it once per tool: Scanned reads every result.
func (b Base) coverageOf(batches []*Batch) coverage {
	c := coverage{batches: batches}
	if b.Project == "" && b.Scanned != nil {
		c.scanned, c.all = b.Scanned(batches)
		c.unknown = len(c.scanned) == 0
	}
	return c
}

// excludes reports whether the batches do not cover the project.
func (c *coverage) excludes(project v1alpha1.ProjectReference) bool {
	return len(c.scanned) > 0 && !c.scanned[string(project.Name)]
}

// read lists the scans of the batches' tool, under all its names, and the findings that the base has.
func (b Base) read(ctx context.Context, c *Client, repository *v1alpha1.Repository, covered coverage,
	out *Compared) (history, []v1alpha1.Finding, error) {
	past := history{}
	other := func(p v1alpha1.ProjectReference) bool { return !covered.all && covered.excludes(p) }
	selector := func(tool string) fields.Selector {
		terms := []fields.Selector{
			fields.OneTermEqualSelector("spec.tool", tool),
			fields.OneTermEqualSelector("spec.repositoryRef.name", repository.Name),
		}
		if b.Project != "" {
			terms = append(terms, fields.OneTermEqualSelector("spec.projectRef.name", b.Project))
		}
		return fields.AndSelectors(terms...)
	}
	batch := covered.batches[0]
	for _, tool := range batch.names() {
		// Keep no page: most scans may be those of pull requests, which are large.
		_, err := eachPage(ctx, c, b.Namespace, selector(tool), func(page []v1alpha1.Scan, _ bool) {
			past.add(slices.DeleteFunc(page, func(s v1alpha1.Scan) bool { return other(s.Spec.ProjectRef) }))
		})
		if err != nil {
			return nil, nil, fmt.Errorf("list the scans of the base: %w", err)
		}
	}
	findings, unreadable, err := batch.findings(ctx, c, b.Namespace, selector)
	if err != nil {
		return nil, nil, fmt.Errorf("list the findings of the base: %w", err)
	}
	for _, name := range unreadable {
		out.Warnings = append(out.Warnings, PassedOver("finding", name))
	}
	return past, slices.DeleteFunc(findings, func(f v1alpha1.Finding) bool {
		return other(f.Spec.ProjectRef) || f.Spec.Closed != nil && !f.Spec.Closed.At.After(b.Since)
	}), nil
}

// compare compares the batches of one tool. They share its findings, and each finding matches at most one result.
// places are the batches' indexes among all batches.
func (out *Compared) compare(ctx context.Context, b Base, repository *v1alpha1.Repository, covered coverage,
	places map[*Batch]int, past history, findings []v1alpha1.Finding) error {
	batches := covered.batches
	out.warnOfUnscanned(batches, past, findings)
	out.warnOfCategory(batches[0], past)
	all, err := b.report(ctx, repository, batches, places)
	if err != nil {
		return err
	}
	var own func(known ResultSet) Distances
	if b.Own != nil {
		own = b.Own(batches[0].Tool)
	}
	otherAnalysis := otherAnalysisThan(batches)
	// A doubtful match counts as known, so require the same subject: another resource or package would pass a gate unseen.
	k := &known{findings: findings, foreign: foreignTo(otherAnalysis, covered.excludes), review: true}
	out.warnOfForeign(batches[0], past, findings, otherAnalysis)
	replaced := map[ResultIndex]match{}
	results, matches := pairBase(all, k, own, replaced)
	out.warnOfUnsuppressed(batches[0].Tool, results, matches)
	out.warnOfReplaced(batches[0].Tool, replaced)
	out.warnOfRenamedProjects(b, batches[0].Tool, results, matches, slices.DeleteFunc(slices.Clone(findings),
		func(f v1alpha1.Finding) bool { return otherAnalysis(&f) || !covered.excludes(f.Spec.ProjectRef) }))
	var reported []*v1alpha1.Finding
	for _, m := range replaced { // an import would not close it
		reported = append(reported, m.before)
	}
	for i, m := range matches {
		if m.before == nil {
			continue
		}
		reported = append(reported, m.before)
		if results[i].spec.Suppression == nil { // what the source suppresses is no issue, known or not
			out.Known[results[i].at()] = true
			if m.doubt != "" {
				out.InDoubt++
			}
		}
	}
	out.warnOfProjects(b, covered, past, findings, all)
	fixed := b.fixed(covered, past, findings, reported)
	if covered.unknown {
		out.warnOfUnknownProject(batches[0].Tool, fixed)
	} else {
		out.countFixed(fixed)
	}
	return nil
}

// warnOfUnscanned names the batches for which the base has no scan, or no successful one.
func (out *Compared) warnOfUnscanned(batches []*Batch, past history, findings []v1alpha1.Finding) {
	for _, batch := range batches {
		switch name := batch.Name(); {
		case past.succeeded():
		case len(findings) == 0:
			out.Unscanned = append(out.Unscanned, name)
		case len(past) > 0:
			out.Warnings = append(out.Warnings, fmt.Sprintf("No scan of the base with %s has succeeded yet: results without a finding in the base count as new. Import a scan of the base branch", name))
		}
	}
}

// warnOfProjects names the projects whose folders hold new results, and of which the base has neither a successful scan
// nor a finding, if it has one of another scanned project. A project that shares its folder with that one is not named.
func (out *Compared) warnOfProjects(b Base, covered coverage, past history, findings []v1alpha1.Finding,
	results []reported) {
	if len(covered.scanned) == 0 || !past.succeeded() {
		return
	}
	inBase := map[string]bool{}
	for _, scan := range past {
		if scan.succeeded {
			inBase[string(scan.project)] = true
		}
	}
	for i := range findings {
		inBase[string(findings[i].Spec.ProjectRef.Name)] = true
	}
	missing := map[string]bool{}
	for _, r := range results {
		if r.spec.Suppression != nil || out.Known[r.at()] {
			continue
		}
		projects := b.Holding(r.result.Location.File())
		if slices.ContainsFunc(projects, func(project string) bool { return inBase[project] }) {
			continue
		}
		for _, project := range projects {
			missing[project] = true
		}
	}
	if len(missing) > 0 {
		out.Warnings = append(out.Warnings, fmt.Sprintf("The base has no successful scan with %s of these projects: %s. Their "+
			"results count as new. If the base was never scanned there, import a scan of it. If it was, and nothing was found, have "+
			"the tool list the files that it scanned", covered.batches[0].Tool, strings.Join(slices.Sorted(maps.Keys(missing)), ", ")))
	}
}

// warnOfCategory warns if the base was only scanned with another category: then its findings are those of another job.
func (out *Compared) warnOfCategory(b *Batch, past history) {
	last := past[past.newest(func(s pastScan) bool { return s.succeeded })].category
	if last != "" && !past.has(func(s pastScan) bool { return s.succeeded && s.category == b.Category }) {
		advice := fmt.Sprintf("Review with --category %s (over REST category)", last)
		if b.Category == v1alpha1.CategorySecret { // the other category would show the secrets
			advice = "Import the base with --category Secret (over REST category)"
		} else if last == v1alpha1.CategorySecret {
			advice = "Issues may show secrets. " + advice
		}
		out.Warnings = append(out.Warnings, fmt.Sprintf("The results of %s are reviewed as category %s, but the base was scanned "+
			"with category %s: no finding counts as fixed. %s", b.Tool, b.Category, last, advice))
	}
}

// warnOfUnsuppressed counts the open findings of the base that the commit reports without their suppression in the
// source, and warns of them. Recognition ignores suppressions and may swap results alike, so among results with the
// same rule, file and evidence the opposite cases are subtracted.
func (out *Compared) warnOfUnsuppressed(tool string, results []reported, matches []match) {
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
		out.Unsuppressed += sum
		out.Warnings = append(out.Warnings, fmt.Sprintf("Results of %s that are suppressed in the source of the base, but not in this "+
			"commit: %d. They are known from the base, so no gate fails. If the pull request removes the "+
			"comments, they will be open after the merge. If not, update its branch, or let the scanner honour the comments as in the base. "+
			"The first is in %s", tool, sum, slices.Min(slices.Collect(maps.Keys(examples)))))
	}
}

// warnOfReplaced counts the results that are issues because they have other code than a muted finding of the base, and
// warns of them: the pull request may not have changed that code.
func (out *Compared) warnOfReplaced(tool string, replaced map[ResultIndex]match) {
	if len(replaced) == 0 {
		return
	}
	var places []string
	for _, m := range replaced {
		places = append(places, cmp.Or(m.is.Path, m.before.Spec.RuleID))
	}
	out.Replaced += len(replaced)
	out.Warnings = append(out.Warnings, fmt.Sprintf("Results of %s with other code in the place of findings that are muted in the "+
		"base: %d. They count as issues. If the pull request did not change this code, update its branch, or import the "+
		"base with the same version of the scanner. The first is in %s", tool, len(replaced), slices.Min(places)))
}

// pairBase matches the results with the findings, and returns the matched results. A result that is an issue, or is at
// least as near to one, takes no finding in doubt. The findings are then matched again without all results that stay
// issues: another result may take such a finding, but none of the issues may take one just because fewer results are
// left. issues is what Base.Own returns for the tool, or nil. replaced gets the matches that do not count, because they
// are otherThanMuted; their results stay issues, too.
func pairBase(results []reported, k *known, issues func(known ResultSet) Distances,
	replaced map[ResultIndex]match) ([]reported, []match) {
	matches := pair(results, k, nil)
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
		return results, matches
	}
	return pairBase(others, k, issues, replaced)
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

// problemAtLine is what findings of several analyses have in common if they are one problem.
type problemAtLine struct {
	sameProblem
	line int32
}

func atLine(spec *v1alpha1.FindingSpec) problemAtLine {
	return problemAtLine{sameProblem: problemOf(spec), line: spec.Details.Place().LineNumber}
}

// report returns the facts that an import would write for the results of the batches, whose indexes are their places.
func (b Base) report(ctx context.Context, repository *v1alpha1.Repository, batches []*Batch,
	places map[*Batch]int) (out []reported, err error) {
	for _, batch := range batches {
		c := batch.contextOf(repository, b.Project)
		results, _, err := report(ctx, &c, batch)
		if err != nil {
			return nil, err
		}
		for i := range results {
			results[i].batch = places[batch]
		}
		out = append(out, results...)
	}
	return out, nil
}

// analyses returns the analyses of the results in a reviewed batch. As in an import, a chosen analysis replaces those
// that the files name.
func (b *Batch) analyses() []string {
	if b.Analysis != "" {
		return []string{b.Analysis}
	}
	return b.OfFiles
}

// warnOfForeign warns if the whole base belongs to other analyses: they may be the same scans under another name.
func (out *Compared) warnOfForeign(b *Batch, past history, findings []v1alpha1.Finding,
	otherAnalysis func(*v1alpha1.Finding) bool) {
	scanned := func(s pastScan) bool { return slices.Contains(b.analyses(), s.analysis) }
	own := func(f v1alpha1.Finding) bool { return !otherAnalysis(&f) }
	if len(findings) > 0 && !slices.ContainsFunc(findings, own) && !past.has(scanned) {
		out.Warnings = append(out.Warnings, fmt.Sprintf("The base has no scan of %s for the analysis %s: renamed files count as new. "+
			"If its scans have another analysis, name that with --analysis (over REST analysis)",
			b.Tool, strings.Join(b.analyses(), ", ")))
	}
}

// warnOfRenamedProjects warns if a project's folder may have been renamed: new results outside of all projects' folders
// are like open findings, in files of the same name, of projects that were not scanned.
func (out *Compared) warnOfRenamedProjects(b Base, tool string, results []reported, matches []match,
	unscanned []v1alpha1.Finding) {
	inAnyFolder := func(spec *v1alpha1.FindingSpec) sameProblem {
		p := problemOf(spec)
		p.path = path.Base(p.path)
		return p
	}
	open := map[sameProblem]map[v1alpha1.ResourceName]int{}
	for i := range unscanned {
		if spec := &unscanned[i].Spec; spec.Closed == nil {
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
		if len(like) == 0 || m.before != nil || r.spec.Suppression != nil || len(b.Holding(r.result.Location.File())) > 0 {
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
		out.Warnings = append(out.Warnings, fmt.Sprintf("Results of %s that count as new (%d) are like open findings of the "+
			"project %s, whose folder was not scanned: if the folder was renamed, they are not new. Set spec.relativePath "+
			"of the Project when the new folder is in the base branch", tool, alike[project], project))
	}
}

// warnOfUnknownProject warns that unreported findings do not count as fixed, because the scanned projects are unknown.
func (out *Compared) warnOfUnknownProject(tool string, unreported []*v1alpha1.Finding) {
	if len(unreported) > 0 {
		out.Warnings = append(out.Warnings, fmt.Sprintf("No result and no scanned file (an artifact with the role "+
			"analysisTarget) of %s says which project of the repository was scanned, so no finding counts as fixed. To count "+
			"them, have the tool list the files that it scanned. If these are of one project, you can name that with "+
			"--project instead (over REST upload to /v2/repos/{id}/projects/{project_id}/scans)", tool))
	}
}

// foreignTo returns a function that reports whether a finding belongs to an analysis that the files do not contain, or
// to a project that they do not cover. Whether such a finding is gone from its file is unknown, so a result in another
// file is another problem.
func foreignTo(otherAnalysis func(*v1alpha1.Finding) bool,
	excludes func(v1alpha1.ProjectReference) bool) func(*v1alpha1.Finding) bool {
	return func(f *v1alpha1.Finding) bool { return otherAnalysis(f) || excludes(f.Spec.ProjectRef) }
}

// otherAnalysisThan returns a function that reports whether a finding belongs to an analysis that the files do not
// contain. Files and findings without an analysis may belong to any.
func otherAnalysisThan(batches []*Batch) func(*v1alpha1.Finding) bool {
	named := map[string]bool{"": true}
	for _, batch := range batches {
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

// ofJobs returns the names of the findings that the batches' scan jobs would close if they were not reported.
func ofJobs(batches []*Batch, past history, findings []v1alpha1.Finding) map[string]bool {
	names := map[string]bool{}
	for _, batch := range batches {
		for _, analysis := range past.distinct(append(slices.Clone(batch.analyses()), batch.Analysis), findings) {
			own, _ := past.ofJob(series{batch.Category, analysis}, findings)
			for i := range own {
				names[own[i].Name] = true
			}
		}
	}
	return names
}

// fixed returns the findings that the batches' scan jobs would close, because they are not among the reported ones, and
// that were open when the pull request began.
func (b Base) fixed(covered coverage, past history, findings []v1alpha1.Finding,
	reported []*v1alpha1.Finding) (out []*v1alpha1.Finding) {
	unreported := ofJobs(covered.batches, past, findings)
	analyses := map[problemAtLine][]string{} // of the reported findings
	for _, f := range reported {
		delete(unreported, f.Name)
		problem := atLine(&f.Spec)
		analyses[problem] = append(analyses[problem], f.Spec.Analysis)
	}
	for i := range findings {
		// A finding of another analysis is not fixed, because the results of all analyses are merged. Nor is one of a project
		// that was not scanned.
		spec := &findings[i].Spec
		other := func(analysis string) bool { return analysis != spec.Analysis }
		gone := unreported[findings[i].Name] && !covered.excludes(spec.ProjectRef)
		if gone && !slices.ContainsFunc(analyses[atLine(spec)], other) && b.hadOpen(&findings[i]) {
			out = append(out, &findings[i])
		}
	}
	return out
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
func (out *Compared) countFixed(fixed []*v1alpha1.Finding) {
	for _, f := range fixed {
		out.Fixed++
		if len(out.Examples) < MaxChanges {
			out.Examples = append(out.Examples, shown(ActionClose, f.Name, &f.Spec.Details))
		}
	}
}
