package importer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/recognition"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
)

// Summary reports what an import did, or with DryRun would do, with the results of a Batch:
// Results = Created + Updated + Reopened + Unchanged + Skipped.
type Summary struct {
	// Scan that was recorded; empty in a dry run.
	Scan string `json:"scan,omitempty"`
	// Finished means that all changes are written and the Scan has its outcome. In a dry run it is false.
	Finished bool `json:"finished"`
	// SettledAt is when the states of all changed findings were recorded; nil if nobody has waited for that.
	SettledAt *v1alpha1.Time           `json:"settledAt,omitempty"`
	Tool      string                   `json:"tool"`
	Category  v1alpha1.FindingCategory `json:"category"`
	// Analysis that the scan is of; empty: none.
	Analysis string `json:"analysis,omitempty"`
	Commit   string `json:"commit,omitempty"`
	// Results that were read.
	Results   int `json:"results"`
	Created   int `json:"created"`
	Updated   int `json:"updated"`
	Reopened  int `json:"reopened"`
	Unchanged int `json:"unchanged"`
	Closed    int `json:"closed"`
	Skipped   int `json:"skipped"`
	// SkippedBecause counts the skipped results by reason.
	SkippedBecause map[string]int `json:"skippedBecause,omitempty"`
	// SkippedExamples describes some of them.
	SkippedExamples []string `json:"skippedExamples,omitempty"`
	// Notes counts the corrections that were made while reading.
	Notes map[string]int `json:"notes,omitempty"`
	// Recognised counts, by evidence, the results that match their finding but differ from it in something, or are in
	// doubt: "code", "moved", "nearest line", ...
	Recognised map[recognition.Rung]int `json:"recognised,omitempty"`
	// InDoubt counts those of them that may be another problem of the same kind.
	InDoubt int `json:"inDoubt,omitempty"`
	// Suppressed counts the findings that are reported and suppressed in the source: they stay, open_muted.
	Suppressed int `json:"suppressed,omitempty"`
	// Renamed counts, by a former name of the tool, the findings that moved to its current name.
	Renamed map[string]int `json:"renamed,omitempty"`
	// Adopted counts findings without an analysis that now belong to this one. NotAdopted counts open findings without
	// an analysis that were not reported.
	Adopted    int `json:"adopted,omitempty"`
	NotAdopted int `json:"notAdopted,omitempty"`
	// Provisioned are the objects that were created for the import, or in a dry run would be.
	Provisioned []Provisioned `json:"provisioned,omitempty"`
	// Warnings are problems that need a user's attention.
	Warnings []string `json:"warnings,omitempty"`
	// LeftOpen counts findings that were about to be closed when another client changed them, or the API server refused.
	LeftOpen int `json:"leftOpen,omitempty"`
	// NotReported counts findings that are open, not in the results, and not closed because of Incomplete.
	NotReported int      `json:"notReported,omitempty"`
	Incomplete  []string `json:"incomplete,omitempty"`
	// Changes in a dry run, at most MaxChanges of each action.
	Changes []Change `json:"changes,omitempty"`
	// Unlisted counts the changes of a dry run that are left out of Changes.
	Unlisted int `json:"unlisted,omitempty"`
	// Refused holds why the import of a dry run would be refused. The error of the dry run names the same reasons.
	Refused []string `json:"-"`
}

// Change is a line of a dry run.
type Change struct {
	Action   Action         `json:"action"`
	Name     string         `json:"name"`
	Severity v1alpha1.Level `json:"severity"`
	Title    string         `json:"title"`
	// Place is the file and the line.
	Place string `json:"place,omitempty"`
	// Because explains how the finding was recognised; empty if everything agrees.
	Because string `json:"because,omitempty"`
}

// MaxChanges bounds how many changes of each action a dry run lists.
const MaxChanges = 100

func newSummary(b *Batch) *Summary {
	s := &Summary{
		Tool: b.Tool, Category: b.Category, Analysis: b.Analysis, Commit: b.Commit,
		Results:        len(b.Results) + len(b.Suppressed),
		SkippedBecause: maps.Clone(b.Skipped), SkippedExamples: slices.Clone(b.Examples),
		Notes: b.Notes, Incomplete: b.Incomplete,
	}
	for _, n := range b.Skipped {
		s.Skipped += n
	}
	s.Results += s.Skipped
	s.Warnings = slices.Clone(b.Warnings)
	if !b.ChosenAnalysis && looksVolatile(b.Analysis) {
		then := "name it with --analysis (over REST analysis), the same at each import"
		if b.Several {
			then = "correct automationDetails.id of these runs (--analysis would put all runs of the files into one analysis)"
		}
		s.Warnings = append(s.Warnings, fmt.Sprintf("the analysis %q, from automationDetails.id, looks as if it changes "+
			"with each run: then %s", b.Analysis, then))
	}
	return s
}

// AllWarnings returns the created objects and the warnings, as the Scan stores them and an upload shows them.
func (s *Summary) AllWarnings(dryRun bool) []string {
	all := Warnings(s.Provisioned, dryRun)
	for _, warning := range s.Warnings {
		all = append(all, s.Name()+": "+warning)
	}
	return all
}

// KeptWarnings returns as many of the warnings as a Scan has room for.
func KeptWarnings(all []string) []string {
	var kept []string
	for i, warning := range all {
		if more := len(all) - i; i == v1alpha1.MaxScanWarnings-1 && more > 1 {
			return append(kept, fmt.Sprintf("%d more", more))
		}
		kept = append(kept, OneLine(warning, v1alpha1.MaxScanWarning))
	}
	return kept
}

// Reasons for skipping a result.
const (
	// SkipSuppressed is for one that the source suppresses and that has no finding yet.
	SkipSuppressed = "suppressed in the source"
	SkipDuplicate  = "identical to another result"
	SkipRefused    = "refused by the API server"
	skipUnreadable = "its finding cannot be read"
	skipTaken      = "another import took over its finding in the meantime: the next import handles it"
	skipCrossed    = "its finding kept changing in the meantime: the next import handles it"
)

// Name returns the scan's name for users.
func (s *Summary) Name() string { return scanName(s.Tool, s.Category, s.Analysis) }

// maxWarnings bounds how many unreadable objects are named.
const maxWarnings = 100

// warnOf adds warnings about unreadable objects.
func (s *Summary) warnOf(kind string, names []string) {
	for i, name := range names {
		if i == maxWarnings {
			s.Warnings = append(s.Warnings, fmt.Sprintf("%d more objects of kind %s cannot be read", len(names)-i, kind))
			return
		}
		s.Warnings = append(s.Warnings, PassedOver(kind, name))
	}
}

// skipResults counts results that are not written.
func (s *Summary) skipResults(reason string, results []*sarif.Result) {
	for _, r := range results {
		s.skip(reason, fmt.Sprintf("result %d (rule %q)", r.Index, cut(r.RuleID, 64)))
	}
}

// skip counts an entry that is not a finding, or repeats one that was already counted.
func (s *Summary) skip(reason, example string) {
	s.Skipped++
	s.SkippedBecause[reason]++
	if len(s.SkippedExamples) < MaxExamples {
		s.SkippedExamples = append(s.SkippedExamples, example+": "+reason)
	}
}

// planned records the counts of a plan.
func (s *Summary) planned(p *plan) {
	s.skipResults(SkipSuppressed, p.unseen)
	s.skipResults(skipUnreadable, p.unreadable)
	if len(p.recognised) > 0 {
		s.Recognised, s.InDoubt = p.recognised, p.doubtful
	}
	s.Suppressed = p.suppressed
	if len(p.renamed) > 0 {
		s.Renamed = p.renamed
	}
	s.Unchanged, s.Adopted, s.NotAdopted = p.unchanged, p.adopted, len(p.notAdopted)
	if len(s.Incomplete) > 0 {
		s.NotReported = p.toClose
	}
}

func (s *Summary) add(action Action) {
	switch action {
	case ActionCreate:
		s.Created++
	case ActionUpdate:
		s.Updated++
	case ActionReopen:
		s.Reopened++
	case ActionClose:
		s.Closed++
	case ActionKeep:
		s.Unchanged++
	}
}

// Counts returns the counts that the Scan stores.
func (s *Summary) Counts() *v1alpha1.ScanCounts {
	return &v1alpha1.ScanCounts{
		Created: int32(s.Created), Updated: int32(s.Updated), Closed: int32(s.Closed), //nolint:gosec // bounded by sarif.Limits
		Reopened: int32(s.Reopened), Unchanged: int32(s.Unchanged), Skipped: int32(s.Skipped), //nolint:gosec // as above
	}
}

// message returns the message of a Scan whose import ended: what was skipped, what was left open, and why nothing was
// closed. For a dry run it is the message that the Scan would have.
func (s *Summary) message() string {
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(s.SkippedBecause)) {
		parts = append(parts, fmt.Sprintf("%d skipped: %s", s.SkippedBecause[reason], reason))
	}
	if s.LeftOpen > 0 {
		parts = append(parts, fmt.Sprintf("%d left open: changed, or refused by the API server, while they were to be closed", s.LeftOpen))
	}
	if len(s.Incomplete) > 0 {
		parts = append(parts, "nothing was closed: "+strings.Join(s.Incomplete, "; "))
	}
	return cut(paragraph(strings.Join(parts, "; ")), maxScanMessage)
}

// show records the changes of a dry run and counts them as if they were done.
func (s *Summary) show(p *plan) {
	listed := map[Action]int{}
	for i := range p.changes {
		ch := &p.changes[i]
		s.add(ch.action)
		if listed[ch.action]++; listed[ch.action] > MaxChanges {
			s.Unlisted++
			continue
		}
		change := shown(ch.action, ch.name, &ch.spec.Details)
		change.Because = ch.because
		s.Changes = append(s.Changes, change)
	}
}

// shown returns a finding as a line.
func shown(action Action, name string, d *v1alpha1.FindingDetails) Change {
	at := d.Place()
	return Change{
		Action: action, Name: name, Severity: d.Severity, Title: d.Title, Place: FileAndLine(at.FilePath, at.LineNumber),
	}
}

// FileAndLine returns a file and, if it is known, the line as they are shown to users.
func FileAndLine(file string, line int32) string {
	if file == "" || line <= 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}
