package reviewimport

import (
	"context"
	"errors"
	"fmt"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/apitime"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
)

// Record makes a review create a Scan for each batch. The Scans identify an upload, and their Lease shows whether the
// import of the review has died: then they are reported as failed.
type Record struct {
	// Upload is the upload that the Scans came with, and ImportedBy the key that authenticated it.
	Upload     v1alpha1.ScanUpload
	ImportedBy string
	// Project is named by the Scans if the pull request is compared without one.
	Project string
	// Importer is the importing program.
	Importer string
	// Gate is the requested gate; empty: none.
	Gate Gate
	// OnRecorded is called once all Scans exist, which from then on show the progress and outcome of the review.
	OnRecorded func()
}

// recorder writes the Scans of a review; if nil, none.
type recorder struct {
	im      *Importer
	commit  string
	batches []*importer.Batch
	lease   v1alpha1.ScanLease
	// scans and startedAt hold, by batch, the recorded Scans and their starts.
	scans     []*importer.ScanRecord
	startedAt []v1alpha1.Time
}

func (im *Importer) recorder(commit *Commit, batches []*importer.Batch, lease v1alpha1.ScanLease) *recorder {
	if im.options.Record == nil || commit == nil {
		return nil
	}
	return &recorder{im: im, commit: commit.SHA, batches: batches, lease: lease}
}

// during records that the scans run, calls do, and records how they ended. They succeed only after do has stored
// everything. The end is recorded even if ctx has ended.
func (r *recorder) during(ctx context.Context, s *Summary, do func() error) error {
	if r == nil {
		return do()
	}
	err := r.begin(ctx)
	if err == nil {
		err = importer.Reporting(ctx, importer.DefaultProgressInterval, &r.im.progress, do, r.update)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), importer.EndTimeout)
	defer cancel()
	end := r.end(ctx, func(i int, spec *v1alpha1.ScanSpec) {
		if err != nil {
			spec.Outcome, spec.Message = v1alpha1.ScanFailed, importer.FailedMessage(err)
			return
		}
		s.succeeded(i, spec)
	})
	if _, gone := errors.AsType[*importer.RefusedError](end); gone && err != nil {
		return err // Scans that were deleted with their project need no end
	}
	return errors.Join(err, end)
}

// succeeded sets the outcome of a batch's scan.
func (s *Summary) succeeded(i int, spec *v1alpha1.ScanSpec) {
	spec.Outcome, spec.Review.Result = v1alpha1.ScanSucceeded, s.result()
	s.shares[i].Record(spec)
	if i == 0 { // the warnings are about the whole review
		spec.Warnings = importer.KeptWarnings(s.Warnings)
		spec.Review.Result.ScannerWarnings = count(len(s.fromScanners) + s.moreFromScanners)
	}
}

// begin records that the scans run. Each is recorded only if the repository and the project still exist.
func (r *recorder) begin(ctx context.Context) error {
	for i, b := range r.batches {
		if err := r.im.checkParents(ctx); err != nil {
			return err
		}
		scan := &importer.ScanRecord{
			Client: r.im.client, Key: r.im.key(importer.NewScanName()), Importer: r.im.options.Record.Importer,
			Check: r.im.checkParents,
		}
		r.startedAt = append(r.startedAt, b.Started())
		create := func(ctx context.Context) error { return scan.Apply(ctx, r.spec(i)) }
		if err := importer.FinishWrite(ctx, create); err != nil {
			return fmt.Errorf("record the scan of %s: %w", b.Tool, err)
		}
		r.scans = append(r.scans, scan)
	}
	r.im.options.Record.OnRecorded()
	return nil
}

// update records the progress of the review.
func (r *recorder) update(ctx context.Context) error {
	for i, scan := range r.scans {
		if err := scan.Apply(ctx, r.spec(i)); err != nil {
			return err
		}
	}
	return nil
}

// end writes the outcome of each scan. A failure does not stop the others, unless the scan was deleted with its
// project, and so the others: then the error contains a RefusedError.
func (r *recorder) end(ctx context.Context, outcome func(i int, spec *v1alpha1.ScanSpec)) error {
	var errs []error
	for i, scan := range r.scans {
		spec := r.spec(i)
		spec.CompletedAt = new(v1alpha1.NewTime(apitime.Now()))
		outcome(i, &spec)
		err := scan.Apply(ctx, spec)
		if _, gone := errors.AsType[*importer.RefusedError](err); gone {
			return errors.Join(append(errs, err)...)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("record the end of scan %s: %w", scan.Key.Name, err))
		}
	}
	return errors.Join(errs...)
}

// spec returns the spec of the batch's scan while it runs.
func (r *recorder) spec(i int) v1alpha1.ScanSpec {
	record, pr := r.im.options.Record, &r.im.pr
	spec := r.batches[i].ScanSpec(pr.Repository, r.im.project())
	spec.Commit, spec.StartedAt, spec.Progress = r.commit, r.startedAt[i], r.im.progress.Read()
	spec.Upload, spec.ImportedBy, spec.Lease = &record.Upload, record.ImportedBy, &r.lease
	spec.Review = &v1alpha1.ScanReview{
		Name: Name(pr.Repository, pr.Number), PRNumber: pr.Number, FailOn: string(record.Gate),
	}
	return spec
}

func count(n int) int32 { return int32(n) } //nolint:gosec // bounded by sarif.Limits

// result returns the part of the summary that each Scan stores.
func (s *Summary) result() *v1alpha1.ScanReviewResult {
	r := &v1alpha1.ScanReviewResult{
		Created: count(s.Created), Reopened: count(s.Reopened), Seen: count(s.Seen), Unchanged: count(s.Unchanged),
		Resolved: count(s.Resolved), Skipped: count(s.Skipped),
		OpenHigh: count(s.OpenHigh), OpenMedium: count(s.OpenMedium), OpenLow: count(s.OpenLow),
	}
	if base := s.Base; base != nil {
		r.Known, r.InDoubt, r.Fixed = count(base.Known), count(base.InDoubt), count(base.Fixed)
		r.Unsuppressed, r.Replaced = count(base.Unsuppressed), count(base.Replaced)
		for _, scan := range base.Unscanned[:min(len(base.Unscanned), v1alpha1.MaxScanReviewUnscanned)] {
			r.Unscanned = append(r.Unscanned, importer.OneLine(scan, v1alpha1.MaxScanReviewScan))
		}
	}
	for _, issue := range s.Issues[:min(len(s.Issues), v1alpha1.MaxScanReviewIssues)] {
		r.Issues = append(r.Issues, v1alpha1.ScanReviewIssue{
			Name: issue.Name, Severity: issue.Severity, New: issue.New,
			Title: importer.OneLine(issue.Title, v1alpha1.MaxScanReviewTitle),
			Place: importer.OneLine(issue.Place, v1alpha1.MaxScanReviewPlace),
		})
	}
	return r
}

// Recorded restores the Summary of a pull request's upload, with its gate's verdict, from its Scans. It has no examples
// and notes, only the warnings that the comment shows, and at most v1alpha1.MaxScanReviewIssues issues. An unfinished
// review has neither a result nor a verdict. scans must not be empty, and all must belong to the upload.
func Recorded(scans []*v1alpha1.Scan) *Summary {
	spec := &scans[0].Spec
	s := &Summary{
		Review: spec.Review.Name, Repository: string(spec.RepositoryRef.Name), PRNumber: spec.Review.PRNumber,
		Commit: spec.Commit, SkippedBecause: map[string]int{},
	}
	for _, scan := range scans {
		if scan.Spec.Outcome != v1alpha1.ScanSucceeded {
			return s
		}
		for _, skip := range scan.Spec.SkippedBecause {
			s.SkippedBecause[skip.Reason] += int(skip.Count)
		}
		if r := scan.Spec.Review; r != nil && r.Result != nil && r.Result.ScannerWarnings > 0 { // one scan has them
			s.keepScannerWarnings(scan.Spec.Warnings, int(r.Result.ScannerWarnings))
		}
	}
	s.restore(spec.Review.Result)
	if spec.Review.FailOn != "" {
		s.Gate = Gate(spec.Review.FailOn).Judge(s)
	}
	return s
}

// restore copies the stored result into the summary.
func (s *Summary) restore(r *v1alpha1.ScanReviewResult) {
	if r == nil {
		return
	}
	s.Created, s.Reopened, s.Seen, s.Unchanged = int(r.Created), int(r.Reopened), int(r.Seen), int(r.Unchanged)
	s.Resolved, s.Skipped = int(r.Resolved), int(r.Skipped)
	s.OpenHigh, s.OpenMedium, s.OpenLow = int(r.OpenHigh), int(r.OpenMedium), int(r.OpenLow)
	s.Open = s.OpenHigh + s.OpenMedium + s.OpenLow
	s.Base = &BaseSummary{
		Known: int(r.Known), InDoubt: int(r.InDoubt), Unsuppressed: int(r.Unsuppressed),
		Replaced: int(r.Replaced), Fixed: int(r.Fixed), Unscanned: r.Unscanned,
	}
	for _, issue := range r.Issues {
		s.Issues = append(s.Issues, Issue{
			Name: issue.Name, Severity: issue.Severity, Title: issue.Title, Place: issue.Place, New: issue.New,
		})
	}
}

// Share returns the part of the summary that belongs to the batch with that index: its issues that were created,
// reopened, seen again (as updated) and unchanged, which includes findings of the base, and what was skipped.
func (s *Summary) Share(batch int) *importer.Summary { return s.shares[batch] }
