package findings

import (
	"context"
	"net/url"

	"github.com/appsec-dev/findings-operator/apiserver/console/page"
)

// showRow answers a module with a row of the list as it now is, whether or not the list would still show it.
func showRow(ctx context.Context, v *page.Visit) (page.Response, error) {
	if !v.Scripted {
		return page.SeeOther(listPath + "/" + url.PathEscape(v.Path("id"))), nil
	}
	var now row
	if _, err := v.API.Get(ctx, address(v.Path("id")), nil, &now); err != nil {
		return page.Response{}, err
	}
	shown, err := page.Text(ctx, item(now, v.May("findings:triage")))
	return page.Response{JSON: struct {
		Row string `json:"row"`
	}{shown}}, err
}
