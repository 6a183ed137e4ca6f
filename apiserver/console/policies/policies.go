// Package policies holds the pages of triage policies: the rules that decide about findings, and the form that creates
// one from a list of findings.
package policies

import (
	"context"
	"embed"
	"net/http"
	"strconv"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/decision"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/client"
)

// Files are the pages' style sheets and modules.
//
//go:embed *.css *.js
var Files embed.FS

const (
	listPath = "/console/policies"
	newPath  = listPath + "/_new" // no policy can have this name
	apiPath  = "/v2/triage-policies"
)

var (
	styles  = []string{"policies/policies.css"}
	modules = []string{"policies/policies.js", "ui/follow.js"}
)

// Routes returns the pages.
func Routes() []page.Route {
	return []page.Route{
		{Method: http.MethodGet, Path: "policies", Serve: list},
		{Method: http.MethodGet, Path: "policies/_new", Serve: draftPage},
		{Method: http.MethodPost, Path: "policies/_new", Serve: draftOrCreate},
		{Method: http.MethodGet, Path: "policies/:id", Serve: show},
		{Method: http.MethodPost, Path: "policies/:id", Serve: change},
	}
}

// listing is the content of the list of policies.
type listing struct {
	client.TriagePolicyList
	decided decidedCounts
}

// list shows the organization's policies, the newest first.
func list(ctx context.Context, v *page.Visit) (page.Response, error) {
	var policies listing
	if err := v.ListUnfiltered(ctx, apiPath, &policies.TriagePolicyList); err != nil {
		return page.Response{}, err
	}
	var err error
	if policies.decided, err = readDecided(ctx, v); err != nil {
		return page.Response{}, err
	}
	return page.Response{Title: "Policies", Body: listPage(policies), Styles: styles}, nil
}

// shown is the content of a policy's page.
type shown struct {
	client.TriagePolicy
	samples []page.Finding
	decided decidedCounts
	yaml    string
	token   string
	// mayWrite reports that the key may apply and stop policies.
	mayWrite bool
}

// show serves the page of a policy.
func show(ctx context.Context, v *page.Visit) (page.Response, error) {
	s := shown{token: v.Token, mayWrite: mayWrite(v)}
	if _, err := v.API.Get(ctx, v.Resource(apiPath), nil, &s.TriagePolicy); err != nil {
		return page.Response{}, err
	}
	var err error
	if s.samples, err = v.Samples(ctx, s.Samples); err != nil {
		return page.Response{}, err
	}
	if s.decided, err = readDecided(ctx, v); err != nil {
		return page.Response{}, err
	}
	if s.yaml, err = yamlOf(s.TriagePolicy, v.Who.OrganizationId); err != nil {
		return page.Response{}, err
	}
	return page.Response{Title: "Policy " + s.Id, Body: policyPage(s), Styles: styles, Modules: modules}, nil
}

// mayWrite reports whether the key may create, apply and stop policies. That includes the right to decide about
// findings, since a policy decides.
func mayWrite(v *page.Visit) bool { return v.May("policies:write") && v.May("findings:triage") }

// change applies or stops a policy.
func change(ctx context.Context, v *page.Visit) (page.Response, error) {
	generation, err := strconv.Atoi(v.Form.Get("generation"))
	if err != nil {
		return page.Response{}, api.Failed(http.StatusBadRequest, "The form does not contain the policy's generation.")
	}
	mode, uid := client.TriagePolicyMode(v.Form.Get("mode")), v.Form.Get("uid")
	body := client.TriagePolicyChange{Mode: mode, Generation: &generation, Uid: &uid}
	err = v.API.Send(ctx, http.MethodPatch, v.Resource(apiPath), "", body, &client.TriagePolicy{})
	if err == nil || api.Is(err, http.StatusPreconditionFailed) && isChanged(ctx, v, body) {
		return page.SeeOther(v.Resource(listPath)), nil
	}
	return page.Response{}, err
}

// isChanged reports whether the user has made just this change before: the form was sent twice.
func isChanged(ctx context.Context, v *page.Visit, to client.TriagePolicyChange) bool {
	var now client.TriagePolicy
	_, err := v.API.Get(ctx, v.Resource(apiPath), nil, &now)
	return err == nil && now.Uid == *to.Uid && now.Generation == int64(*to.Generation)+1 &&
		now.Mode == to.Mode && now.Author == decision.Author(v)
}
