package scans

import (
	"slices"
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

// advice for scans that failed, selected by words of the message. The importer writes the message for users of kubectl
// findings import: it explains the failure and names flags.
var advice = []struct {
	says  string
	steps []string
}{
	{"more than half", []string{
		"Check that the scanner covered everything. With a wrong folder or configuration it finds little, and all " +
			"that it missed would be closed.",
		"To see which findings would be closed, import the same file with --dry-run. That stores nothing.",
		"If they really are fixed, import the file with --force.",
	}},
	{"before the last completed", []string{
		"Usually there is nothing to do. A newer scan was already imported, and an older one would reopen what was " +
			"fixed since.",
		"If the start in the file is wrong, give the real one with --started-at.",
		"To import it as it is, use --force.",
	}},
	{"--analysis", []string{
		"Each run of the scanner must use the same analysis: give the known one with --analysis.",
		"If it is a separate analysis, import it once with --force.",
	}},
	{"import has died", unfinished},
	{"stopped before its end", unfinished},
}

// next returns the steps to take after a scan that failed.
func next(s client.Scan) []string {
	if status(s) != client.ScanStatusFailed {
		return nil
	}
	steps := []string{"Fix what the message names.", "Import the same file again. " + stays}
	for _, a := range advice {
		if strings.Contains(s.Message, a.says) {
			steps = slices.Clone(a.steps)
			break
		}
	}
	if s.UploadId != "" {
		steps = append(steps, parametersFor(s.Message)...)
	}
	return steps
}

// overrides are the flags in messages of refusals, each with the equivalent parameter of an upload.
var overrides = []struct{ flag, parameter string }{
	{"--dry-run", "dry_run=true"},
	{"--force", "force=true"},
	{"--analysis", "analysis"},
	{"--started-at", "started_at"},
}

// parametersFor returns the upload parameters for the flags in a message, or nothing if it names none.
func parametersFor(message string) []string {
	var words []string
	for _, o := range overrides {
		if strings.Contains(message, o.flag) {
			words = append(words, o.parameter+" for "+o.flag)
		}
	}
	if len(words) == 0 {
		return nil
	}
	return []string{"The scan was uploaded over REST: there, give the parameter " + strings.Join(words, ", ") + "."}
}
