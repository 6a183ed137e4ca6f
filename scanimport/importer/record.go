package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/apitime"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/safely"
)

// EndTimeout bounds the last write of a Scan, which happens even when the import is being stopped.
const EndTimeout = 10 * time.Second

// FinishTimeout is how long a write that has begun may go on after the import was stopped. After that, the end is
// recorded.
const FinishTimeout = 2 * time.Second

// FinishWrite calls write unless ctx has ended. If ctx ends during the write, the write goes on for a short time: the
// API server may carry it out anyway, and stored changes must not be reported as failed. If the Lease is lost, the
// write is cut off, because another import may have begun.
func FinishWrite(ctx context.Context, write func(ctx context.Context) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	last, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() {
		cause, patience := context.Cause(ctx), FinishTimeout
		if errors.Is(cause, errLeaseLost) {
			patience = 0
		}
		time.AfterFunc(patience, func() { cancel(cause) })
	})
	defer stop()
	return write(last)
}

// NewScanName returns a unique name for a Scan.
func NewScanName() string { return "s-" + fingerprints.Hash(uuid.NewString()) }

// begin records that the scan runs, unless the project was deleted meanwhile, for instance while the import waited for
// its Leases.
func (im *Importer) begin(ctx context.Context, j *job) error {
	if err := j.parent.check(ctx); err != nil {
		return j.explain(err)
	}
	j.scan.scanID = NewScanName()
	j.record = im.scanRecord(j)
	create := func(ctx context.Context) error { return j.record.Apply(ctx, im.runningScan(j)) }
	if err := FinishWrite(ctx, create); err != nil {
		return fmt.Errorf("record the scan of %s: %w", j.Tool, err)
	}
	j.recorded = true
	j.summary.Scan = j.scan.scanID
	im.options.OnRecorded(j.Batch, j.scan.scanID)
	return nil
}

// end writes the outcome; failure is nil for a completed import. It is the last write of a scan.
func (im *Importer) end(ctx context.Context, j *job, failure error) error {
	spec := im.runningScan(j)
	ended := apitime.Now()
	if j.lock != nil {
		ended = j.lock.endedAt(failure)
	}
	spec.CompletedAt = new(v1alpha1.NewTime(ended))
	spec.Outcome = j.outcome()
	j.summary.Record(&spec)
	if failure != nil {
		spec.Outcome, spec.Message = v1alpha1.ScanFailed, FailedMessage(failure)
	}
	spec.LastChange = j.lastChange
	spec.Warnings = KeptWarnings(j.summary.AllWarnings(false))
	if err := j.record.Apply(ctx, spec); err != nil {
		return fmt.Errorf("record the end of scan %s: %w", j.scan.scanID, err)
	}
	j.ended, j.summary.Finished = true, failure == nil
	return nil
}

// fail records the outcome Failed for every recorded scan without an outcome, and returns the cause. If the last write
// of a scan seemed to fail but was carried out, the scan keeps that outcome. If all scans have one, fail returns nil.
func (im *Importer) fail(ctx context.Context, jobs []*job, cause error) error {
	if cause == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), EndTimeout)
	defer cancel()
	errs := []error{cause}
	complete := true
	for _, j := range jobs {
		if j.ended {
			continue
		}
		var err error
		if j.recorded {
			err = im.end(ctx, j, cause)
		}
		if apierrors.IsInvalid(err) && im.hasEnded(ctx, j) {
			j.summary.Finished = true
			continue
		}
		if _, gone := errors.AsType[*RefusedError](err); gone { // the Scan was deleted with its project
			err = nil
		}
		complete = false
		errs = append(errs, err)
	}
	if complete {
		return nil
	}
	return errors.Join(errs...)
}

// hasEnded reports whether the stored scan has an outcome.
func (im *Importer) hasEnded(ctx context.Context, j *job) bool {
	scan, _, err := Read[v1alpha1.Scan](ctx, im.client, im.target.Namespace, j.scan.scanID)
	return err == nil && scan != nil && scan.Spec.CompletedAt != nil
}

// FailedImport begins the message of a Scan whose import failed.
const FailedImport = "the import failed: "

// FailedMessage returns the message of a Scan whose import failed.
func FailedMessage(cause error) string {
	return cut(paragraph(FailedImport+cause.Error()), maxScanMessage)
}

// Refuse records a failed Scan of the batch with the reason, and writes nothing else. The Scan names no Lease, because
// no import ran.
func (im *Importer) Refuse(ctx context.Context, b *Batch, reason error) error {
	j := &job{Batch: b, project: im.target.of(b), summary: newSummary(b), scan: scanContext{
		scanID: NewScanName(), startedAt: b.Started(),
	}}
	j.record = im.scanRecord(j)
	j.summary.Provisioned = im.options.Found.Provisioned
	if err := im.end(ctx, j, reason); err != nil {
		return err
	}
	im.options.OnRecorded(b, j.scan.scanID)
	return nil
}

// reporting calls do and records the job's progress at intervals.
func (im *Importer) reporting(ctx context.Context, j *job, do func() error) error {
	return Reporting(ctx, im.options.ProgressInterval, &j.progress, do, func(ctx context.Context) error {
		return j.record.Apply(ctx, im.runningScan(j))
	})
}

// Reporting calls do, and calls record at each interval if there was progress. A failed record stops nothing: the next
// one, or the end, replaces it. After a panic in record, there is no further one. Panics are returned as errors, so
// that the end can be recorded. Reporting returns only after the last record has finished, because the API server
// refuses one after the end.
func Reporting(ctx context.Context, interval time.Duration, progress *Progress, do func() error,
	record func(ctx context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	reported := make(chan error, 1)
	go func() {
		reported <- safely.Func(func() error { reportEvery(ctx, interval, progress, record); return nil })()
	}()
	err := safely.Func(do)()
	stop()
	return errors.Join(err, <-reported)
}

func reportEvery(ctx context.Context, interval time.Duration, progress *Progress,
	record func(ctx context.Context) error) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var recorded v1alpha1.ScanProgress
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := progress.Read()
		if now == nil || *now == recorded {
			continue
		}
		attempt, cancel := context.WithTimeout(ctx, interval)
		if record(attempt) == nil {
			recorded = *now
		}
		cancel()
	}
}

// runningScan returns the spec of a running scan.
func (im *Importer) runningScan(j *job) v1alpha1.ScanSpec {
	spec := j.ScanSpec(im.target.Repository, j.project)
	spec.StartedAt, spec.Progress = j.scan.startedAt, j.progress.Read()
	spec.Upload, spec.ImportedBy = im.options.Upload, im.options.ImportedBy
	if j.lock != nil {
		spec.Lease = new(j.lock.named())
	}
	return spec
}

// ScanSpec returns the part of a Scan's spec that describes the batch.
func (b *Batch) ScanSpec(repository, project string) v1alpha1.ScanSpec {
	return v1alpha1.ScanSpec{
		RepositoryRef: v1alpha1.RepositoryReference{Name: v1alpha1.ResourceName(repository)},
		ProjectRef:    v1alpha1.ProjectReference{Name: v1alpha1.ResourceName(project)},
		Tool:          b.Tool, ToolVersion: b.ToolVersion, Category: b.Category, Analysis: b.Analysis, Commit: b.Commit,
	}
}

// ScanRecord writes the record of one scan. Only one write may run at a time.
type ScanRecord struct {
	Client *Client
	// Key names the Scan.
	Key client.ObjectKey
	// Importer is the importing program; empty if unknown.
	Importer string
	// Check returns an error if the project was deleted, and its Scans with it.
	Check func(ctx context.Context) error
	// uid is the UID that the last write returned; empty before the first.
	uid types.UID
}

// scanRecord returns the record of the job's scan.
func (im *Importer) scanRecord(j *job) ScanRecord {
	key := client.ObjectKey{Namespace: im.target.Namespace, Name: j.scan.scanID}
	return ScanRecord{Client: im.client, Key: key, Importer: im.options.Importer, Check: j.parent.check}
}

// Apply writes the whole record. A Scan that was deleted since the last write is created again, unless Check returns an
// error.
func (r *ScanRecord) Apply(ctx context.Context, spec v1alpha1.ScanSpec) error {
	err := r.write(ctx, r.uid, spec)
	if r.uid == "" || !kube.IsConflict(err) {
		return err
	}
	if err := r.Check(ctx); err != nil {
		return err
	}
	return r.write(ctx, "", spec)
}

// write writes the whole record. Given a UID, it fails with a conflict if that Scan was deleted.
func (r *ScanRecord) write(ctx context.Context, uid types.UID, spec v1alpha1.ScanSpec) error {
	meta := appliedMeta{Namespace: r.Key.Namespace, Name: r.Key.Name, UID: uid}
	if r.Importer != "" {
		meta.Annotations = map[string]string{v1alpha1.ImporterAnnotation: r.Importer}
	}
	if why := (&v1alpha1.Scan{Spec: spec}).Uncounted(); why != "" {
		meta.Labels = map[string]string{v1alpha1.UncountedLabel: why}
	}
	after, err := apply(ctx, r.Client, fieldManager(spec.Tool), "Scan", meta, spec)
	if err == nil {
		r.uid = after.UID
	}
	return err
}

// otherReasons replaces reasons for which a Scan has no room.
const otherReasons = "other reasons"

// Record writes the counts, skip reasons and message of a completed import into the spec.
func (s *Summary) Record(spec *v1alpha1.ScanSpec) {
	spec.Counts, spec.SkippedBecause, spec.Message = s.Counts(), skips(s.SkippedBecause), s.message()
}

// skips returns the reasons that a Scan stores, the most frequent first.
func skips(because map[string]int) []v1alpha1.ScanSkip {
	reasons := slices.SortedFunc(maps.Keys(because), func(a, b string) int {
		return cmp.Or(cmp.Compare(because[b], because[a]), cmp.Compare(a, b))
	})
	var out []v1alpha1.ScanSkip
	for i, reason := range reasons {
		count := int32(because[reason]) //nolint:gosec // bounded by sarif.Limits
		switch {
		case i < v1alpha1.MaxScanSkips-1 || len(reasons) == v1alpha1.MaxScanSkips:
			out = append(out, v1alpha1.ScanSkip{Reason: cut(paragraph(reason), v1alpha1.MaxScanSkipReason), Count: count})
		case i == v1alpha1.MaxScanSkips-1:
			out = append(out, v1alpha1.ScanSkip{Reason: otherReasons, Count: count})
		default:
			out[len(out)-1].Count += count
		}
	}
	return out
}
