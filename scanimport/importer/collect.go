package importer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
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
	// NamelessTool is the name of the tool of runs that give none. Empty: such a file is refused.
	NamelessTool string
	// Formerly is another name under which findings of the tool are known. Empty: none but those that are known.
	Formerly string
	// Analysis takes the place of the ones that the files give; an empty one stands for none. nil: theirs.
	Analysis *string
	// Category of all results. Empty: derived from each tool's name.
	Category v1alpha1.FindingCategory
	// Commit that was scanned. Empty: what the files say.
	Commit string
	// StartedAt is when the scan started. Zero: what the files say, else the time at
	// which the import has its turn.
	StartedAt time.Time
}

// Batch is what one scan found: all results of one tool, category and analysis.
type Batch struct {
	Tool, ToolVersion string
	// Formerly are the other names under which findings of the tool may be known. GivenFormer is the one of them that
	// somebody gave.
	Formerly    []string
	GivenFormer string
	// Category that the tool looks for, which is the scan's. Its findings may be of others.
	Category v1alpha1.FindingCategory
	// Uniform says that somebody named the category: then all findings are of it.
	Uniform bool
	// Analysis that the scan is of; empty: none. ChosenAnalysis says that somebody named it, and not the file.
	Analysis       string
	ChosenAnalysis bool
	// OfFiles are the analyses that the files name, whichever was chosen.
	OfFiles []string
	// Repository is the URI of what was scanned, and Branch its branch, as the files say; empty where they do not.
	Repository, Branch string
	// Project that was scanned; empty: that of the import's Target.
	Project string
	// Scanned are the folders of the files that the tool says it was to look at, whether or not it found something.
	Scanned []string
	Commit  string
	// StartedAt is zero where nobody says it.
	StartedAt time.Time
	// Incomplete says, by run, why what is missing must not be closed. Empty: all is there.
	Incomplete []string
	Results    []sarif.Result
	// Suppressed are results that the source suppresses. They keep the findings that they are, and make
	// no new ones.
	Suppressed []sarif.Result
	// Skipped counts entries that are not findings, by reason.
	Skipped map[string]int
	// Examples name some of the entries skipped.
	Examples []string
	// Notes count what was put right while reading, by sentence.
	Notes map[string]int
	// Warnings say what somebody should see to before anything is compared.
	Warnings []string
}

// mostExamples bounds how many skipped entries are named.
const mostExamples = 10

// clockSkew is how far in the future a scan may have started by its own clock.
const clockSkew = 5 * time.Minute

// Collect sorts the runs of all files into batches, ordered by tool, category and analysis. A tool that reports
// under several of its names is one.
func Collect(files []File, choices Choices, now time.Time) ([]*Batch, error) {
	if choices.StartedAt.After(now.Add(clockSkew)) {
		return nil, fmt.Errorf("the scan cannot have started at %s, which is in the future: every later scan would be refused as older", choices.StartedAt.UTC().Format(time.RFC3339))
	}
	type key struct {
		tool string
		series
	}
	batches := map[key]*Batch{}
	var out []*Batch
	for _, file := range files {
		for i := range file.Log.Runs {
			run := &file.Log.Runs[i]
			where := fmt.Sprintf("%s, run %d", file.Name, i)
			tool := OneLine(firstOf(choices.Tool, run.Tool, choices.NamelessTool), maxTool)
			if tool == "" {
				return nil, fmt.Errorf("%s: it names no tool (tool.driver.name): name it with --tool", where)
			}
			k := key{sameTool(tool), choices.series(tool, run.AutomationID)}
			batch := batches[k]
			if batch == nil {
				batch = &Batch{Tool: tool, Category: k.category, Uniform: choices.Category != "", Analysis: k.analysis,
					ChosenAnalysis: choices.Analysis != nil,
					Commit:         choices.Commit, Skipped: map[string]int{}, Notes: map[string]int{}}
				batches[k] = batch
				out = append(out, batch)
			}
			batch.Tool = newestName(batch.Tool, tool)
			if of := analysisOf(run.AutomationID); !slices.Contains(batch.OfFiles, of) {
				batch.OfFiles = append(batch.OfFiles, of)
			}
			batch.add(run, where, now)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no file holds a run: nothing to import")
	}
	if err := choices.name(out); err != nil {
		return nil, err
	}
	for _, batch := range out {
		batch.Commit = OneLine(batch.Commit, maxCommit)
		if !choices.StartedAt.IsZero() {
			batch.StartedAt = choices.StartedAt
		}
	}
	slices.SortFunc(out, (*Batch).Compare)
	return out, nil
}

// series of the scans of a tool whose file gives that id.
func (c *Choices) series(tool, automationID string) series {
	s := series{c.Category, analysisOf(automationID)}
	if s.category == "" {
		s.category = CategoryOf(tool)
	}
	if c.Analysis != nil {
		s.analysis = boundAnalysis(*c.Analysis)
	}
	return s
}

// name gives the batches the other names of their tools.
func (c *Choices) name(batches []*Batch) error {
	formerly := OneLine(c.Formerly, maxTool)
	for _, b := range batches {
		if formerly != "" && sameTool(b.Tool) != sameTool(batches[0].Tool) {
			return fmt.Errorf("the results are of %s and of %s, and only one can have been called %q: import them in calls of their own", batches[0].Tool, b.Tool, formerly)
		}
		if formerly == b.Tool {
			return fmt.Errorf("the tool is called %q now: as its former name give the one under which its findings are known",
				formerly)
		}
		b.Formerly, b.GivenFormer = formerNames(b.Tool, formerly), formerly
	}
	return nil
}

// series that the batch is of.
func (b *Batch) series() series { return series{b.Category, b.Analysis} }

// key of all batches that are one scan, whatever the tool calls itself.
func (b *Batch) key() []string {
	key := []string{sameTool(b.Tool), string(b.Category)}
	if b.Analysis != "" { // so that no Lease of no analysis has another name than before there was one
		key = append(key, b.Analysis)
	}
	return key
}

// Name of the batch for people: its tool, its category, its analysis if it is of one, and its project if it is not the
// one of all.
func (b *Batch) Name() string {
	name := scanName(b.Tool, b.Category, b.Analysis)
	if b.Project != "" {
		name += " in project " + b.Project
	}
	return name
}

// Compare orders batches as their Leases are taken, so that two imports cannot wait for each other.
func (b *Batch) Compare(other *Batch) int {
	return cmp.Or(cmp.Compare(b.Project, other.Project), slices.Compare(b.key(), other.key()))
}

func scanName(tool string, category v1alpha1.FindingCategory, analysis string) string {
	if analysis == "" {
		return fmt.Sprintf("%s (%s)", tool, category)
	}
	return fmt.Sprintf("%s (%s, %s)", tool, category, analysis)
}

func (b *Batch) add(run *sarif.Run, where string, now time.Time) {
	b.ToolVersion = OneLine(firstOf(b.ToolVersion, run.ToolVersion), maxToolVersion)
	b.Commit = firstOf(b.Commit, run.Commit)
	b.Repository, b.Branch = firstOf(b.Repository, run.Repository), firstOf(b.Branch, run.Branch)
	if t := run.StartedAt; !t.IsZero() && !t.After(now) && (b.StartedAt.IsZero() || t.Before(b.StartedAt)) {
		b.StartedAt = t
	}
	if run.Incomplete != "" {
		b.Incomplete = append(b.Incomplete, where+": "+run.Incomplete)
	}
	for i := range run.Results {
		if r := &run.Results[i]; r.Suppression != nil {
			b.Suppressed = append(b.Suppressed, *r)
		} else {
			b.Results = append(b.Results, *r)
		}
	}
	for _, skip := range run.Skipped {
		b.skip(string(skip.Reason), fmt.Sprintf("%s, result %d (rule %q): %s", where, skip.Index, cut(skip.RuleID, 64),
			skip.Reason))
	}
	b.Scanned = append(b.Scanned, run.Scanned...)
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
