package importer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsecv1alpha1 "github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/sarif"
)

// File is a file of results as it was read.
type File struct {
	// Name for messages.
	Name string
	Log  *sarif.Log
}

// Choices are what the user says about the files.
type Choices struct {
	// Tool takes the place of the name that the files give. Empty: theirs.
	Tool string
	// Category of all results. Empty: derived from each tool's name.
	Category appsecv1alpha1.FindingCategory
	// Commit that was scanned. Empty: what the files say.
	Commit string
	// StartedAt is when the scan started. Zero: what the files say, else the time at
	// which the import has its turn.
	StartedAt time.Time
}

// Batch is what one scan found: all results of one tool and category.
type Batch struct {
	Tool, ToolVersion string
	// Category that the tool looks for, which is the scan's. Its findings may be of others.
	Category appsecv1alpha1.FindingCategory
	// Uniform says that somebody named the category: then all findings are of it.
	Uniform bool
	Commit  string
	// StartedAt is zero where nobody says it.
	StartedAt time.Time
	// Incomplete says, by run, why what is missing must not be closed. Empty: all is there.
	Incomplete []string
	Results    []sarif.Result
	// Skipped counts entries that are not findings, by reason.
	Skipped map[string]int
	// Examples name some of the entries skipped.
	Examples []string
	// Notes count what was put right while reading, by sentence.
	Notes map[string]int
}

// mostExamples bounds how many skipped entries are named.
const mostExamples = 10

// clockSkew is how far in the future a scan may have started by its own clock.
const clockSkew = 5 * time.Minute

// Collect sorts the runs of all files into batches, ordered by tool and category.
func Collect(files []File, choices Choices, now time.Time) ([]*Batch, error) {
	if choices.StartedAt.After(now.Add(clockSkew)) {
		return nil, fmt.Errorf("the scan cannot have started at %s, which is in the future: every later scan would be refused as older", choices.StartedAt.UTC().Format(time.RFC3339))
	}
	type key struct {
		tool     string
		category appsecv1alpha1.FindingCategory
	}
	batches := map[key]*Batch{}
	var out []*Batch
	for _, file := range files {
		for i := range file.Log.Runs {
			run := &file.Log.Runs[i]
			where := fmt.Sprintf("%s, run %d", file.Name, i)
			tool := OneLine(firstOf(choices.Tool, run.Tool), maxTool)
			if tool == "" {
				return nil, fmt.Errorf("%s: it names no tool (tool.driver.name): name it with --tool", where)
			}
			k := key{tool, choices.Category}
			if k.category == "" {
				k.category = CategoryOf(tool)
			}
			batch := batches[k]
			if batch == nil {
				batch = &Batch{Tool: tool, Category: k.category, Uniform: choices.Category != "", Commit: choices.Commit, Skipped: map[string]int{}, Notes: map[string]int{}}
				batches[k] = batch
				out = append(out, batch)
			}
			batch.add(run, where, now)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no file holds a run: nothing to import")
	}
	for _, batch := range out {
		batch.Commit = OneLine(batch.Commit, maxCommit)
		if !choices.StartedAt.IsZero() {
			batch.StartedAt = choices.StartedAt
		}
	}
	slices.SortFunc(out, func(a, b *Batch) int {
		return strings.Compare(a.Tool+"\x00"+string(a.Category), b.Tool+"\x00"+string(b.Category))
	})
	return out, nil
}

func (b *Batch) add(run *sarif.Run, where string, now time.Time) {
	b.ToolVersion = OneLine(firstOf(b.ToolVersion, run.ToolVersion), maxToolVersion)
	b.Commit = firstOf(b.Commit, run.Commit)
	if t := run.StartedAt; !t.IsZero() && !t.After(now) && (b.StartedAt.IsZero() || t.Before(b.StartedAt)) {
		b.StartedAt = t
	}
	if run.Incomplete != "" {
		b.Incomplete = append(b.Incomplete, where+": "+run.Incomplete)
	}
	b.Results = append(b.Results, run.Results...)
	for _, skip := range run.Skipped {
		b.skip(string(skip.Reason), fmt.Sprintf("%s, result %d (rule %q): %s", where, skip.Index, cut(skip.RuleID, 64), skip.Reason))
	}
	for note, n := range run.Notes {
		b.Notes[note] += n
	}
}

func (b *Batch) skip(reason, example string) {
	b.Skipped[reason]++
	if len(b.Examples) < mostExamples {
		b.Examples = append(b.Examples, example)
	}
}

func firstOf(values ...string) string {
	for _, v := range values {
		if strings.TrimSpace(v) != "" {
			return v
		}
	}
	return ""
}
