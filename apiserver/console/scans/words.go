package scans

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
	"github.com/appsec-dev/findings-operator/client"
)

func status(s client.Scan) client.ScanStatus {
	if s.Status == nil {
		return ""
	}
	return *s.Status
}

func running(s client.Scan) bool { return status(s) == client.ScanStatusRunning }

// tone is the colour of a scan's state.
func tone(s client.Scan) ui.Tone {
	switch status(s) {
	case client.ScanStatusRunning:
		return ui.Going
	case client.ScanStatusCompleted:
		return ui.Good
	case client.ScanStatusFailed:
		return ui.Bad
	}
	return ui.Plain
}

// title is what a scan is called among others.
func title(s client.Scan) string { return s.Tool + " over " + s.ProjectId }

// kind is what tells scans of one tool apart.
func kind(s client.Scan) string {
	if s.Analysis == "" {
		return string(s.Category)
	}
	return string(s.Category) + ", " + s.Analysis
}

// count is how many results there were, empty before the end.
func count(s client.Scan, results int32) string {
	if running(s) {
		return ""
	}
	return ui.Thousands(results)
}

// doing says what a running scan is at.
func doing(s client.Scan) string {
	if s.Progress.Total == 0 {
		return "Comparing with what is known"
	}
	return ui.Thousands(s.Progress.Done) + " of " + ui.Thousands(s.Progress.Total) + " changes stored"
}

// counts are the results by what became of them. A scan of a pull request has issues in place of findings, and closes
// none.
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

// facts are what else is known of the scan.
func facts(s client.Scan) []ui.Fact {
	tool := s.Tool
	if s.ToolVersion != "" {
		tool += " " + s.ToolVersion
	}
	lines := []ui.Fact{
		{Name: "Repository", Value: s.RepoId, Link: of("repo_id", s.RepoId)},
		{Name: "Project", Value: s.ProjectId, Link: of("repo_id", s.RepoId, "project_id", s.ProjectId)},
		{Name: "Tool", Value: tool},
		{Name: "Category", Value: string(s.Category)},
		{Name: "Analysis", Value: s.Analysis},
		{Name: "Commit", Value: s.CommitHash},
		{Name: "Pull request", Value: s.ReviewId, Link: "/console/reviews/" + s.ReviewId},
		{Name: "Upload", Value: s.UploadId, Link: of("upload_id", s.UploadId)},
		{Name: "Imported by", Value: importedBy(s)},
		{Name: "Scan started", At: s.StartedAt},
		{Name: "Import began", At: s.CreatedAt},
		{Name: "Import ended", At: s.CompletedAt},
		{Name: "Took", Value: took(s)},
		{Name: "Scan", Value: s.Id},
	}
	return lines
}

// importedBy is the API key that uploaded the scan. The REST API knows of no other importer.
func importedBy(s client.Scan) string {
	if s.ImportedBy == "" {
		return "kubectl findings"
	}
	return s.ImportedBy
}

// took is how long the import took.
func took(s client.Scan) string {
	if s.CreatedAt == nil || s.CompletedAt == nil {
		return ""
	}
	return s.CompletedAt.Sub(*s.CreatedAt).Round(time.Second).String()
}

// findings is the list of those that the scan's project has.
func findings(s client.Scan) string {
	return page.Address("/console/findings", nil, "repo_id", s.RepoId, "project_id", s.ProjectId, "tool", s.Tool)
}

// remarks are what the importer says of a scan that is completed, but for what was skipped: the page shows that apart.
func remarks(s client.Scan) string {
	said := strings.Split(s.Message, "; ")
	for _, skip := range s.SkippedBecause {
		known := strconv.Itoa(int(skip.Count)) + " skipped: " + skip.Reason
		said = slices.DeleteFunc(said, func(part string) bool { return part == known })
	}
	return strings.Join(said, "; ")
}

// overrides are flags that messages of refusals name, each with the parameter of an upload that does the same.
var overrides = []struct{ flag, parameter string }{
	{"--dry-run", "dry_run=true"},
	{"--force", "force=true"},
	{"--analysis", "analysis"},
	{"--started-at", "started_at"},
}

// next says what to do about a scan that failed, step by step. The message says why; it is the importer's, and speaks
// of the flags of kubectl findings import.
func next(s client.Scan) []string {
	if status(s) != client.ScanStatusFailed {
		return nil
	}
	says := func(words string) bool { return strings.Contains(s.Message, words) }
	switch {
	case says("more than half"):
		return append([]string{
			"Look whether the scanner ran over everything: a wrong folder or configuration finds little, and then the findings it misses would be closed.",
			"Look which ones would be closed: import the same file with --dry-run. It stores nothing.",
			"If they are repaired indeed, import the file with --force.",
		}, forUploads(s)...)
	case says("before the last completed"):
		return append([]string{
			"Usually there is nothing to do: a newer scan is imported already, and an older one would open again what was repaired since.",
			"If the start of the scan is wrong in the file, give the real one with --started-at. To import it as it is, use --force.",
		}, forUploads(s)...)
	case says("--analysis"):
		return append([]string{
			"Have each run of the scanner use the same analysis: give the known one with --analysis.",
			"If it is an analysis of its own, import it once with --force.",
		}, forUploads(s)...)
	case says("import has died"), says("No end was recorded"), says("stopped before its end"):
		return []string{
			"Import the same file again: it finishes what was begun. What is stored already is found unchanged, and no decision is lost.",
			"If it ends like this again, look at the log of the job, or tell whoever runs the service.",
		}
	}
	return append([]string{
		"Mend what the message names.",
		"Import the same file again. What is stored already is found unchanged, and no decision is lost.",
	}, forUploads(s)...)
}

// forUploads says how the flags that the message names are given in an upload.
func forUploads(s client.Scan) []string {
	if s.UploadId == "" {
		return nil
	}
	var words []string
	for _, o := range overrides {
		if strings.Contains(s.Message, o.flag) {
			words = append(words, o.parameter+" for "+o.flag)
		}
	}
	if len(words) == 0 {
		return nil
	}
	return []string{"The scan was uploaded over REST: there, give the parameter " + strings.Join(words, ", ") + "."}
}

// refused reports whether the scan was not imported because the importer would not, which somebody may overrule.
func refused(s client.Scan) bool {
	return status(s) == client.ScanStatusFailed && strings.Contains(s.Message, "--force")
}

// state is the scan's, in a word.
func state(s client.Scan) string {
	if refused(s) {
		return "refused"
	}
	return string(status(s))
}
