package importer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
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
		t := &toolComparison{base: b, repository: repository, coverage: b.coverageOf(ofTool), places: places, out: out}
		if err := t.read(ctx, c); err != nil {
			return nil, err
		}
		if err := t.compare(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", batch.Name(), err)
		}
	}
	return out, nil
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

// toolComparison compares the batches of one tool with what the base has of it. They share its findings, and each
// finding matches at most one result. The findings are dropped before those of the next tool are listed.
type toolComparison struct {
	base       Base
	repository *v1alpha1.Repository
	coverage
	// places are the batches' indexes among all batches.
	places map[*Batch]int
	// past and findings are what the base has of the tool.
	past     history
	findings []v1alpha1.Finding
	// out gets the results of the comparison.
	out *Compared
}

func (t *toolComparison) tool() string { return t.batches[0].Tool }

func (t *toolComparison) warn(format string, arguments ...any) {
	t.out.Warnings = append(t.out.Warnings, fmt.Sprintf(format, arguments...))
}

// read lists the scans of the batches' tool, under all its names, and the findings that the base has.
func (t *toolComparison) read(ctx context.Context, c *Client) error {
	t.past = history{}
	other := func(p v1alpha1.ProjectReference) bool { return !t.all && t.excludes(p) }
	selector := func(tool string) fields.Selector {
		terms := []fields.Selector{
			fields.OneTermEqualSelector("spec.tool", tool),
			fields.OneTermEqualSelector("spec.repositoryRef.name", t.repository.Name),
		}
		if t.base.Project != "" {
			terms = append(terms, fields.OneTermEqualSelector("spec.projectRef.name", t.base.Project))
		}
		return fields.AndSelectors(terms...)
	}
	batch := t.batches[0]
	for _, tool := range batch.names() {
		_, err := eachScan(ctx, c, t.base.Namespace, selector(tool), func(page []v1alpha1.Scan) {
			t.past.add(slices.DeleteFunc(page, func(s v1alpha1.Scan) bool { return other(s.Spec.ProjectRef) }))
		})
		if err != nil {
			return fmt.Errorf("list the scans of the base: %w", err)
		}
	}
	findings, unreadable, err := batch.findings(ctx, c, t.base.Namespace, selector)
	if err != nil {
		return fmt.Errorf("list the findings of the base: %w", err)
	}
	for _, name := range unreadable {
		t.out.Warnings = append(t.out.Warnings, PassedOver("finding", name))
	}
	t.findings = slices.DeleteFunc(findings, func(f v1alpha1.Finding) bool {
		return other(f.Spec.ProjectRef) || f.Spec.Closed != nil && !f.Spec.Closed.At.After(t.base.Since)
	})
	return nil
}

// compare compares the results with the findings. Users see the warnings in this order.
func (t *toolComparison) compare(ctx context.Context) error {
	t.warnOfUnscanned()
	t.warnOfCategory()
	all, err := t.report(ctx)
	if err != nil {
		return err
	}
	t.warnOfForeign()
	results, matches, replaced := t.pairBase(all)
	t.warnOfUnsuppressed(results, matches)
	t.warnOfReplaced(replaced)
	t.warnOfRenamedProjects(results, matches)
	reported := t.countKnown(results, matches, replaced)
	t.warnOfProjects(all)
	if fixed := t.fixed(reported); t.unknown {
		t.warnOfUnknownProject(fixed)
	} else {
		t.countFixed(fixed)
	}
	return nil
}

// report returns the facts that an import would write for the results of the batches.
func (t *toolComparison) report(ctx context.Context) (out []reported, err error) {
	for _, batch := range t.batches {
		c := batch.contextOf(t.repository, t.base.Project)
		results, _, err := report(ctx, &c, batch)
		if err != nil {
			return nil, err
		}
		for i := range results {
			results[i].batch = t.places[batch]
		}
		out = append(out, results...)
	}
	return out, nil
}

// countKnown counts the results that the base has. It returns the findings that are reported, so that they do not count
// as fixed.
func (t *toolComparison) countKnown(results []reported, matches []match,
	replaced map[ResultIndex]match) (out []*v1alpha1.Finding) {
	for _, m := range replaced { // an import would not close it
		out = append(out, m.before)
	}
	for i, m := range matches {
		if m.before == nil {
			continue
		}
		out = append(out, m.before)
		if results[i].spec.Suppression == nil { // what the source suppresses is no issue, known or not
			t.out.Known[results[i].at()] = true
			if m.doubt != "" {
				t.out.InDoubt++
			}
		}
	}
	return out
}
