package render

import (
	"cmp"
	"slices"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
)

// Scan returns the shown form of a scan.
func Scan(s *v1alpha1.Scan) openapi.Scan {
	status := ScanStatus(s)
	return openapi.Scan{
		Id:             s.Name,
		RepoId:         string(s.Spec.RepositoryRef.Name),
		ProjectId:      string(s.Spec.ProjectRef.Name),
		Tool:           s.Spec.Tool,
		ToolVersion:    s.Spec.ToolVersion,
		Category:       openapi.FindingCategory(s.Spec.Category),
		Analysis:       s.Spec.Analysis,
		CommitHash:     s.Spec.Commit,
		UploadId:       uploadID(s),
		ReviewId:       valueOf(s.Spec.Review).Name,
		ImportedBy:     s.Spec.ImportedBy,
		Status:         &status,
		Message:        scanMessage(s, status),
		Progress:       openapi.ScanProgress(valueOf(s.Spec.Progress)),
		Counts:         ScanCounts(s.Spec.Counts),
		SkippedBecause: scanSkips(s.Spec.SkippedBecause),
		StartedAt:      optionalSecond(&s.Spec.StartedAt),
		CompletedAt:    optionalSecond(s.Spec.CompletedAt),
		SettledAt:      optionalSecond(s.SettledAt()),
		CreatedAt:      optionalSecond(&v1alpha1.Time{Time: s.CreationTimestamp.Time}),
	}
}

// ScanJSON renders a scan. The same scan always gives the same bytes.
func ScanJSON(s *v1alpha1.Scan) ([]byte, error) {
	return encodeNamed("scan", s.Name, Scan(s))
}

// ScanStatus returns the scan's progress: the outcome that its importer recorded, even before a controller has
// observed it; without an outcome, the state recorded by the controllers.
func ScanStatus(s *v1alpha1.Scan) openapi.ScanStatus {
	switch {
	case s.Spec.Outcome == v1alpha1.ScanSucceeded:
		return openapi.ScanStatusCompleted
	case s.Spec.Outcome == v1alpha1.ScanFailed, s.Status.Phase == v1alpha1.ScanPhaseFailed:
		return openapi.ScanStatusFailed
	default:
		return openapi.ScanStatusRunning
	}
}

// scanMessage returns the importer's message or, for an abandoned scan, the controllers'.
func scanMessage(s *v1alpha1.Scan, status openapi.ScanStatus) string {
	if s.Spec.Message != "" || status != openapi.ScanStatusFailed {
		return s.Spec.Message
	}
	return v1alpha1.StalledMessage(s.Status.Conditions)
}

// ScanCounts returns the counts, which are all 0 before the end of a scan.
func ScanCounts(counts *v1alpha1.ScanCounts) openapi.ScanCounts {
	c := valueOf(counts)
	return openapi.ScanCounts{
		Created: c.Created, Updated: c.Updated, Closed: c.Closed,
		Reopened: c.Reopened, Unchanged: c.Unchanged, Skipped: c.Skipped,
	}
}

// scanSkips returns the reasons why results were skipped.
func scanSkips(skips []v1alpha1.ScanSkip) []openapi.ScanSkip {
	return convert(skips, func(skip v1alpha1.ScanSkip) openapi.ScanSkip {
		return openapi.ScanSkip{Reason: skip.Reason, Count: skip.Count}
	})
}

// uploadID returns the id of the upload that a scan belongs to, "" if it was not uploaded.
func uploadID(s *v1alpha1.Scan) string { return valueOf(s.Spec.Upload).ID }

// Upload returns the shown form of an upload. All its data is in its scans, of which there must be at least
// one.
func Upload(scans []*v1alpha1.Scan) openapi.Upload {
	scans = slices.SortedFunc(slices.Values(scans), func(a, b *v1alpha1.Scan) int {
		return cmp.Or(cmp.Compare(a.Spec.Tool, b.Spec.Tool), cmp.Compare(a.Spec.Category, b.Spec.Category),
			cmp.Compare(a.Spec.Analysis, b.Spec.Analysis), cmp.Compare(a.Name, b.Name))
	})
	warnings := []string{}
	for _, s := range scans {
		warnings = append(warnings, s.Spec.Warnings...)
	}
	project := string(scans[0].Spec.ProjectRef.Name)
	if slices.ContainsFunc(scans, func(s *v1alpha1.Scan) bool { return string(s.Spec.ProjectRef.Name) != project }) {
		project = ""
	}
	return openapi.Upload{
		Id:        uploadID(scans[0]),
		Status:    uploadStatus(scans),
		RepoId:    string(scans[0].Spec.RepositoryRef.Name),
		ProjectId: project,
		ScanCount: valueOf(scans[0].Spec.Upload).Scans,
		Scans:     convert(scans, Scan),
		Reviews:   uploadReviews(scans),
		Warnings:  warnings,
		Changes:   []openapi.UploadChange{},
	}
}

// uploadStatus returns the status of an upload. All Scans of an upload are created before the first of them ends, so a
// missing one was removed later. Then only a failure among the remaining ones determines how the upload ended;
// otherwise its status is unknown, and nil.
func uploadStatus(scans []*v1alpha1.Scan) *openapi.ScanStatus {
	status := openapi.ScanStatusCompleted
	for _, s := range scans {
		switch ScanStatus(s) {
		case openapi.ScanStatusRunning:
			return new(openapi.ScanStatusRunning)
		case openapi.ScanStatusFailed:
			status = openapi.ScanStatusFailed
		case openapi.ScanStatusCompleted:
		}
	}
	if status == openapi.ScanStatusCompleted && len(scans) < int(valueOf(scans[0].Spec.Upload).Scans) {
		return nil
	}
	return &status
}

// UploadJSON renders an upload.
func UploadJSON(upload openapi.Upload) ([]byte, error) {
	return encodeNamed("upload", upload.Id, upload)
}
