package uploads

import (
	"fmt"
	"slices"
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/reviewimport"
)

// preview returns the result of a dry run: what would be stored, although nothing is.
func preview(j *job) *openapi.Upload {
	upload := &openapi.Upload{
		DryRun: true, RepoId: j.Repository, ProjectId: j.Project,
		ScanCount: int32(len(j.batches)), //nolint:gosec // bounded by maxScans
		Scans:     []openapi.Scan{}, Reviews: []openapi.UploadReview{},
		Warnings: j.warnings(), Changes: []openapi.UploadChange{},
	}
	if j.reviewed != nil {
		previewReview(upload, j)
		return upload
	}
	for i, summary := range j.summaries {
		upload.Scans = append(upload.Scans, previewScan(j, i, summary))
		previewChanges(upload, summary.Tool, summary.Changes, j.Allows(v1alpha1.ScopeFindingsRead))
		upload.UnlistedChanges += int32(summary.Unlisted) //nolint:gosec // bounded by sarif.Limits
	}
	return upload
}

// previewReview adds the result that the review of a pull request would have.
func previewReview(upload *openapi.Upload, j *job) {
	upload.Reviews = append(upload.Reviews, render.UploadReview(j.reviewed))
	for i := range j.batches {
		shown := previewScan(j, i, j.reviewed.Share(i))
		shown.ReviewId, shown.CommitHash = j.reviewed.Review, j.reviewed.Commit
		upload.Scans = append(upload.Scans, shown)
	}
	previewChanges(upload, "", j.reviewed.Changes, j.Allows(v1alpha1.ScopeReviewsRead))
	all := j.reviewed.Created + j.reviewed.Reopened + j.reviewed.Seen + j.reviewed.Resolved
	upload.UnlistedChanges += int32(all - len(j.reviewed.Changes)) //nolint:gosec // bounded by sarif.Limits
}

// reportedActions are the actions on what the file reports.
var reportedActions = []importer.Action{
	importer.ActionCreate, importer.ActionUpdate, importer.ActionReopen, reviewimport.ActionSee,
}

// previewChanges adds the changes that a tool's scan, or a review, would make. A key that may not read findings gets
// only the changes to what its file reports, or an empty file would show it all open findings. It does not learn either
// how they were recognised, because that quotes the stored finding.
func previewChanges(upload *openapi.Upload, tool string, changes []importer.Change, mayRead bool) {
	for _, change := range changes {
		if !mayRead && !slices.Contains(reportedActions, change.Action) {
			upload.UnlistedChanges++
			continue
		}
		if !mayRead {
			change.Because = ""
		}
		upload.Changes = append(upload.Changes, openapi.UploadChange{
			Tool: tool, Action: string(change.Action), FindingId: change.Name,
			Severity: openapi.Severity(change.Severity), Title: change.Title, Place: change.Place, Because: change.Because,
		})
	}
}

func previewScan(j *job, i int, summary *importer.Summary) openapi.Scan {
	batch := j.batches[i]
	scan := &v1alpha1.Scan{Spec: batch.ScanSpec(j.Repository, j.Project)}
	scan.Spec.StartedAt = v1alpha1.NewTime(batch.StartedAt)
	scan.Spec.ImportedBy = j.Author()
	summary.Record(&scan.Spec)
	shown := render.Scan(scan)
	shown.Status = nil // nothing is stored
	return shown
}

// warnings returns the warnings of a dry run.
func (j *job) warnings() []string {
	out := []string{}
	if j.reviewed != nil {
		out = append(out, j.reviewed.Warnings...)
	}
	for _, summary := range j.summaries {
		for _, reason := range summary.Refused {
			out = append(out, fmt.Sprintf("%s: the import would be refused: %s", summary.Name(), reason))
		}
		out = append(out, summary.AllWarnings(true)...)
		if len(summary.Incomplete) > 0 {
			out = append(out, importer.OneLine(fmt.Sprintf("%s: the scan would be recorded as failed, and close nothing: %s",
				summary.Name(), strings.Join(summary.Incomplete, "; ")), v1alpha1.MaxScanWarning))
		}
	}
	return out
}
