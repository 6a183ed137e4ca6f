package scans

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a-h/templ"

	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
	"github.com/appsec-dev/findings-operator/client"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/pagetest"
)

func scan(status client.ScanStatus, message string) client.Scan {
	return client.Scan{Status: &status, Message: message}
}

// Messages of the importer about scans that it refused or gave up.
const (
	closing = "the import failed: it would close 40 of 60 open findings, which is more than half: use --dry-run " +
		"(over REST dry_run=true, with a key that has findings:read) to see which ones, check that the scanner " +
		"covered everything, then use --force (over REST force=true)"
	old = "the import failed: the scan started at 2026-03-01T12:00:00Z, before the last completed one (scan s-1 of " +
		"2026-03-02T12:00:00Z): import a newer one, give its real start with --started-at (over REST started_at), " +
		"or use --force (over REST force=true)"
	renamed = "the import failed: automationDetails.id names the analysis \"run-7\", which is new, and \"run-6\" is " +
		"known. Use --analysis \"run-6\" (over REST analysis) in every import; if this is a separate analysis, import it " +
		"once with --analysis \"run-7\" or --force (over REST force=true)"
	renamedOne = "the import failed: 25 of 25 results are new in the analysis \"run-7\" and are open findings in the " +
		"analysis \"run-6\": it seems to be another name of the same scan. If so, correct automationDetails.id of these " +
		"runs, so that it names the analysis \"run-6\" in every import (--analysis would put all runs of the files into " +
		"one analysis); if it is a separate analysis, import it once with --force (over REST force=true)"
	refusing = "the import failed: the API server refuses every change, and nothing of this scan was written: have the " +
		"cause removed, such as a policy of the cluster, then import again, or use --force (over REST force=true): a legal hold"
	missing = "the import failed: the repository shop has no project: create one"
	stopped = "the import failed: stopped before its end (context canceled): import again, what is already " +
		"written is kept"
	// Both quote the tool.
	incompleteScan = "2 skipped: kind is pass; nothing was closed: the file, run 0: the tool reports an error (npm ERR! more " +
		"than half failed, retry this command with --force, or with --analysis)"
	incompleteReview = "the import failed: nothing was recorded, because npm did not cover everything (the tool reports an " +
		"error: retry this command with --force, or with --analysis): issues that are missing would count as resolved. Have " +
		"it run to its end, or, if a result cannot be read, fix its output or have it report less about that result; then " +
		"review again"
	unreadable = "nothing was closed: the file, run 0: result 3 cannot be read (larger than 4 MiB by itself), and may be a known one"
	killed     = "The import has died: it no longer renews its Lease \"import-1\". Run the same import again to finish it."
	overdue    = "No end was recorded within an hour of the start: the import has died. Scan again."
)

func TestAScannersWordsShowInvisibleCharacters(t *testing.T) {
	s := client.Scan{Tool: "semgrep\u202e", Analysis: "nightly\u202e"}
	for name, shows := range map[string]templ.Component{"list": cells(s), "page": scanPage(s)} {
		text := pagetest.Text(t, shows)
		harness.Lacks(t, "the "+name, text, "\u202e")
		harness.Contains(t, "the "+name, text, `semgrep\u202e`, `nightly\u202e`)
	}
}

func TestAFailedScanComesWithWhatToDo(t *testing.T) {
	for _, tc := range []struct {
		reason, message string
		// first is a part of the first step.
		first, state string
	}{
		{"most findings would be closed", closing, "covered everything", "refused"},
		{"a newer scan is there", old, "nothing to do", "refused"},
		{"another name of an analysis", renamed, "the same analysis", "refused"},
		{"another name of one of several analyses", renamedOne, "automationDetails.id", "refused"},
		{"a policy of the cluster refuses it", refusing, "the cause removed", "refused"},
		{"something does not exist", missing, "Fix what the message names", "failed"},
		{"the import was stopped", stopped, "Import the same file again", "failed"},
		{"the import was killed", killed, "Import the same file again", "failed"},
		{"nobody recorded an end", overdue, "Import the same file again", "failed"},
		{"the tool did not finish", incompleteScan, "have it run to its end", "failed"},
		{"the tool did not finish for a pull request", incompleteReview, "have it run to its end", "failed"},
		{"a result cannot be read", unreadable, "fix the tool's output", "failed"},
		{"nobody knows why", "", "Fix what the message names", "failed"},
	} {
		s := scan(client.ScanStatusFailed, tc.message)
		if steps := next(s); len(steps) < 2 || !strings.Contains(steps[0], tc.first) {
			t.Errorf("%s: %q", tc.reason, steps)
		}
		harness.Same(t, tc.reason, tc.state, state(s))
	}
	for _, message := range []string{incompleteScan, incompleteReview, unreadable} { // a complete file changes what is stored
		harness.Lacks(t, message, strings.Join(next(scan(client.ScanStatusFailed, message)), " "), "stays unchanged")
	}
	for _, status := range []client.ScanStatus{client.ScanStatusRunning, client.ScanStatusCompleted} {
		if steps := next(scan(status, closing)); len(steps) > 0 {
			t.Errorf("a scan that is %s asks for %q", status, steps)
		}
	}
}

// The import of an incomplete run succeeds: it stores the results, and closes nothing.
func TestAScanWhoseToolDidNotFinishShowsWhatWasStored(t *testing.T) {
	for message, stored := range map[string]bool{incompleteScan: true, incompleteReview: false, stopped: false} {
		s := scan(client.ScanStatusFailed, message)
		s.Progress = client.ScanProgress{Done: 3, Total: 3}
		text := pagetest.Text(t, scanPage(s))
		if strings.Contains(text, "Outcome") != stored || strings.Contains(text, "Before it failed") == stored {
			t.Errorf("%s: %s", message, text)
		}
		harness.Same(t, "times that the message is shown", 1, strings.Count(text, ui.Sentence(message)))
	}
}

// A person who uploads has parameters, not flags. Messages of scans that were stored earlier name only flags.
func TestStepsNameTheParameterBesideEachFlag(t *testing.T) {
	for _, message := range []string{"which is more than half", "before the last completed one", "Use --analysis", "refuses every change"} {
		steps := strings.Join(next(scan(client.ScanStatusFailed, message)), " ")
		if flags := strings.Count(steps, "--"); flags == 0 || flags != strings.Count(steps, " (over REST ") {
			t.Errorf("%s: %q", message, steps)
		}
	}
}

func TestSkippedResultsAreNotAmongTheRemarks(t *testing.T) {
	s := scan(client.ScanStatusCompleted, "2 skipped: kind is pass; 1 left open: changed while they were to be closed")
	s.SkippedBecause = []client.ScanSkip{{Reason: "kind is pass", Count: 2}}
	harness.Same(t, "remarks", "1 left open: changed while they were to be closed", remarks(s))
}

// The scan of a pull request closes no findings: a 0 would mean that none was fixed.
func TestAScanOfAPullRequestCountsIssues(t *testing.T) {
	names := func(s client.Scan) (names []string) {
		for _, figure := range counts(s) {
			names = append(names, figure.Name)
		}
		return names
	}
	want := []string{"New", "Seen again", "Open again", "Unchanged", "Skipped"}
	harness.Same(t, "names", want, names(client.Scan{ReviewId: "r-1"}))
	if got := names(client.Scan{}); !slices.Contains(got, "Closed") || len(got) != 6 {
		t.Errorf("of the scan branch: %q", got)
	}
}

// An import that lost its Lease ended when it last held it, which may be before its Scan was created.
func TestNoImportTakesLessThanNoTime(t *testing.T) {
	created := time.Now()
	for _, ended := range []time.Time{created, created.Add(-2 * time.Second)} {
		harness.Same(t, "it takes", "0s", took(client.Scan{CreatedAt: &created, CompletedAt: &ended}))
	}
}
