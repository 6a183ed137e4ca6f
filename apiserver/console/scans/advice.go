package scans

import (
	"strings"

	"github.com/appsec-dev/findings-operator/client"
)

// stays explains why repeating an import is safe.
const stays = "What is already stored stays unchanged, and no decision is lost."

// unfinished is the advice for an import that did not complete.
var unfinished = []string{
	"Import the same file again to finish the import. " + stays,
	"If it fails in the same way, read the job's log, or tell whoever runs the service.",
}

// rescan is the advice for a file that may lack known findings.
var rescan = []string{
	"Fix what the message names. If the scanner did not finish, have it run to its end. If a result cannot be read, fix " +
		"the tool's output, or configure the tool to report less about it.",
	"Import the file that it then writes. No decision is lost.",
}

// advice for scans that failed, selected by words of the message. It names flags and parameters, as does the message;
// one that was stored earlier names only flags.
var advice = []struct {
	says  string
	steps []string
}{
	{"did not cover everything", rescan}, // the message quotes the tool, so this one is the first
	{"more than half", []string{
		"Check that the scanner covered everything. With a wrong folder or configuration it finds little, and all " +
			"that it missed would be closed.",
		"To see which findings would be closed, import the same file with --dry-run (over REST dry_run=true, " +
			"with a key that has findings:read). That stores nothing.",
		"If they really are fixed, import the file with --force (over REST force=true).",
	}},
	{"before the last completed", []string{
		"Usually there is nothing to do. A newer scan was already imported, and an older one would reopen what was " +
			"fixed since.",
		"If the start in the file is wrong, give the real one with --started-at (over REST started_at).",
		"To import it as it is, use --force (over REST force=true).",
	}},
	{"--analysis would put all runs", []string{
		"Each run of the scanner must use the same analysis: have automationDetails.id in the file name the known one.",
		"If it is a separate analysis, import it once with --force (over REST force=true).",
	}},
	{"--analysis", []string{
		"Each run of the scanner must use the same analysis: give the known one with --analysis (over REST analysis).",
		"If it is a separate analysis, import it once with --force (over REST force=true).",
	}},
	{"refuses every change", []string{
		"Have the cause removed, such as a policy of the cluster. Then import the same file again. " + stays,
		"To record the scan nevertheless, use --force (over REST force=true).",
	}},
	{"import has died", unfinished},
	{"stopped before its end", unfinished},
}

// incomplete reports whether the import succeeded, but closed nothing because the tool did not finish. The message then
// quotes the tool.
func incomplete(s client.Scan) bool {
	return status(s) == client.ScanStatusFailed && !strings.HasPrefix(s.Message, "the import failed: ") &&
		strings.Contains(s.Message, "nothing was closed: ")
}

// next returns the steps to take after a scan that failed.
func next(s client.Scan) []string {
	if status(s) != client.ScanStatusFailed {
		return nil
	}
	if incomplete(s) {
		return rescan
	}
	for _, a := range advice {
		if strings.Contains(s.Message, a.says) {
			return a.steps
		}
	}
	return []string{"Fix what the message names.", "Import the same file again. " + stays}
}
