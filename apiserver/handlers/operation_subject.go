package handlers

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// The members of a triage operation's body that are objects.
const (
	memberFilters = "filters"
	memberSet     = "set"
)

// nameIn returns an id that is a valid resource name. The API server would reject any other.
func nameIn(member, id string) (v1alpha1.ResourceName, error) {
	if !kube.IsName(id) {
		return "", problem.InvalidBody(fmt.Sprintf("%s holds %.80q, which is not a valid id", member, id)).In(member)
	}
	return v1alpha1.ResourceName(id), nil
}

func idsOf(given []string) ([]v1alpha1.ResourceName, error) {
	ids := make([]v1alpha1.ResourceName, 0, len(given))
	for _, id := range given {
		name, err := nameIn("ids", id)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ids, name) {
			ids = append(ids, name)
		}
	}
	return ids, nil
}

// selectionOf reads the filters, which are the same as those of the list of findings.
func selectionOf(given openapi.Parameters) (*v1alpha1.FindingSelection, error) {
	filter, err := strictFilter(given)
	if err != nil {
		return nil, inBody(memberFilters, err)
	}
	s := &v1alpha1.FindingSelection{
		State:      only[v1alpha1.FindingState](filter.Status),
		UserStatus: only[v1alpha1.UserStatus](filter.UserStatus),
		Severity:   only[v1alpha1.Level](filter.Severity),
		Category:   only[v1alpha1.FindingCategory](filter.Category),
		Class:      filter.Class,
		Tool:       given.Get("tool"), Rule: given.Get("rule"), Owner: given.Get("owner"),
		Vulnerability: given.Get("vulnerability"), Package: given.Get("package"), File: given.Get("file"),
		CreatedSince: timeOf(filter.Created.Since), CreatedUntil: timeOf(filter.Created.Until),
		UpdatedSince: timeOf(filter.Updated.Since), UpdatedUntil: timeOf(filter.Updated.Until),
		Text: given.Get("text"), Stale: filter.Stale, Suppressed: filter.Suppressed,
	}
	if filter.MinScore != nil {
		s.MinScore = strconv.FormatFloat(float64(*filter.MinScore)/10, 'f', 1, 64)
	}
	for name, to := range map[string]*v1alpha1.ResourceName{
		"repo_id": &s.Repository, "project_id": &s.Project, "policy": &s.Policy,
	} {
		if id, there := given.Lookup(name); there {
			if *to, err = nameIn(memberFilters+"."+name, id); err != nil {
				return nil, err
			}
		}
	}
	if given.Empty() {
		return nil, problem.InvalidBody("filters needs at least one filter").In(memberFilters).Coded(problem.CodeMissing)
	}
	return s, nil
}

// only returns a filter for one value.
func only[T ~string](value *string) []T {
	if value == nil {
		return nil
	}
	return []T{T(*value)}
}

// timeOf returns a bound as it is stored.
func timeOf(at *time.Time) *v1alpha1.Time {
	if at == nil {
		return nil
	}
	return new(findingquery.Bound(*at))
}

// inBody turns a problem with a query into one with an object in the body.
func inBody(object string, err error) error {
	p, is := errors.AsType[*problem.Problem](err)
	if !is {
		return err
	}
	return problem.InvalidBody(object + "." + p.Detail).In(object + "." + p.Field)
}

// decisionOf returns the decision of an operation.
func decisionOf(given *openapi.GivenTriage) (*v1alpha1.OperationDecision, error) {
	set := &v1alpha1.OperationDecision{Comments: given.Comments}
	if given.UserStatus == nil && given.Comments == nil {
		return nil, problem.InvalidBody("at least one of set.user_status, set.comments is required").
			In("set.user_status").Coded(problem.CodeMissing)
	}
	if given.UserStatus != nil {
		set.UserStatus = v1alpha1.UserStatus(*given.UserStatus)
	}
	decides := set.UserStatus != "" && set.UserStatus != v1alpha1.UserStatusOpen
	const belongs = " belongs to a decision: set.user_status must be active or muted"
	if given.Reason != nil {
		if set.Reason = v1alpha1.DecisionReason(*given.Reason); !decides {
			return nil, problem.InvalidBody("set.reason" + belongs).In("set.reason")
		}
	}
	if given.ExpiresAt == nil {
		return set, nil
	}
	end, err := endOf(*given.ExpiresAt)
	if err == nil && !decides {
		err = problem.InvalidBody("expires_at" + belongs).In(memberExpiresAt)
	}
	set.ExpiresAt = end
	if err != nil {
		return nil, inBody(memberSet, err)
	}
	return set, nil
}
