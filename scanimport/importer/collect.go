package importer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
)

// File is a parsed file of results.
type File struct {
	// Name is shown in messages.
	Name string
	Log  *sarif.Log
}

// Choices are the user's options for the files.
type Choices struct {
	// Tool replaces the tool's name in the files. Empty: use theirs.
	Tool string
	// NamelessTool names the tool of runs without a tool name. Empty: refuse such a file.
	NamelessTool string
	// Formerly is a former name of the tool that findings may have. Empty: only the built-in names.
	Formerly string
	// Analysis replaces the analysis in the files; an empty string means no analysis. nil: use theirs.
	Analysis *string
	// Category is the category of all results. Empty: derived from each tool's name.
	Category v1alpha1.FindingCategory
	// Commit is the scanned commit. Empty: use the one in the files.
	Commit string
	// StartedAt is when the scan started. Zero: use the time in the files, or else the API server's time when the import
	// gets its Leases.
	StartedAt time.Time
}

// Batch is what one scan found: all results of one tool, category and analysis.
type Batch struct {
	Tool, ToolVersion string
	// GivenFormer is the former name of the tool that the user gave; empty if none.
	GivenFormer string
	// Category is what the tool looks for, and the category of the scan. Single findings may have another one.
	Category v1alpha1.FindingCategory
	// Uniform means that the user chose the category: then all findings have it.
	Uniform bool
	// Analysis of the scan, if any. ChosenAnalysis means that the user chose it, not the file.
	Analysis       string
	ChosenAnalysis bool
	// OfFiles holds the analyses that the files name, even if the user chose another one.
	OfFiles []string
	// Several means that the import has batches of other analyses, too: then a chosen analysis would merge them.
	Several bool
	// Repository and Branch are the scanned repository's URI and branch according to the files; empty if the files do
	// not name them.
	Repository, Branch string
	// Project that was scanned. Empty: the project of the import's Target.
	Project string
	// Scanned holds the folders that the tool reports as scanned, with or without results.
	Scanned []string
	// Outside is the project's folder, if the scan was assigned to the project because the repository has no other,
	// although all files of the upload lie outside of that folder.
	Outside string
	Commit  string
	// StartedAt is zero if unknown.
	StartedAt time.Time
	// Incomplete holds, for each incomplete run, why missing findings must not be closed. Empty: the scan is complete.
	Incomplete []string
	Results    []sarif.Result
	// Suppressed holds results that the source suppresses. They update existing findings and create none.
	Suppressed []sarif.Result
	// Skipped counts entries that are not findings, by reason.
	Skipped map[string]int
	// Examples describes some of the skipped entries.
	Examples []string
	// Notes counts the corrections made while reading, by sentence.
	Notes map[string]int
	// Warnings are problems that a user should look at before the import compares anything.
	Warnings []string

	// budget is shared by all batches of the files.
	budget *textBudget
}

// complete reports whether the tool covered everything, so that findings without a result are closed.
func (b *Batch) complete() bool { return len(b.Incomplete) == 0 }

// MaxExamples bounds how many skipped entries are described.
const MaxExamples = 10

// ClockSkew is how far in the future a scan's start or a review may be, because clocks differ.
const ClockSkew = 5 * time.Minute

// StartError refuses a start of the scan that was given.
type StartError struct {
	At  time.Time
	Why string
}

func (e *StartError) Error() string {
	return fmt.Sprintf("the scan cannot have started at %s%s", e.At.UTC().Format(time.RFC3339), e.Why)
}

// checkStart refuses a start in the future, and one that means "not set": findings would be detected then for good.
func checkStart(given, now time.Time) error {
	switch {
	case given.After(now.Add(ClockSkew)):
		return &StartError{given, ", which is in the future: check the clock of the machine that scanned"}
	case !given.IsZero() && findingquery.IsUnset(given):
		return &StartError{given, ": leave out a time that is not known"}
	}
	return nil
}

// Collect groups the runs of all files into batches, ordered by tool, category and analysis. Different names of one
// tool count as one tool.
func Collect(files []File, choices Choices, now time.Time) ([]*Batch, error) {
	if err := checkStart(choices.StartedAt, now); err != nil {
		return nil, err
	}
	type key struct {
		tool string
		series
	}
	batches := map[key]*Batch{}
	var out []*Batch
	budget := newTextBudget(files)
	for _, file := range files {
		for i := range file.Log.Runs {
			run := &file.Log.Runs[i]
			where := fmt.Sprintf("%s, run %d", file.Name, i)
			tool := OneLine(sarif.FirstOf(choices.Tool, run.Tool, choices.NamelessTool), maxTool)
			if tool == "" {
				return nil, fmt.Errorf("%s: it names no tool (tool.driver.name): name it with --tool (over REST tool)", where)
			}
			k := key{fingerprints.CurrentName(tool), choices.series(tool, run.AutomationID)}
			batch := batches[k]
			if batch == nil {
				batch = &Batch{Tool: tool, Category: k.category, Uniform: choices.Category != "", Analysis: k.analysis,
					ChosenAnalysis: choices.Analysis != nil,
					Commit:         choices.Commit, Skipped: map[string]int{}, Notes: map[string]int{}, budget: budget}
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
	if err := choices.setFormerName(out); err != nil {
		return nil, err
	}
	for _, batch := range out {
		batch.Several = slices.ContainsFunc(out, func(b *Batch) bool { return b.Analysis != batch.Analysis })
		batch.Commit = OneLine(batch.Commit, MaxCommit)
		if !choices.StartedAt.IsZero() {
			batch.StartedAt = choices.StartedAt
		}
	}
	slices.SortFunc(out, (*Batch).Compare)
	return out, nil
}

// series returns the series of a run of the tool with that automationDetails.id.
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

// setFormerName sets the given former name of the batches' tool.
func (c *Choices) setFormerName(batches []*Batch) error {
	formerly := OneLine(c.Formerly, maxTool)
	for _, b := range batches {
		if formerly != "" && fingerprints.CurrentName(b.Tool) != fingerprints.CurrentName(batches[0].Tool) {
			return fmt.Errorf("the results are of %s and of %s, and only one can have been called %q: import them in calls of their own", batches[0].Tool, b.Tool, formerly)
		}
		if formerly == b.Tool {
			return fmt.Errorf("the tool is called %q now: as its former name give the one under which its findings are known",
				formerly)
		}
		b.GivenFormer = formerly
	}
	return nil
}

// series returns the scan series that the batch belongs to.
func (b *Batch) series() series { return series{b.Category, b.Analysis} }

// key identifies the batches of one scan, whichever of its names the tool uses.
func (b *Batch) key() []string {
	key := []string{fingerprints.CurrentName(b.Tool), string(b.Category)}
	if b.Analysis != "" { // without an analysis the Lease keeps the name of earlier versions
		key = append(key, b.Analysis)
	}
	return key
}

// Name returns the batch's name for users: its tool, its category, its analysis if any, and its project if the batch
// has its own.
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
	b.ToolVersion = OneLine(sarif.FirstOf(b.ToolVersion, run.ToolVersion), maxToolVersion)
	b.Commit = sarif.FirstOf(b.Commit, run.Commit)
	b.Repository, b.Branch = sarif.FirstOf(b.Repository, run.Repository), sarif.FirstOf(b.Branch, run.Branch)
	if t := run.StartedAt; !findingquery.IsUnset(t) && !t.After(now) && (b.StartedAt.IsZero() || t.Before(b.StartedAt)) {
		b.StartedAt = t
	}
	if run.Incomplete != "" {
		b.Incomplete = append(b.Incomplete, where+": "+OneLine(run.Incomplete, maxScanMessage))
	}
	for _, warning := range run.Warnings {
		b.Warnings = append(b.Warnings, where+": "+OneLine(warning, maxScanMessage))
	}
	for i := range run.Results {
		r := &run.Results[i]
		r.Analysis = analysisOf(run.AutomationID)
		if r.Suppression != nil {
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
	if len(b.Examples) < MaxExamples {
		b.Examples = append(b.Examples, example)
	}
}
