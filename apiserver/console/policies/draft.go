package policies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/decision"
	"github.com/appsec-dev/findings-operator/apiserver/console/findings"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
	"github.com/appsec-dev/findings-operator/client"
)

// draft is a policy being written, with the fields of its form.
type draft struct {
	Name, Match                 string
	UserStatus, Reason, Comment string
	Until, MaxFindings          string
	left                        []leftOut
	wrong, yaml                 string
	token, organization         string
	// missing are the scopes that the key lacks to store policies.
	missing []string
	// mayRead reports whether the key may read policies.
	mayRead bool
	// taken reports whether another policy has the name.
	taken bool
	// retryAt is when to check the name again; zero if that is not known.
	retryAt time.Time
	// requestID identifies the request in logs if nothing in the form is wrong; else empty.
	requestID string
	// address is that of the form without its comment, if the browser was not redirected to it; else empty.
	address string
}

// setPrefix precedes the form's fields in the address of a page, since the filters of the list of findings share some
// of their names.
const setPrefix = "set."

// draftFields are the form's fields that the address may have.
var draftFields = []string{"name", "user_status", "reason", "comment", "until", "max_findings"}

// maxComment is how many characters a policy's comment may have: fewer than a finding's.
const maxComment = 1024

// The highest number of findings that a policy may match, and the service's default.
const (
	maxFindings        = 100_000
	defaultMaxFindings = "1000"
)

// draftOf reads a form whose fields have a prefix.
func draftOf(v *page.Visit, form url.Values, prefix string) draft {
	given := func(name string) string { return page.Lines(form.Get(prefix + name)) }
	d := draft{
		Name: strings.TrimSpace(given("name")), Match: given("match"), UserStatus: given("user_status"),
		Reason: given("reason"), Comment: given("comment"), Until: given("until"),
		MaxFindings: cmp.Or(given("max_findings"), defaultMaxFindings),
		token:       v.Token, organization: v.Who.OrganizationId, mayRead: v.May("findings:read"),
	}
	for _, left := range form["left"] {
		if parts := strings.SplitN(left, "\t", 3); len(parts) == 3 { //nolint:mnd // as the form writes it
			d.left = append(d.left, leftOut{Label: parts[0], Why: parts[1], Value: parts[2]})
		}
	}
	if d.UserStatus != "muted" && d.UserStatus != "active" {
		d.UserStatus = "" // the form asks for it
	}
	d.missing = slices.DeleteFunc([]string{"policies:write", "findings:triage"}, v.May)
	return d
}

func firstRunes(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n])
	}
	return text
}

// isOfDraft reports whether the address of a draft may have the parameter.
func isOfDraft(name string) bool {
	field, is := strings.CutPrefix(name, setPrefix)
	return is && slices.Contains(draftFields, field) || findings.IsFilter(name)
}

// draftPage serves the form, filled from the filters of a list of findings.
func draftPage(ctx context.Context, v *page.Visit) (page.Response, error) {
	d, err := filledDraft(v)
	if err != nil {
		return page.Response{}, err
	}
	return d.page(ctx, v, http.StatusOK)
}

// filledDraft reads the parameters of the address.
func filledDraft(v *page.Visit) (draft, error) {
	if err := page.Check(v.Query, isOfDraft); err != nil {
		return draft{}, err
	}
	d := draftOf(v, v.Query, setPrefix)
	if !v.Query.Has(setPrefix + "user_status") {
		d.UserStatus = "muted"
	}
	d.Match, d.left = ruleOf(v.Query)
	if withdrawn := v.Query.Get(setPrefix + "user_status"); withdrawn == decision.Open {
		d.left = append(d.left, leftOut{"Decision", decision.Choice(withdrawn), whyWithdrawn})
	}
	if comment := firstRunes(d.Comment, maxComment); comment != d.Comment {
		d.Comment = comment
		d.wrong = "The comment was cut, because a policy's comment has at most 1,024 characters."
	}
	return d, nil
}

// whole reports whether the service could accept the policy as a manifest: until then it is not shown as one. An
// invented name could be that of another policy, which the manifest would replace.
func (d draft) whole() bool {
	return d.wrong == "" && d.yaml != "" && d.Match != "" && d.lacks() == ""
}

// lacks returns what a person has to enter until the policy can be shown as a manifest; "" if nothing.
func (d draft) lacks() string {
	switch {
	case d.Name == "":
		return "Give the policy a name: a manifest needs one."
	case len(validation.IsDNS1123Subdomain(d.Name)) > 0:
		return "The name may only have lower-case letters, digits, - and ., must begin and end with a letter or digit, also " +
			"beside each ., and has at most 253 characters."
	case d.UserStatus == "":
		return "Choose a decision."
	case d.UserStatus == "muted" && d.Reason == "":
		return "Choose a reason: it is required to mute."
	}
	return ""
}

// checkName refuses the name of another policy, which the manifest would replace, and a name that cannot be checked. An
// error that is not an answer of the service is returned as it is, to be logged.
func (d draft) checkName(ctx context.Context, v *page.Visit) error {
	_, err := v.API.Get(ctx, page.Of(apiPath, d.Name), nil, &client.TriagePolicy{})
	failure, failed := errors.AsType[*api.Failure](err)
	switch {
	case err == nil:
		return api.Failed(http.StatusConflict, fmt.Sprintf("A policy called %s exists already. Give another name.", d.Name))
	case !failed:
		return err
	case failure.Status == http.StatusNotFound:
		return nil
	}
	const unchecked = "It could not be checked whether a policy has this name already: "
	failure.Body.Detail = unchecked + failure.Body.Detail
	return failure
}

// page returns the form with the policy as a manifest, or with what is wrong with it. It returns the failure of a key
// that is no longer valid, which leads to the login.
func (d draft) page(ctx context.Context, v *page.Visit, status int) (page.Response, error) {
	p, err := d.policy()
	if err == nil {
		d.yaml, err = yamlOf(p, d.organization)
	}
	if err == nil && d.whole() && d.mayRead {
		err = d.checkName(ctx, v)
	}
	if failure, failed := errors.AsType[*api.Failure](err); failed && failure.Status != http.StatusUnauthorized {
		d.wrong = strings.TrimSpace(d.wrong + " " + ui.Sentence(ui.Describe(failure.Body)))
		status, d.taken, d.retryAt = failure.Status, failure.Status == http.StatusConflict, failure.RetryAt
		if _, refused := api.Refused(failure); !refused {
			d.requestID = v.API.RequestID()
		}
	} else if err != nil {
		return page.Response{}, err
	}
	body := draftForm(d)
	return page.Response{Status: status, Title: "A new policy", Body: body, Styles: styles, Modules: modules}, nil
}

// draftOrCreate serves the form of a new policy, and the form of the list of findings that leads to it. Only the form
// of a policy has the field match. It is sent to the address of its own page, to which a login or a problem page leads
// back. A comment that is too long for that address is lost then, and without scripts a draft whose address would be
// too long keeps that of the list's filters.
func draftOrCreate(ctx context.Context, v *page.Visit) (page.Response, error) {
	if v.Form.Has("match") {
		return create(ctx, v)
	}
	return draftOfSelection(ctx, v)
}

// draftOfSelection redirects to the form, filled with what the selected findings have in common, or with the filters of
// the list in which they were selected. Its address can be shared like any other. If the address would be too long, it
// returns the form itself.
func draftOfSelection(ctx context.Context, v *page.Visit) (page.Response, error) {
	query := url.Values{}
	if ids := v.Form["id"]; len(ids) > 0 && v.Form.Get("all") != "true" {
		var err error
		if query, err = commonFilters(ctx, v, ids); err != nil {
			return page.Response{}, err
		}
	} else {
		for name, value := range findings.FiltersOf(v.Form) {
			query.Set(name, value)
		}
	}
	for field, from := range map[string]string{
		"user_status": "user_status", "reason": "reason", "until": "until", "comment": "comments",
	} {
		if value := page.Lines(v.Form.Get(from)); value != "" {
			query.Set(setPrefix+field, value)
		}
	}
	address := page.Address(newPath, query)
	if len(address) <= page.MaxAddress {
		return page.SeeOther(address), nil
	}
	v.Query = query
	d, err := filledDraft(v)
	if err != nil {
		return page.Response{}, err
	}
	query.Del(setPrefix + "comment")
	d.address = page.Address(newPath, query)
	return d.page(ctx, v, http.StatusOK)
}

// create creates a preview of the policy, or shows the form again: with the policy as a manifest, or with the errors.
func create(ctx context.Context, v *page.Visit) (page.Response, error) {
	d := draftOf(v, v.Form, "")
	p, err := d.policy()
	asYAML := v.Form.Get("do") == "yaml"
	if asYAML {
		d.wrong = d.lacks()
	}
	if err != nil || asYAML {
		return d.page(ctx, v, http.StatusOK)
	}
	var made client.TriagePolicy
	err = v.API.Send(ctx, http.MethodPost, apiPath, "", d.request(int(p.MaxFindings)), &made)
	failure, refused := api.Refused(err)
	switch {
	case refused && failure.Status == http.StatusConflict && d.isCreated(ctx, v):
		return page.SeeOther(page.Of(listPath, d.Name)), nil
	case refused:
		d.wrong = ui.Describe(failure.Body)
		return d.page(ctx, v, failure.Status)
	case err != nil:
		return page.Response{}, err
	}
	return page.SeeOther(page.Of(listPath, made.Id)), nil
}

// isCreated reports whether the user has created just this policy before: the form was sent twice.
func (d draft) isCreated(ctx context.Context, v *page.Visit) bool {
	var stored client.TriagePolicy
	if _, err := v.API.Get(ctx, page.Of(apiPath, d.Name), nil, &stored); err != nil {
		return false
	}
	sent, err := d.policy()
	if err != nil {
		return false
	}
	wanted, err := yamlOf(sent, d.organization)
	is, errStored := yamlOf(stored, d.organization)
	return err == nil && errStored == nil && wanted == is && stored.Author == decision.Author(v)
}

// request returns the request to the REST API for a policy that matches at most so many findings.
func (d draft) request(most int) client.TriagePolicyRequest {
	return client.TriagePolicyRequest{
		Name: optional(d.Name), Match: d.Match, MaxFindings: &most, ValidUntil: optional(page.EndOf(d.Until)),
		Set: client.GivenPolicyDecision{
			UserStatus: client.GivenPolicyDecisionUserStatus(d.UserStatus),
			Reason:     optional(client.GivenPolicyDecisionReason(d.Reason)), Comment: optional(d.Comment),
		},
	}
}

// optional returns the value of a field that may be empty; nil if it is.
func optional[T ~string](value T) *T {
	if value == "" {
		return nil
	}
	return &value
}

// most returns how many findings the policy may match.
func (d draft) most() (int, error) {
	most, err := strconv.Atoi(d.MaxFindings)
	if err != nil || most < 1 || most > maxFindings {
		const detail = `"Matches at most" must be a whole number from 1 to %d`
		return 0, api.Failed(http.StatusBadRequest, fmt.Sprintf(detail, maxFindings))
	}
	return most, nil
}

// policy returns the draft as a policy that is not stored. A bound that cannot be read is an error: without it the
// policy would decide about more findings, or longer.
func (d draft) policy() (client.TriagePolicy, error) {
	p := client.TriagePolicy{Id: d.Name, Match: d.Match, Mode: client.TriagePolicyModePreview}
	p.Set.UserStatus, p.Set.Comment = client.TriagePolicyDecisionUserStatus(d.UserStatus), d.Comment
	p.Set.Reason = optional(client.DecisionReason(d.Reason))
	if d.Until != "" {
		end, err := time.Parse(time.RFC3339, page.EndOf(d.Until))
		if err != nil {
			return p, api.Failed(http.StatusBadRequest, "the end must be a date, such as 2099-12-31")
		}
		p.ValidUntil = &end
	}
	most, err := d.most()
	p.MaxFindings = int32(most) //nolint:gosec // at most maxFindings
	return p, err
}
