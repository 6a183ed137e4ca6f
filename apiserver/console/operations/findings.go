package operations

import (
	"cmp"
	"context"
	"net/url"
	"strings"

	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/client"
)

// selected is a page of an operation's findings.
type selected struct {
	id, title string
	view      url.Values
	of        client.TriageOperationFindingList
	// findings of the page, in the same order.
	findings []page.Finding
}

// showFindings serves the page of an operation's findings: the set of its preview, with the outcome of each.
func showFindings(ctx context.Context, v *page.Visit) (page.Response, error) {
	view, err := v.View("outcome")
	if err != nil {
		return page.Response{}, err
	}
	var operation client.TriageOperation
	if _, err := v.API.Get(ctx, v.Resource(apiPath), nil, &operation); err != nil {
		return page.Response{}, err
	}
	undone, err := readUndone(ctx, v, operation)
	if err != nil {
		return page.Response{}, err
	}
	s := selected{id: operation.Id, title: titleOf(operation, undone), view: view}
	if err := v.List(ctx, v.Resource(apiPath)+"/findings", view, &s.of); err != nil {
		return page.Response{}, err
	}
	ids := make([]string, len(s.of.Items))
	for i, item := range s.of.Items {
		ids[i] = item.FindingId
	}
	err = v.EachFinding(ctx, ids, func(f page.Finding) { s.findings = append(s.findings, f) })
	return page.Response{Title: "Findings of: " + s.title, Body: findingsPage(s), Styles: styles}, err
}

// addressOf returns the address of the operation's findings with that outcome; empty: all of them.
func addressOf(id, outcome string) string {
	return page.Address(page.Of(listPath, id)+"/findings", nil, "outcome", outcome)
}

// outcome returns the outcome of the i-th finding of the page.
func (s selected) outcome(i int) string {
	if outcome := s.of.Items[i].Outcome; outcome != nil {
		return inWordsOf(string(*outcome))
	}
	return "not decided about yet"
}

// inWordsOf returns an outcome in the words of the operation's page.
func inWordsOf(outcome string) string {
	return strings.ToLower(cmp.Or(outcomes[outcome], outcome))
}

// next returns the address of the next page of findings.
func (s selected) next() string {
	return page.Address(addressOf(s.id, ""), s.view, "cursor", s.of.NextCursor)
}
