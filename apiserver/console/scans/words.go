package scans

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
	"github.com/appsec-dev/findings-operator/client"
)

func status(s client.Scan) client.ScanStatus { return ptr.Deref(s.Status, "") }

func running(s client.Scan) bool { return status(s) == client.ScanStatusRunning }

// tones are the colours for the scans' states.
var tones = map[client.ScanStatus]ui.Tone{
	client.ScanStatusRunning:   ui.Going,
	client.ScanStatusCompleted: ui.Good,
	client.ScanStatusFailed:    ui.Bad,
}

// title returns the name of a scan.
func title(s client.Scan) string { return s.Tool + " over " + s.ProjectId }

// kind distinguishes scans of one tool.
func kind(s client.Scan) string {
	if s.Analysis == "" {
		return string(s.Category)
	}
	return string(s.Category) + ", " + s.Analysis
}

// count returns a number of results, or "" before the end.
func count(s client.Scan, results int32) string {
	if running(s) {
		return ""
	}
	return ui.Thousands(results)
}

// doing describes the progress of a running scan.
func doing(s client.Scan) string {
	if s.Progress.Total == 0 {
		return "Comparing with what is known"
	}
	return ui.Thousands(s.Progress.Done) + " of " + ui.Thousands(s.Progress.Total) + " changes stored"
}

// counts returns the results by outcome. A scan of a pull request has issues instead of findings, and closes none.
func counts(s client.Scan) []ui.Figure {
	figures := []ui.Figure{
		{Name: "New", Count: s.Counts.Created},
		{Name: "Changed", Count: s.Counts.Updated},
		{Name: "Closed", Count: s.Counts.Closed},
		{Name: "Open again", Count: s.Counts.Reopened},
		{Name: "Unchanged", Count: s.Counts.Unchanged},
		{Name: "Skipped", Count: s.Counts.Skipped},
	}
	if s.ReviewId == "" {
		return figures
	}
	figures[1].Name = "Seen again"
	return append(figures[:2], figures[3:]...)
}

// facts returns the other facts about the scan.
func facts(s client.Scan) []ui.Fact {
	tool := s.Tool
	if s.ToolVersion != "" {
		tool += " " + s.ToolVersion
	}
	return []ui.Fact{
		{Name: "Repository", Value: s.RepoId, Link: of("repo_id", s.RepoId)},
		{Name: "Project", Value: s.ProjectId, Link: of("repo_id", s.RepoId, "project_id", s.ProjectId)},
		{Name: "Tool", Value: tool},
		{Name: "Category", Value: string(s.Category)},
		{Name: "Analysis", Value: s.Analysis},
		{Name: "Commit", Value: s.CommitHash},
		{Name: "Pull request", Value: s.ReviewId, Link: page.Of("/console/reviews", s.ReviewId)},
		{Name: "Upload", Value: s.UploadId, Link: of("upload_id", s.UploadId)},
		{Name: "Imported by", Value: importedBy(s)},
		{Name: "Scan started", At: s.StartedAt},
		{Name: "Import began", At: s.CreatedAt},
		{Name: "Import ended", At: s.CompletedAt},
		{Name: "States recorded", At: s.SettledAt},
		{Name: "Took", Value: took(s)},
		{Name: "Scan", Value: s.Id},
	}
}

// importedBy returns the API key that uploaded the scan. The REST API names no other importer.
func importedBy(s client.Scan) string { return cmp.Or(s.ImportedBy, "kubectl findings") }

// took returns the duration of the import.
func took(s client.Scan) string {
	if s.CreatedAt == nil || s.CompletedAt == nil {
		return ""
	}
	return max(0, s.CompletedAt.Sub(*s.CreatedAt)).Round(time.Second).String()
}

// findings returns the address of the list of the project's findings by the scan's tool.
func findings(s client.Scan) string {
	return page.Address("/console/findings", nil, "repo_id", s.RepoId, "project_id", s.ProjectId, "tool", s.Tool)
}

// remarks returns the importer's message for a completed scan, without the skipped results, which the page shows
// separately. The page shows the whole message of a failed scan.
func remarks(s client.Scan) string {
	if status(s) == client.ScanStatusFailed {
		return ""
	}
	parts := strings.Split(s.Message, "; ")
	for _, skip := range s.SkippedBecause {
		known := strconv.Itoa(int(skip.Count)) + " skipped: " + skip.Reason
		parts = slices.DeleteFunc(parts, func(part string) bool { return part == known })
	}
	return strings.Join(parts, "; ")
}

// refused reports whether the importer refused the scan, which a user may override.
func refused(s client.Scan) bool {
	return slices.ContainsFunc(next(s), func(step string) bool { return strings.Contains(step, "--force") })
}

// state returns the scan's state in one word.
func state(s client.Scan) string {
	if refused(s) {
		return "refused"
	}
	return string(status(s))
}
