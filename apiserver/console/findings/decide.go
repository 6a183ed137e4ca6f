package findings

import (
	"context"
	"net/http"
	"reflect"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/decision"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
)

// decisionAnswer is the response to a module's decision.
type decisionAnswer struct {
	// Changed reports whether a decision was stored. Repeating a doubtful decision stores it, based on the current facts.
	Changed bool `json:"changed,omitempty"`
	// Undo is the change that restores the previous decision; nil if that was the same.
	Undo *decision.Change `json:"undo,omitempty"`
	// Seen identifies the decision that was stored: it matches the finding only while that stands.
	Seen string `json:"seen"`
	// Row is the finding's updated row of the list.
	Row string `json:"row"`
}

// decide stores a decision, unless somebody else has decided, or a scan has changed the facts, since the finding was
// shown.
func decide(ctx context.Context, v *page.Visit) (page.Response, error) {
	at := v.Resource(apiPath)
	before, overtaken, err := decision.Store(ctx, v, at, func(ctx context.Context) (decision.Standing, string, error) {
		var now row
		tag, err := v.API.Get(ctx, at, nil, &now)
		return now.Standing, tag, err
	})
	failure, refused := api.Refused(err)
	switch {
	case refused && !v.Scripted: // a module gets the refusal itself
		return showRefused(ctx, v, failure.Status, decision.Refusal(failure))
	case err != nil:
		return page.Response{}, err
	case v.Scripted:
		return answerModule(ctx, v, before, overtaken)
	case overtaken:
		return showRefused(ctx, v, http.StatusConflict, before.Conflict("finding", v.Form.Get("seen")))
	}
	return page.SeeOther(v.Resource(listPath)), nil
}

// answerModule returns the finding's updated row to a module: with what its decision has changed, or if that was
// overtaken, with the reason.
func answerModule(ctx context.Context, v *page.Visit, before decision.Standing, overtaken bool) (page.Response, error) {
	var now row
	if _, err := v.API.Get(ctx, v.Resource(apiPath), nil, &now); err != nil {
		return page.Response{}, err
	}
	shown, err := page.Text(ctx, item(&now, true))
	if overtaken {
		return page.Response{Status: http.StatusConflict, JSON: struct {
			Detail string `json:"detail"`
			Row    string `json:"row"`
		}{now.Conflict("finding", v.Form.Get("seen")), shown}}, err
	}
	own := decision.Own(before, now.Standing, decision.Author(v))
	answer := decisionAnswer{Changed: own.Seen() != before.Seen(), Seen: own.Seen(), Row: shown}
	if undo := decision.ChangeTo(before.Decision); !reflect.DeepEqual(undo, decision.ChangeTo(now.Decision)) {
		answer.Undo = &undo
	}
	return page.Response{JSON: answer}, err
}
