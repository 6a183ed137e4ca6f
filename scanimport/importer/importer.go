package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/apitime"
	"github.com/appsec-dev/findings-operator/internal/safely"
)

// DefaultConcurrency is how many findings are written at the same time. Each one delays users' decisions. On a control
// plane of two cores, 8 import no faster than 4.
const DefaultConcurrency = 4

// DefaultProgressInterval is how often a running Scan reports its progress.
const DefaultProgressInterval = 5 * time.Second

// Options of an Importer.
type Options struct {
	// DryRun computes the difference and writes nothing.
	DryRun bool
	// Found is the result of Provision; nil if it was not called. The first summary lists the created objects. With
	// DryRun, a repository and projects that would be created count as existing.
	Found *Found
	// Force imports scans although they would be refused, because they are older than the last completed one, would close
	// more than half of the open findings, seem to belong to a known analysis under another name, or because the API
	// server refuses all their changes.
	Force bool
	// Concurrency is how many findings are written at the same time; 0: DefaultConcurrency.
	Concurrency int
	// OnWaiting is called once if another import holds the batch's Lease.
	OnWaiting func(b *Batch, holder string)
	// OnProgress is called with the number of a batch's written findings, from several goroutines but one at a time.
	OnProgress func(done, total int)

	// Upload is the upload that the Scans came with, and ImportedBy the key that authenticated it. With an upload, every
	// refusal is recorded in a Scan, unless the repository or project does not exist. Without one, a scan that is too old
	// is not recorded.
	Upload     *v1alpha1.ScanUpload
	ImportedBy string
	// Importer is the importing program and its version, as stored in v1alpha1.ImporterAnnotation; empty: unknown.
	Importer string
	// OnRecorded is called once the batch's Scan exists, which from then on shows the progress and outcome.
	OnRecorded func(b *Batch, scan string)
	// ProgressInterval is how often a running Scan reports its progress; 0: DefaultProgressInterval.
	ProgressInterval time.Duration
}

func (o *Options) setDefaults() {
	o.Concurrency = cmp.Or(max(o.Concurrency, 0), DefaultConcurrency)
	o.ProgressInterval = cmp.Or(max(o.ProgressInterval, 0), DefaultProgressInterval)
	if o.Found == nil {
		o.Found = &Found{}
	}
	if o.OnWaiting == nil {
		o.OnWaiting = func(*Batch, string) {}
	}
	if o.OnProgress == nil {
		o.OnProgress = func(int, int) {}
	}
	if o.OnRecorded == nil {
		o.OnRecorded = func(*Batch, string) {}
	}
}

// Target is where findings go. Project is the default for batches that name no project.
type Target struct {
	Namespace, Repository, Project string
}

// of returns the project of a batch.
func (t *Target) of(b *Batch) string { return cmp.Or(b.Project, t.Project) }

// Importer imports into one repository.
type Importer struct {
	client  *Client
	target  Target
	options Options
}

// New returns an Importer; the client comes from NewClient.
func New(c *Client, target Target, options Options) *Importer {
	options.setDefaults()
	return &Importer{client: c, target: target, options: options}
}

// job is a batch that is being imported.
type job struct {
	*Batch
	// project that was scanned.
	project string
	// group holds the jobs of the same tool and project, this one included.
	group *group
	scan  scanContext
	// scans are the earlier scans of the tool. The jobs of a group share them, so they do not change.
	scans    history
	plan     plan
	summary  *Summary
	lock     *lock
	parent   *parent
	progress Progress
	// lastChange is the last written finding; nil if there is none.
	lastChange *v1alpha1.ScanChange
	record     ScanRecord
	// recorded means that the batch's Scan was created, and ended that it has its outcome.
	recorded, ended bool
}

// Import imports all batches into their projects, or none if one of them is refused. The summaries are in the order of
// the batches; with an error they hold what was done so far. The same batches can safely be imported again, in whole or
// in part.
func (im *Importer) Import(ctx context.Context, batches []*Batch) ([]*Summary, error) {
	repository, projects, err := im.repository(ctx, batches)
	if err != nil {
		return nil, err
	}
	jobs := make([]*job, len(batches))
	summaries := make([]*Summary, len(batches))
	for i, b := range batches {
		summaries[i] = newSummary(b)
		project := im.target.of(b)
		key := client.ObjectKey{Namespace: im.target.Namespace, Name: project}
		jobs[i] = &job{Batch: b, project: project, summary: summaries[i], lock: im.lock(b),
			parent: &parent{client: im.client, key: key, uid: projects[project]}, scan: b.contextOf(repository, project)}
	}
	if len(summaries) > 0 {
		summaries[0].Provisioned = im.options.Found.Provisioned
	}
	groups := groupsOf(jobs)
	if im.options.DryRun {
		return summaries, im.dryRun(ctx, jobs, groups)
	}
	return summaries, locked(ctx, jobs, func(ctx context.Context) error {
		err := safely.Func(func() error {
			err := im.run(ctx, jobs, groups)
			if err != nil && ctx.Err() != nil && safely.Stack(err) == "" {
				return stopped(ctx)
			}
			return err
		})()
		return im.fail(ctx, jobs, err)
	})
}

// StoppedEarly begins the message of an import whose context has ended, before the cause in parentheses.
// docs/findings.sh looks for it.
const StoppedEarly = "stopped before its end"

// stopped returns the error for a context that has ended, which explains whatever failed after that.
func stopped(ctx context.Context) error {
	return fmt.Errorf(StoppedEarly+" (%w): import again, what is already written is kept",
		context.Cause(ctx))
}

// locked holds the Leases of all jobs while do runs. It observes all from the beginning, so that those of a killed
// process expire at the same time.
func locked(ctx context.Context, jobs []*job, do func(ctx context.Context) error) error {
	for _, j := range jobs[min(1, len(jobs)):] {
		if _, err := j.lock.observe(ctx); err != nil {
			return j.lock.acquireError(ctx, "", err)
		}
	}
	return holding(ctx, jobs, do)
}

// holding takes the Leases one after another. The batches are sorted, so that two imports of the same tools do not wait
// for each other.
func holding(ctx context.Context, jobs []*job, do func(ctx context.Context) error) error {
	if len(jobs) == 0 {
		return do(ctx)
	}
	return jobs[0].lock.with(ctx, func(ctx context.Context) error {
		return holding(ctx, jobs[1:], do)
	})
}

// run performs the import from the first write to the last. It writes only Scans before every job has passed its
// guards. The Scans of an upload come first: its client waits for them, and earlier scans may take long to read.
func (im *Importer) run(ctx context.Context, jobs []*job, groups []*group) error {
	setStarts(jobs)
	before, after := []step{}, []step{im.guardAge, im.begin}
	if im.options.Upload != nil {
		before, after = []step{im.begin}, []step{im.guardAge}
	}
	if err := perform(ctx, jobs, before...); err != nil {
		return err
	}
	if err := im.readHistory(ctx, groups); err != nil {
		return err
	}
	if err := perform(ctx, jobs, after...); err != nil {
		return err
	}
	if err := im.compareAll(ctx, groups, func(_ *job, err error) error { return err }); err != nil {
		return err
	}
	return perform(ctx, jobs, im.finish)
}

// step is a step of an import. All jobs complete a step before any begins the next.
type step func(ctx context.Context, j *job) error

// perform performs the steps for all jobs, until the first error.
func perform(ctx context.Context, jobs []*job, steps ...step) error {
	for _, step := range steps {
		for _, j := range jobs {
			if err := step(ctx, j); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish writes the changes and then the Scan's outcome.
func (im *Importer) finish(ctx context.Context, j *job) error {
	err := im.reporting(ctx, j, func() error { return im.write(ctx, j) })
	if err == nil {
		err = FinishWrite(ctx, func(ctx context.Context) error { return im.end(ctx, j, nil) })
	}
	return j.explain(err)
}

// dryRun compares all jobs, even if an import would refuse them, and lists the changes. The error joins the refusals.
func (im *Importer) dryRun(ctx context.Context, jobs []*job, groups []*group) error {
	setStarts(jobs)
	if err := im.readHistory(ctx, groups); err != nil {
		return err
	}
	var refusals []error
	noted := func(j *job, err error) error {
		refused, is := errors.AsType[*RefusedError](err)
		if !is {
			return err
		}
		refusals = append(refusals, err)
		j.summary.Refused = append(j.summary.Refused, refused.Reason)
		return nil
	}
	guardAge := func(ctx context.Context, j *job) error { return noted(j, im.guardAge(ctx, j)) }
	if err := perform(ctx, jobs, guardAge); err != nil {
		return err
	}
	err := im.compareAll(ctx, groups, func(j *job, err error) error {
		j.summary.show(&j.plan)
		j.plan.changes = nil // they are large; countNotAdopted needs notAdopted
		return noted(j, err)
	})
	if err != nil {
		return err
	}
	return errors.Join(refusals...)
}

// readHistory reads the earlier scans. Those of an upload itself are among them, as scans that have not ended.
func (im *Importer) readHistory(ctx context.Context, groups []*group) error {
	for _, g := range groups {
		scans, unreadable, err := im.scans(ctx, g.jobs[0])
		if err != nil {
			return err
		}
		for _, j := range g.jobs {
			j.scans = scans
			j.summary.warnOf("scan", unreadable)
		}
	}
	return nil
}

// setStarts sets when the scans started. Unknown starts are set to the present, when the import holds its Leases.
func setStarts(jobs []*job) {
	for _, j := range jobs {
		j.setStart()
	}
}

// setStart sets when the scan started.
func (j *job) setStart() {
	j.scan.startedAt = j.Started()
	if given := v1alpha1.NewTime(j.StartedAt); given.After(j.scan.startedAt.Time) {
		j.summary.Warnings = append(j.summary.Warnings, fmt.Sprintf("the scan cannot have started at %s, which is in "+
			"the future by the API server's clock: the time of the import counts as its start. Set the clock of the "+
			"machine that scanned", given.Format(time.RFC3339)))
	}
}

// Started returns when the scan started, or the present if that is unknown or in the future by the API server's clock:
// findings must not be detected or closed in the future.
func (b *Batch) Started() v1alpha1.Time {
	now := apitime.Now()
	if b.StartedAt.IsZero() || b.StartedAt.After(now.Add(ClockSkew)) {
		return v1alpha1.NewTime(now)
	}
	return v1alpha1.NewTime(b.StartedAt)
}

func (im *Importer) guardAge(_ context.Context, j *job) error {
	if im.options.Force {
		return nil
	}
	last, name := j.scans.last(j.series())
	return j.explain(guardAge(j.scan.startedAt.Time, last, name))
}

// outcome returns the scan's outcome after a completed import: an incomplete scan counts as failed, because it has not
// covered everything.
func (j *job) outcome() v1alpha1.ScanOutcome {
	if !j.complete() {
		return v1alpha1.ScanFailed
	}
	return v1alpha1.ScanSucceeded
}

// explain adds the batch to an error, and keeps the error's type.
func (j *job) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", j.Name(), err)
}
