package policies

import (
	"context"
	"net/url"

	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
	"github.com/appsec-dev/findings-operator/client"
)

// decidedCounts is the number of findings that each policy currently decides about. A policy's status only counts them
// once all verdicts are recorded; this count matches the list of findings even before.
type decidedCounts client.FieldCounts

// readDecided counts the findings by the policy of their verdict. The request's bound of 1000 policies is above the
// number that can be in force.
func readDecided(ctx context.Context, v *page.Visit) (decidedCounts, error) {
	counts, err := v.CountsOf(ctx, url.Values{"values": {"1000"}}, "policy")
	return decidedCounts(counts), err
}

// by returns the number of findings that the policy decides about.
func (d decidedCounts) by(id string) int32 {
	count, _ := page.CountOf(client.FieldCounts(d), id)
	return count
}

// figure returns the number of findings that the policy decides about, with a link to them.
func (d decidedCounts) figure(id string) ui.Figure {
	return ui.Linked("Decides about", d.by(id), page.Address("/console/findings", nil, "policy", id))
}
