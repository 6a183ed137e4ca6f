package importer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsecv1alpha1 "github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/recognition"
)

// Summary says what an import did, or with DryRun would do, with the results of a Batch:
// Results = Created + Updated + Reopened + Unchanged + Skipped.
type Summary struct {
	// Scan that was recorded; empty in a dry run.
	Scan     string                         `json:"scan,omitempty"`
	Tool     string                         `json:"tool"`
	Category appsecv1alpha1.FindingCategory `json:"category"`
	Commit   string                         `json:"commit,omitempty"`
	// Results that were read.
	Results   int `json:"results"`
	Created   int `json:"created"`
	Updated   int `json:"updated"`
	Reopened  int `json:"reopened"`
	Unchanged int `json:"unchanged"`
	Closed    int `json:"closed"`
	Skipped   int `json:"skipped"`
	// SkippedBecause counts the skipped ones by reason.
	SkippedBecause map[string]int `json:"skippedBecause,omitempty"`
	// SkippedExamples name some of them.
	SkippedExamples []string `json:"skippedExamples,omitempty"`
	// Notes count what was put right while reading.
	Notes map[string]int `json:"notes,omitempty"`
	// Recognised counts, by the evidence that did it, the results whose finding was not the same in
	// everything: "code", "moved", "nearest line", ...
	Recognised map[recognition.Rung]int `json:"recognised,omitempty"`
	// InDoubt of them may be another problem of the same kind.
	InDoubt int `json:"inDoubt,omitempty"`
	// LeftOpen findings were to be closed, and somebody changed them at that moment.
	LeftOpen int `json:"leftOpen,omitempty"`
	// NotReported findings are open, not in the results, and not closed because of
	// Incomplete.
	NotReported int      `json:"notReported,omitempty"`
	Incomplete  []string `json:"incomplete,omitempty"`
	// Changes in a dry run, at most MostChanges of each action.
	Changes []Change `json:"changes,omitempty"`
}

// Change is a line of a dry run.
type Change struct {
	Action   Action               `json:"action"`
	Name     string               `json:"name"`
	Severity appsecv1alpha1.Level `json:"severity"`
	Title    string               `json:"title"`
	// Place is the file and the line.
	Place string `json:"place,omitempty"`
	// Because says how the finding was recognised, where not by everything.
	Because string `json:"because,omitempty"`
}

// MostChanges bounds how many changes of each action a dry run lists.
const MostChanges = 100

func newSummary(b *Batch) *Summary {
	s := &Summary{
		Tool: b.Tool, Category: b.Category, Commit: b.Commit,
		Results:        len(b.Results),
		SkippedBecause: maps.Clone(b.Skipped), SkippedExamples: slices.Clone(b.Examples),
		Notes: b.Notes, Incomplete: b.Incomplete,
	}
	for _, n := range b.Skipped {
		s.Skipped += n
	}
	s.Results += s.Skipped
	return s
}

const (
	skipDuplicate = "the same in everything as another result"
	skipRefused   = "refused by the API server"
)

// skip counts an entry that is not a finding, or no other than one counted already.
func (s *Summary) skip(reason, example string) {
	s.Skipped++
	s.SkippedBecause[reason]++
	if len(s.SkippedExamples) < mostExamples {
		s.SkippedExamples = append(s.SkippedExamples, example+": "+reason)
	}
}

// recognised records how the findings of a plan were recognised.
func (s *Summary) recognised(p *plan) {
	if len(p.recognised) > 0 {
		s.Recognised, s.InDoubt = p.recognised, p.doubtful
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

func (s *Summary) counts() *appsecv1alpha1.ScanCounts {
	return &appsecv1alpha1.ScanCounts{
		Created: int32(s.Created), Updated: int32(s.Updated), Closed: int32(s.Closed), //nolint:gosec // bounded by sarif.Limits
		Reopened: int32(s.Reopened), Unchanged: int32(s.Unchanged), Skipped: int32(s.Skipped), //nolint:gosec // as above
	}
}

// message of a Scan that succeeded: what was passed over.
func (s *Summary) message() string {
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(s.SkippedBecause)) {
		parts = append(parts, fmt.Sprintf("%d skipped: %s", s.SkippedBecause[reason], reason))
	}
	if s.LeftOpen > 0 {
		parts = append(parts, fmt.Sprintf("%d left open: changed while they were to be closed", s.LeftOpen))
	}
	if len(s.Incomplete) > 0 {
		parts = append(parts, "nothing was closed: "+strings.Join(s.Incomplete, "; "))
	}
	return cut(paragraph(strings.Join(parts, "; ")), maxScanMessage)
}

// list records the changes of a dry run and counts them as if they were done.
func (s *Summary) list(p *plan) {
	listed := map[Action]int{}
	for i := range p.changes {
		ch := &p.changes[i]
		s.add(ch.action)
		if listed[ch.action]++; listed[ch.action] > MostChanges {
			continue
		}
		d := &ch.spec.Details
		change := Change{Action: ch.action, Name: ch.name, Severity: d.Severity, Title: d.Title, Because: ch.because}
		if l := d.Location; l != nil {
			change.Place = l.FilePath
			if l.LineNumber > 0 {
				change.Place += fmt.Sprintf(":%d", l.LineNumber)
			}
		}
		s.Changes = append(s.Changes, change)
	}
}
