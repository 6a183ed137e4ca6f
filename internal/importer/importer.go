package importer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsecv1alpha1 "github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
)

// DefaultConcurrency is how many findings are written at the same time.
const DefaultConcurrency = 8

// endTimeout bounds the last write of a Scan, which is made even when the import is
// being stopped.
const endTimeout = 10 * time.Second

// Options of an Importer.
type Options struct {
	// DryRun works out the difference and writes nothing.
	DryRun bool
	// Force imports scans that are older than the last completed one, and closes however many.
	Force bool
	// Concurrency is how many findings are written at the same time; 0: DefaultConcurrency.
	Concurrency int
	// LeaseDuration, at least a second; 0: DefaultLeaseDuration.
	LeaseDuration time.Duration
	// OnWaiting is told, once, that another import of the batch holds the Lease.
	OnWaiting func(b *Batch, holder string)
	// OnProgress is told how many findings of a batch are written, from several goroutines
	// but one at a time.
	OnProgress func(done, total int)
}

func (o *Options) setDefaults() {
	if o.Concurrency <= 0 {
		o.Concurrency = DefaultConcurrency
	}
	if o.LeaseDuration == 0 {
		o.LeaseDuration = DefaultLeaseDuration
	}
	o.LeaseDuration = max(o.LeaseDuration, time.Second)
	if o.OnWaiting == nil {
		o.OnWaiting = func(*Batch, string) {}
	}
	if o.OnProgress == nil {
		o.OnProgress = func(int, int) {}
	}
}

// Importer imports into one project.
type Importer struct {
	client  client.Client
	target  Target
	options Options
}

// New returns an Importer; the client is one of NewClient.
func New(c client.Client, target Target, options Options) *Importer {
	options.setDefaults()
	return &Importer{client: c, target: target, options: options}
}

// job is a batch on its way.
type job struct {
	*Batch
	context scanContext
	plan    plan
	summary *Summary
	// recorded says that its Scan has been created, ended that it has got its outcome.
	recorded, ended bool
}

// Import brings all batches into the project, or, where one of them is refused, none. The
// summaries are those of the batches in their order; with an error they say what was done
// until then. Importing again what was imported, wholly or in part, does no harm.
func (im *Importer) Import(ctx context.Context, batches []*Batch) ([]*Summary, error) {
	repository, err := im.repository(ctx)
	if err != nil {
		return nil, err
	}
	jobs := make([]*job, len(batches))
	summaries := make([]*Summary, len(batches))
	for i, b := range batches {
		summaries[i] = newSummary(b)
		jobs[i] = &job{Batch: b, summary: summaries[i], context: scanContext{
			repository: im.target.Repository, project: im.target.Project,
			tool: b.Tool, category: b.Category, uniform: b.Uniform, commit: b.Commit,
			links: newPermalinks(&repository.Spec, b.Commit),
		}}
	}
	if im.options.DryRun {
		return summaries, im.dryRun(ctx, jobs)
	}
	return summaries, im.locked(ctx, jobs, func(ctx context.Context) error {
		err := im.run(ctx, jobs)
		if err != nil && ctx.Err() != nil {
			err = stopped(ctx)
		}
		return errors.Join(err, im.fail(ctx, jobs, err))
	})
}

// stopped says why a context ended; whatever failed after that did so because of it.
func stopped(ctx context.Context) error {
	return fmt.Errorf("stopped before its end (%w): import again, what has been written will be found as it is", context.Cause(ctx))
}

// locked holds the Leases of all jobs while do runs. The batches are sorted, so that two
// imports of the same tools cannot wait for each other.
func (im *Importer) locked(ctx context.Context, jobs []*job, do func(ctx context.Context) error) error {
	if len(jobs) == 0 {
		return do(ctx)
	}
	return im.lock(jobs[0].Batch).with(ctx, func(ctx context.Context) error {
		return im.locked(ctx, jobs[1:], do)
	})
}

// run is the import from the first write to the last. Nothing but Scans is written before
// every job has passed its guards.
func (im *Importer) run(ctx context.Context, jobs []*job) error {
	for _, j := range jobs {
		if err := im.checkAge(ctx, j); err != nil {
			return err
		}
	}
	for _, j := range jobs {
		if err := im.begin(ctx, j); err != nil {
			return err
		}
	}
	for _, j := range jobs {
		if err := im.compare(ctx, j); err != nil {
			return err
		}
	}
	for _, j := range jobs {
		if err := im.write(ctx, &j.context, &j.plan, j.summary); err != nil {
			return j.explain(err)
		}
		if err := im.end(ctx, j, j.outcome(), j.summary.message()); err != nil {
			return j.explain(err)
		}
	}
	return nil
}

func (im *Importer) dryRun(ctx context.Context, jobs []*job) error {
	var refusals []error
	for _, j := range jobs {
		var refused *RefusedError
		for _, step := range []func(context.Context, *job) error{im.checkAge, im.compare} {
			if err := step(ctx, j); errors.As(err, &refused) {
				refusals = append(refusals, err)
			} else if err != nil {
				return err
			}
		}
		j.summary.list(&j.plan)
	}
	return errors.Join(refusals...)
}

// checkAge settles when the scan started: a time that nobody has said is now, when the
// import has its turn.
func (im *Importer) checkAge(ctx context.Context, j *job) error {
	started := j.StartedAt
	if started.IsZero() {
		started = time.Now()
	}
	j.context.startedAt = appsecv1alpha1.NewTime(started.UTC().Truncate(time.Second))
	if im.options.Force {
		return nil
	}
	last, name, err := im.lastCompleted(ctx, j.Batch)
	if err != nil {
		return err
	}
	return j.explain(guardAge(j.context.startedAt.Time, last, name))
}

// begin records that the scan runs.
func (im *Importer) begin(ctx context.Context, j *job) error {
	j.context.scanID = "s-" + fingerprints.Hash(uuid.NewString())
	if err := im.applyScan(ctx, j, nil); err != nil {
		return fmt.Errorf("record the scan of %s: %w", j.Tool, err)
	}
	j.recorded = true
	j.summary.Scan = j.context.scanID
	return nil
}

// compare reads what is there and works out the difference. Facts are made of the results while
// the API server looks.
func (im *Importer) compare(ctx context.Context, j *job) error {
	scans, shared, err := im.scans(ctx, j.Batch)
	if err != nil {
		return err
	}
	j.context.uniform = j.Uniform || shared
	var there []appsecv1alpha1.Finding
	var reading errgroup.Group
	reading.Go(func() (err error) {
		there, err = im.findings(ctx, j.Batch)
		return err
	})
	results, duplicates := report(&j.context, j.Batch)
	if err := reading.Wait(); err != nil {
		return err
	}
	if shared {
		there = scans.ofJob(j.Category, there)
	}
	for _, r := range duplicates {
		j.summary.skip(skipDuplicate, fmt.Sprintf("result %d (rule %q)", r.Index, cut(r.RuleID, 64)))
	}
	complete := len(j.Incomplete) == 0
	j.plan = diff(&j.context, j.Batch, results, there, complete)
	j.summary.recognised(&j.plan)
	j.summary.Unchanged = j.plan.unchanged
	if !complete {
		j.summary.NotReported = j.plan.toClose
		return nil
	}
	if im.options.Force {
		return nil
	}
	return j.explain(guardClosing(j.plan.open, j.plan.toClose))
}

// end writes the outcome: the last that an import writes of a scan.
func (im *Importer) end(ctx context.Context, j *job, outcome appsecv1alpha1.ScanOutcome, message string) error {
	if err := im.applyScan(ctx, j, func(spec *appsecv1alpha1.ScanSpec) {
		spec.CompletedAt = ptr.To(appsecv1alpha1.NewTime(time.Now().UTC().Truncate(time.Second)))
		spec.Outcome = outcome
		spec.Message = message
		spec.Counts = j.summary.counts()
	}); err != nil {
		return fmt.Errorf("record the end of scan %s: %w", j.context.scanID, err)
	}
	j.ended = true
	return nil
}

// fail ends, as Failed, every scan that was recorded and has no end.
func (im *Importer) fail(ctx context.Context, jobs []*job, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	var errs []error
	for _, j := range jobs {
		if cause == nil || !j.recorded || j.ended {
			continue
		}
		message := cut(paragraph("the import failed: "+cause.Error()), maxScanMessage)
		errs = append(errs, im.end(ctx, j, appsecv1alpha1.ScanFailed, message))
	}
	return errors.Join(errs...)
}

func (im *Importer) applyScan(ctx context.Context, j *job, more func(*appsecv1alpha1.ScanSpec)) error {
	spec := appsecv1alpha1.ScanSpec{
		RepositoryRef: appsecv1alpha1.RepositoryReference{Name: appsecv1alpha1.ResourceName(im.target.Repository)},
		ProjectRef:    appsecv1alpha1.ProjectReference{Name: appsecv1alpha1.ResourceName(im.target.Project)},
		Tool:          j.Tool,
		ToolVersion:   j.ToolVersion,
		Category:      j.Category,
		Commit:        j.Commit,
		StartedAt:     j.context.startedAt,
	}
	if more != nil {
		more(&spec)
	}
	_, err := apply(ctx, im, fieldManager(j.Tool), "Scan", appliedMeta{Name: j.context.scanID}, spec)
	return err
}

// outcome is that of the scanner once the import has done its part: a scan that did not
// get to its end has not looked at everything.
func (j *job) outcome() appsecv1alpha1.ScanOutcome {
	if len(j.Incomplete) > 0 {
		return appsecv1alpha1.ScanFailed
	}
	return appsecv1alpha1.ScanSucceeded
}

// explain says which batch an error is about, and keeps its kind.
func (j *job) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s (%s): %w", j.Tool, j.Category, err)
}
