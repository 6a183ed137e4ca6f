package handlers

import (
	"context"
	"strconv"
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/cluster"
	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/internal/triageoperation"
)

var outcomeWords = map[triageoperation.Outcome]openapi.TriageOutcome{
	triageoperation.Changed:    openapi.TriageOutcomeChanged,
	triageoperation.Unchanged:  openapi.TriageOutcomeUnchanged,
	triageoperation.Conflicted: openapi.TriageOutcomeConflicted,
	triageoperation.Failed:     openapi.TriageOutcomeFailed,
}

// maxParts bounds the parts that are read for a page: few findings may have the outcome, and the API server is shared.
const maxParts = 10

// ListTriageOperationFindings is an operation of the contract. It reads only as many parts of the operation as
// the page needs.
func (b *Backend) ListTriageOperationFindings(ctx context.Context, request Request) (Response, error) {
	list := newList("listTriageOperationFindings", request).of(request.Path.Get("id"))
	asked, err := list.page(b.Cursors)
	if err != nil {
		return Response{}, err
	}
	operation, err := b.operation(ctx, request)
	if err != nil {
		return Response{}, err
	}
	outcome, _ := request.Query.Lookup("outcome")
	findings := operationFindings{
		outcome: outcome, parts: int(operation.Status.Parts), total: int(countOf(&operation.Status, outcome)),
		final: operation.Status.Phase == v1alpha1.OperationCompleted,
		read:  func(part int) (cluster.Part, error) { return b.Cluster.OperationPart(ctx, operation, part) },
	}
	page, err := findings.page(placeOf(asked.After), asked.Limit.Size)
	if err != nil {
		return Response{}, err
	}
	return respond(b.Cursors, list, page)
}

// operationFindings are the findings of an operation with an outcome; empty: all of them.
type operationFindings struct {
	outcome string
	// parts is the number of parts that read can read, and total that of the findings. Unless final, it may be behind
	// what the parts hold.
	parts, total int
	final        bool
	read         func(part int) (cluster.Part, error)
}

// page returns the page that begins at a place.
func (f *operationFindings) page(at place, size int) (page index.Page[content.Part], err error) {
	if f.total == 0 || f.parts == 0 { // an operation that failed before it had a set has counted what it would have had
		return page, nil
	}
	page.Total = f.total
	for read := 0; at.part < f.parts && (!f.final || at.found < f.total); read++ {
		if len(page.Items) == size || read == maxParts {
			page.HasMore, page.Next = true, at.position()
			break
		}
		part, err := f.read(at.part)
		if err != nil {
			return page, err
		}
		if err := at.take(&page, part, f.outcome, size); err != nil {
			return page, err
		}
	}
	return page, nil
}

// place is where a page begins or ends: an entry of a part, and how many findings precede it in the list.
type place struct{ part, entry, found int }

func placeOf(after *index.Position) (p place) {
	if after != nil { // made by position, and signed
		p.part, _ = strconv.Atoi(after.Value)
		entry, found, _ := strings.Cut(after.ID, "/")
		p.entry, _ = strconv.Atoi(entry)
		p.found, _ = strconv.Atoi(found)
	}
	return p
}

func (p *place) position() index.Position {
	return index.Position{Value: strconv.Itoa(p.part), ID: strconv.Itoa(p.entry) + "/" + strconv.Itoa(p.found)}
}

// take adds the findings of the part with that outcome, from the place on, until the page is full, and moves the place.
func (p *place) take(page *index.Page[content.Part], part cluster.Part, outcome string, size int) error {
	for ; p.entry < len(part.Findings); p.entry++ {
		word := outcomeOf(part, p.entry)
		if outcome != "" && (word == nil || string(*word) != outcome) {
			continue
		}
		if len(page.Items) == size {
			return nil
		}
		shown, err := render.JSON(openapi.TriageOperationFinding{
			FindingId: string(part.Findings[p.entry]), Outcome: word,
		})
		if err != nil {
			return err
		}
		page.Items = append(page.Items, content.Of(shown))
		p.found++
	}
	p.part, p.entry = p.part+1, 0
	return nil
}

// outcomeOf returns the outcome of an entry; nil if it has not been processed yet.
func outcomeOf(part cluster.Part, entry int) *openapi.TriageOutcome {
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
