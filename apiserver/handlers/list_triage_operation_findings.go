package handlers

import (
	"context"
	"strconv"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/cluster"
	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/internal/triageoperation"
)

var outcomeWords = map[triageoperation.Outcome]openapi.TriageOperationFindingOutcome{
	triageoperation.Changed:    openapi.TriageOperationFindingOutcomeChanged,
	triageoperation.Unchanged:  openapi.TriageOperationFindingOutcomeUnchanged,
	triageoperation.Conflicted: openapi.TriageOperationFindingOutcomeConflicted,
	triageoperation.Failed:     openapi.TriageOperationFindingOutcomeFailed,
}

// ListTriageOperationFindings is an operation of the contract. It reads only as many parts of the operation as
// the page needs.
func (b *Backend) ListTriageOperationFindings(ctx context.Context, request Request) (Response, error) {
	list := newList("listTriageOperationFindings", request, "outcome").of(request.Path.Get("id"))
	after, err := list.position(b.Cursors)
	if err != nil {
		return Response{}, err
	}
	operation, err := b.operation(ctx, request)
	if err != nil {
		return Response{}, err
	}
	outcome, filtered := request.Query.Lookup("outcome")
	page := index.Page[content.Part]{Total: int(countOf(&operation.Status, outcome))}
	if filtered && page.Total == 0 {
		return respond(b.Cursors, list, page, asIs) // without reading any part
	}
	part, entry := startOf(after)
	for ; part < int(operation.Status.Parts); part, entry = part+1, 0 {
		if len(page.Items) == list.limit.Size {
			page.HasMore, page.Next = true, positionOf(part, 0)
			break
		}
		read, err := b.Cluster.OperationPart(ctx, operation, part)
		if err != nil {
			return Response{}, err
		}
		for ; entry < len(read.Entries) && len(page.Items) < list.limit.Size; entry++ {
			word := outcomeOf(read, entry)
			if filtered && (word == nil || string(*word) != outcome) {
				continue
			}
			shown, err := render.JSON(openapi.TriageOperationFinding{
				FindingId: string(read.Entries[entry].Finding), Outcome: word,
			})
			if err != nil {
				return Response{}, err
			}
			page.Items = append(page.Items, content.Of(shown))
		}
		if entry < len(read.Entries) {
			page.HasMore, page.Next = true, positionOf(part, entry)
			break
		}
	}
	return respond(b.Cursors, list, page, asIs)
}

// startOf returns the part, and the entry in it, where a page begins.
func startOf(after *index.Position) (part, entry int) {
	if after == nil {
		return 0, 0
	}
	part, _ = strconv.Atoi(after.Value) // made by positionOf, and signed
	entry, _ = strconv.Atoi(after.ID)
	return part, entry
}

func positionOf(part, entry int) index.Position {
	return index.Position{Value: strconv.Itoa(part), ID: strconv.Itoa(entry)}
}

// outcomeOf returns the outcome of an entry; nil if it has not been processed yet.
func outcomeOf(part cluster.Part, entry int) *openapi.TriageOperationFindingOutcome {
	if entry >= len(part.Outcomes) {
		return nil
	}
	word, known := outcomeWords[triageoperation.Outcome(part.Outcomes[entry])]
	if !known {
		return nil
	}
	return &word
}

// countOf returns how many findings have the outcome; all of them if outcome is empty.
func countOf(status *v1alpha1.TriageOperationStatus, outcome string) int32 {
	switch openapi.TriageOutcome(outcome) {
	case openapi.TriageOutcomeChanged:
		return status.Changed
	case openapi.TriageOutcomeUnchanged:
		return status.Unchanged
	case openapi.TriageOutcomeConflicted:
		return status.Conflicted
	case openapi.TriageOutcomeFailed:
		return status.Failed
	default:
		return status.Matched
	}
}
