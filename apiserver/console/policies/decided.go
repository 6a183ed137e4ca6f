package policies

import (
	"context"
	"net/url"

	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
	"github.com/appsec-dev/findings-operator/client"
)

// decided is about how many findings each policy decides now. A policy's status counts what it decides about once all
// verdicts are recorded; this is what the list of findings shows until then, too.
type decided map[string]int32

// readDecided counts the findings that have a policy's verdict. Fewer policies than are asked for can be in force.
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

// figure counts the findings about which the policy decides, and leads to them where there are any.
func (d decided) figure(id string) ui.Figure {
	f := ui.Figure{Name: "Decides about", Count: d[id]}
	if f.Count > 0 {
		f.Link = page.Address("/console/findings", nil, "policy", id)
	}
	return f
}
