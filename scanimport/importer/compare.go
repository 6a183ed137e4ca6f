package importer

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/appsec-dev/findings-operator/internal/safely"
)

// group holds the jobs that read the same scans and findings: those of a tool in a project.
type group struct {
	jobs []*job
	// renames holds the names of the findings that get the tool's current name by the plans of the jobs compared so far.
	renames map[string]bool
	// adopted holds the names of the findings without an analysis that these plans take over.
	adopted map[string]bool
}

// groupsOf divides the jobs into groups.
func groupsOf(jobs []*job) (groups []*group) {
	for _, j := range jobs {
		i := slices.IndexFunc(groups, func(g *group) bool {
			first := g.jobs[0]
			return first.project == j.project && first.Tool == j.Tool && first.GivenFormer == j.GivenFormer
		})
		if i < 0 {
			i = len(groups)
			groups = append(groups, &group{renames: map[string]bool{}, adopted: map[string]bool{}})
		}
		j.group = groups[i]
		j.group.jobs = append(j.group.jobs, j)
	}
	return groups
}

// compareAll compares the jobs and calls done with the error of each, until that returns one. The jobs of a group share
// one list of findings, which is dropped before the next is read: an upload of a few kilobytes may have 32 jobs.
func (im *Importer) compareAll(ctx context.Context, groups []*group, done func(j *job, err error) error) error {
	for _, g := range groups {
		for left := g.jobs; len(left) > 0; {
			var err error
			if left, err = im.compareInTurn(ctx, left, done); err != nil {
				return err
			}
		}
		g.countNotAdopted()
	}
	return nil
}

// add adds what the plan renames and adopts, and counts in the plan what no earlier one has renamed.
func (g *group) add(p *plan) {
	for i := range p.changes {
		ch := &p.changes[i]
		if ch.before == nil {
			continue
		}
		if was := ch.before.Spec.Tool; was != ch.spec.Tool && !g.renames[ch.name] {
			g.renames[ch.name] = true
			p.renamed[was]++
		}
		if ch.before.Spec.Analysis != ch.spec.Analysis {
			g.adopted[ch.name] = true
		}
	}
}

// countNotAdopted counts for each job again what is left without an analysis, now that all jobs are compared.
func (g *group) countNotAdopted() {
	for _, j := range g.jobs {
		j.summary.NotAdopted = 0
		for _, name := range j.plan.notAdopted {
			if !g.adopted[name] {
				j.summary.NotAdopted++
			}
		}
		j.plan.notAdopted = nil // of many jobs they are large
	}
}

// compareInTurn compares jobs of a group, and returns those that are left when its turn is over.
func (im *Importer) compareInTurn(ctx context.Context, jobs []*job,
	done func(j *job, err error) error) (left []*job, err error) {
	turn, err := im.client.Turn(ctx)
	if err != nil {
		return nil, err
	}
	defer turn.End()
	findings := sync.OnceValues(func() (*listed, error) { return im.listFindings(ctx, jobs[0]) })
	for i, j := range jobs {
		if i > 0 && turn.Over() {
			return jobs[i:], nil
		}
		if err := done(j, im.compare(ctx, j, findings)); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// compare computes the difference to the existing findings, which findings lists.
func (im *Importer) compare(ctx context.Context, j *job, findings func() (*listed, error)) error {
	j.scan.uniform = j.Uniform || j.scans.shared(j.series())
	results, existing, err := j.gather(ctx, findings)
	if err != nil {
		return err
	}
	j.plan = diff(&j.scan, j.Batch, results, existing)
	j.group.add(&j.plan)
	j.summary.planned(&j.plan)
	return j.explain(im.guardPlan(j, len(results)))
}

// gather converts the results to facts, except for duplicates, while the API server lists the existing findings.
func (j *job) gather(ctx context.Context, findings func() (*listed, error)) (results []reported, existing *known,
	err error) {
	var reading errgroup.Group
	reading.Go(safely.Func(func() error {
		l, err := findings()
		if err == nil {
			existing, err = j.known(l)
		}
		return err
	}))
	defer func() { _ = reading.Wait() }() // even after a panic, because known writes to the summary
	results, duplicates, unfit := report(ctx, &j.scan, j.Batch)
	if err := reading.Wait(); err != nil {
		return nil, nil, err
	}
	if unfit != nil {
		return nil, nil, j.explain(unfit)
	}
	j.summary.skipResults(SkipDuplicate, duplicates)
	return results, existing, nil
}

// guardPlan returns why the plan is refused, and adds warnings to the summary. guardFolder applies even with Force.
func (im *Importer) guardPlan(j *job, results int) error {
	warning, err := guardAnalysis(j.Batch, j.scans, &j.plan, results, im.options.Force)
	if warning != "" {
		j.summary.Warnings = append(j.summary.Warnings, warning)
	}
	if err == nil {
		err = guardFolder(j.project, j.Outside, &j.plan)
	}
	if err != nil || !j.complete() || im.options.Force {
		return err
	}
	return guardClosing(j.plan.open, j.plan.toClose, im.options.DryRun)
}
