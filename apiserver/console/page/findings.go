package page

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/client"
)

// maxSamples bounds what is asked for to show what an operation or a policy is about.
const maxSamples = 10

// Samples reads some of the findings. One that does not exist any more has its id alone.
func (v *Visit) Samples(ctx context.Context, ids []string) ([]client.FindingFull, error) {
	return v.Findings(ctx, ids[:min(len(ids), maxSamples)])
}

// MaxSelected is how many findings a person may select; it is how many an operation may name.
const MaxSelected = 400

// Findings reads findings by their ids, of which there may be MaxSelected. One that does not exist any more has its id
// alone.
func (v *Visit) Findings(ctx context.Context, ids []string) ([]client.FindingFull, error) {
	if len(ids) > MaxSelected {
		const detail = "At most %d findings can be selected. Narrow the list with filters, and choose all that match."
		return nil, api.Failed(http.StatusBadRequest, fmt.Sprintf(detail, MaxSelected))
	}
	findings := make([]client.FindingFull, len(ids))
	for i, id := range ids {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		_, err := v.API.Get(ctx, "/v2/findings/"+url.PathEscape(id), nil, &findings[i])
		if api.Is(err, http.StatusNotFound) {
			findings[i].Id, err = id, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return findings, nil
}
