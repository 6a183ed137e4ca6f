package render

import (
	"time"
	"unique"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
)

// Moment is a compact transition: the part that many findings have in common is stored once. It never changes.
type Moment struct {
	at, seq int64
	what    unique.Handle[happening]
	comment string
}

// happening is the part of a transition that is the same for all findings changed by one scan or decision.
type happening struct {
	kind, from, to, by, author, scan string
	// reason and end of a decision; end is 0 if the decision does not end.
	reason string
	end    int64
}

// NewHistory returns the parts of the transitions that a finding's history shows.
func NewHistory(transitions []v1alpha1.Transition) []Moment {
	if len(transitions) == 0 {
		return nil
	}
	history := make([]Moment, len(transitions))
	for i, t := range transitions {
		what := happening{
			kind: string(t.Type), from: t.From, to: t.To, by: t.By, author: t.Author, scan: t.Scan,
			reason: string(t.Reason),
		}
		if t.ExpiresAt != nil {
			what.end = t.ExpiresAt.Unix()
		}
		history[i] = Moment{at: t.At.Unix(), seq: t.Seq, comment: t.Comment, what: unique.Make(what)}
	}
	return history
}

// HistoryJSON renders the history of the finding with that id. importedBy returns the key that a scan was
// uploaded with, "" if none is known.
func HistoryJSON(id string, history []Moment, importedBy func(scan string) string) ([]byte, error) {
	return JSON(openapi.FindingHistory{FindingId: id, Transitions: transitions(history, importedBy)})
}

// IssueHistoryJSON renders the history of a review issue, which contains no scans.
func IssueHistoryJSON(i *v1alpha1.ReviewIssue) ([]byte, error) {
	history := transitions(NewHistory(i.Status.Transitions), func(string) string { return "" })
	return JSON(openapi.ReviewIssueHistory{IssueId: i.Name, Transitions: history})
}

func transitions(history []Moment, importedBy func(scan string) string) []openapi.Transition {
	return convert(history, func(m Moment) openapi.Transition {
		what := m.what.Value()
		var end *time.Time
		if what.end != 0 {
			at := second(time.Unix(what.end, 0))
			end = &at
		}
		return openapi.Transition{
			ExpiresAt: end, Reason: enum[openapi.DecisionReason](what.reason),
			At: second(time.Unix(m.at, 0)), Author: what.author, By: what.by, Comment: m.comment, From: what.from,
			ScanId: what.scan, Seq: m.seq,
			ImportedBy: importedBy(what.scan), To: what.to, Type: what.kind,
		}
	})
}
