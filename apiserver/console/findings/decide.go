package findings

import (
	"context"
	"net/http"
	"net/url"

	"github.com/appsec-dev/findings-operator/apiserver/console/decision"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
)

// decided is what a module is told of a decision.
type decided struct {
	// Undo is what puts back what was before.
	Undo decision.Change `json:"undo"`
	// Seen names the decision now in force.
	Seen string `json:"seen"`
	// Row of the list as it now is.
	Row string `json:"row"`
}

// decide stores a decision, unless somebody has decided since the person saw the finding.
func decide(ctx context.Context, v *page.Visit) (page.Response, error) {
	id := v.Path("id")
	before, overtaken, err := decision.Store(ctx, v, address(id), address(id))
	switch {
	case err != nil:
		return page.Response{}, err
	case !v.Scripted && overtaken:
		return showWith(ctx, v, http.StatusConflict)
	case !v.Scripted:
		return page.SeeOther(listPath + "/" + url.PathEscape(id)), nil
	}
	var now row
	if _, err := v.API.Get(ctx, address(id), nil, &now); err != nil {
		return page.Response{}, err
	}
	shown, err := page.Text(ctx, item(&now, true))
	if overtaken {
		return page.Response{Status: http.StatusConflict, JSON: struct {
			Detail string `json:"detail"`
			Row    string `json:"row"`
		}{now.Conflict("finding"), shown}}, err
	}
	return page.Response{JSON: decided{decision.ChangeTo(before.Decision), now.Seen(), shown}}, err
}
