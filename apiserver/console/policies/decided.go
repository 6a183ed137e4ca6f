package policies

import (
	"context"
	"net/url"

	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
	"github.com/appsec-dev/findings-operator/client"
)

// decided is the number of findings that each policy currently decides about. A policy's status only counts them once
// all verdicts are recorded; this count matches the list of findings even before.
type decided map[string]int32

// readDecided counts the findings by the policy of their verdict. The request's bound of 1000 policies is above the
// number that can be in force.
func readDecided(ctx context.Context, v *page.Visit) (decided, error) {
	var counts client.FindingCounts
	query := url.Values{"field": {"policy"}, "values": {"1000"}}
	if _, err := v.API.Get(ctx, "/v2/finding-counts", query, &counts); err != nil {
		return nil, err
	}
	by := decided{}
	for _, field := range counts.Fields {
		for _, value := range field.Values {
			by[value.Value] = value.Count
		}
	}
	return by, nil
}

// figure returns the number of findings that the policy decides about, with a link to them.
func (d decided) figure(id string) ui.Figure {
	return ui.Linked("Decides about", d[id], page.Address("/console/findings", nil, "policy", id))
}
