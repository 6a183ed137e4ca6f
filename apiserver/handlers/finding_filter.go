package handlers

import (
	"math"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
)

func findingFilter(query openapi.Parameters) (readmodel.FindingFilter, error) {
	filter := readmodel.FindingFilter{
		Status:        optional(query, "status"),
		UserStatus:    optional(query, "user_status"),
		Severity:      optional(query, "severity"),
		RepoID:        optional(query, "repo_id"),
		ProjectID:     optional(query, "project_id"),
		Class:         optional(query, "class"),
		Tool:          optional(query, "tool"),
		Rule:          optional(query, "rule"),
		Vulnerability: optional(query, "vulnerability"),
		Package:       optional(query, "package"),
		Owner:         optional(query, "owner"),
		File:          optional(query, "file"),
		Policy:        optional(query, "policy"),
		Category:      optional(query, "category"),
		Created:       period(query, "created"),
		Updated:       period(query, "updated"),
		MinScore:      tenths(query.Number("min_score")),
		Words:         findingquery.Words(query.Get("text")),
		Stale:         query.Bool("stale"),
		Suppressed:    query.Bool("suppressed"),
	}
	if reversed(filter.Created.Since, filter.Created.Until) {
		return filter, problem.InvalidQuery("created_until must not be before created_since").In("created_until")
	}
	if reversed(filter.Updated.Since, filter.Updated.Until) {
		return filter, problem.InvalidQuery("updated_until must not be before updated_since").In("updated_until")
	}
	if len(filter.Words) > findingquery.MaxWords {
		return filter, problem.InvalidQuery("text must be at most 8 words").In("text")
	}
	return filter, nil
}

// strictFilter is findingFilter for requests where a mistake must not select every finding: it refuses a filter that is
// given but selects everything.
func strictFilter(query openapi.Parameters) (readmodel.FindingFilter, error) {
	filter, err := findingFilter(query)
	if err != nil {
		return filter, err
	}
	if err = findingquery.CheckText(query.Get("text")); err != nil {
		return filter, problem.InvalidQuery(err.Error()).In("text")
	}
	for _, end := range []struct {
		name  string
		check func(string, time.Time) error
	}{
		{"created_since", findingquery.CheckSince}, {"created_until", findingquery.CheckUntil},
		{"updated_since", findingquery.CheckSince}, {"updated_until", findingquery.CheckUntil},
	} {
		at := query.Time(end.name)
		if at == nil {
			continue
		}
		if err = end.check(end.name, *at); err != nil {
			return filter, problem.InvalidQuery(err.Error()).In(end.name)
		}
	}
	return filter, nil
}

func period(query openapi.Parameters, of string) readmodel.Period {
	return readmodel.Period{Since: query.Time(of + "_since"), Until: query.Time(of + "_until")}
}

// tenths returns the lowest score, in tenths, that is not below a number.
func tenths(number *float64) *int {
	if number == nil {
		return nil
	}
	const rounding = 1e-9 // for tenths without an exact binary representation
	return new(int(math.Ceil(*number*10 - rounding)))
}
