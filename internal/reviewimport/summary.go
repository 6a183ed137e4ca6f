package reviewimport

import (
	"fmt"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/importer"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
)

// Summary says what an import did, or with DryRun would do:
// Results = Created + Reopened + Seen + Unchanged + Skipped.
type Summary struct {
	// Review that holds the record.
	Review     string                     `json:"review"`
	Repository string                     `json:"repository"`
	PRNumber   int32                      `json:"prNumber"`
	PRStatus   v1alpha1.PullRequestStatus `json:"prStatus"`
	Commit     string                     `json:"commit,omitempty"`
	// Results that were read.
	Results   int `json:"results"`
	Created   int `json:"created"`
	Reopened  int `json:"reopened"`
	Seen      int `json:"seen"`
	Unchanged int `json:"unchanged"`
	Skipped   int `json:"skipped"`
	// Resolved issues were open before.
	Resolved int `json:"resolved"`
	// Open issues of the pull request after the review.
	Open int `json:"open"`
	// SkippedBecause counts the skipped ones by reason.
	SkippedBecause map[string]int `json:"skippedBecause,omitempty"`
	// SkippedExamples name some of them.
	SkippedExamples []string `json:"skippedExamples,omitempty"`
	// Notes count what was put right while reading.
	Notes map[string]int `json:"notes,omitempty"`
	// Changes in a dry run, at most importer.MostChanges of each action.
	Changes []Change `json:"changes,omitempty"`
}

// Change is a line of a dry run.
type Change struct {
	Action   Action         `json:"action"`
	Name     string         `json:"name"`
	Severity v1alpha1.Level `json:"severity"`
	Title    string         `json:"title"`
	// Place is the file and the line.
	Place string `json:"place,omitempty"`
}

// mostExamples bounds how many skipped results are named.
const mostExamples = 10

const (
	skipDuplicate = "the same in everything as another result"
	skipRefused   = "refused by the API server"
)

// read counts what a batch holds besides results.
func (s *Summary) read(b *importer.Batch) {
	s.Results += len(b.Results)
	for reason, n := range b.Skipped {
		s.Results += n
		s.Skipped += n
		s.SkippedBecause[reason] += n
	}
	for _, example := range b.Examples {
		s.example(example)
	}
	for note, n := range b.Notes {
		s.Notes[note] += n
	}
}

func (s *Summary) skip(reason, example string) {
	s.Skipped++
	s.SkippedBecause[reason]++
	s.example(example)
}

func (s *Summary) example(example string) {
	if len(s.SkippedExamples) < mostExamples {
		s.SkippedExamples = append(s.SkippedExamples, example)
	}
}

// add counts what became of an issue; found says that it is of a result.
func (s *Summary) add(action Action, found bool) {
	switch action {
	case ActionCreate:
		s.Created++
	case ActionReopen:
		s.Reopened++
	case ActionSee:
		s.Seen++
	case ActionResolve:
		s.Resolved++
	case ActionKeep:
		if found {
			s.Unchanged++
		}
	}
}

// list counts a plan as if it were carried out, and says what it comes to.
func (s *Summary) list(p *plan) {
	listed := map[Action]int{}
	for i := range p.changes {
		ch := &p.changes[i]
		next := p.of(ch)
		action := p.action(ch, &next)
		s.add(action, ch.found != nil)
		if listed[action]++; action == ActionKeep || listed[action] > importer.MostChanges {
			continue
		}
		change := Change{Action: action, Name: ch.name, Severity: next.Severity, Title: next.Title, Place: next.File}
		if next.File != "" && next.Line > 0 {
			change.Place += fmt.Sprintf(":%d", next.Line)
		}
		s.Changes = append(s.Changes, change)
	}
}

// count says how many issues are open once the plan is carried out.
func (s *Summary) count(p *plan) {
	var counts reviewstate.Counts
	for i := range p.changes {
		next := p.of(&p.changes[i])
		counts.Add(&next, p.reviewed)
	}
	s.Open = int(counts.Open)
}

func newSummary(pr PullRequest, batches []*importer.Batch) *Summary {
	s := &Summary{
		Review: Name(pr.Repository, pr.Number), Repository: pr.Repository, PRNumber: pr.Number,
		SkippedBecause: map[string]int{}, Notes: map[string]int{},
	}
	for _, b := range batches {
		s.read(b)
	}
	return s
}

// of is what the change makes of its issue as it was read.
func (p *plan) of(ch *change) v1alpha1.ReviewIssueSpec {
	if ch.before == nil {
		return p.next(nil, ch.found)
	}
	return p.next(&ch.before.Spec, ch.found)
}
