package handlers

import (
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// valuesThatMatchNothing has a value for each filter that a finding without any facts does not have.
var valuesThatMatchNothing = map[string]string{
	"status": "closed", "user_status": "muted", "severity": "high", "repo_id": "shop", "project_id": "api",
	"class": "CWE-89", "tool": "gosec", "rule": "G201", "vulnerability": "CVE-2026-1", "package": "left-pad",
	"owner": "team-a", "category": "Secret", "created_since": "2999-01-01T00:00:00Z", "created_until": "0001-01-01T00:00:00Z",
	"updated_since": "2999-01-01T00:00:00Z", "updated_until": "0001-01-01T00:00:00Z", "min_score": "9", "text": "injection",
	"stale": "true", "suppressed": "true", "file": "src/db.go", "policy": "mute-tests",
}

// valuesThatMatchAll are values of filters that narrow nothing.
var valuesThatMatchAll = map[string][]string{
	"text": {" "}, "created_since": {"0001-01-01T00:00:00Z", "0001-01-01T00:00:00-05:00"},
	"updated_since": {"0001-01-01T00:00:00Z", "1970-01-01T00:00:00-12:00"},
	"created_until": {"9999-12-30T00:00:00Z", "9999-12-31T23:59:59.9999999Z"},
	"updated_until": {"9999-12-31T00:00:00+14:00", "9999-12-31T23:59:59+14:00"},
}

// An operation that ignored one of its filters would decide about findings that nobody asked for. A list must read each;
// apiserver/readmodel tests what it then selects.
func TestEachFilterNarrowsAnOperationAndIsReadForLists(t *testing.T) {
	contract, err := openapi.Load()
	harness.Must(t, err)
	operations, err := openapi.Operations(contract)
	harness.Must(t, err)
	nobody := func(v1alpha1.ResourceName) string { return "" }
	for _, parameter := range contract.Paths.Find("/v2/findings").Get.Parameters {
		name := parameter.Value.Name
		if slices.Contains(pageParameters, name) {
			continue
		}
		value, known := valuesThatMatchNothing[name]
		if !known {
			t.Errorf("%s: add a value to valuesThatMatchNothing", name)
			continue
		}
		given, err := operations["listFindingsV2"].ParseQuery(url.Values{name: {value}}.Encode())
		harness.Must(t, err)
		spec, err := selectionOf(given)
		harness.Must(t, err)
		selection, err := findingquery.NewSelection(spec)
		harness.Must(t, err)
		if selection.Matches(&v1alpha1.Finding{}, nobody) {
			t.Errorf("%s=%s selects a finding without any facts: add %[1]s to selectionOf, or to matchesFacts or "+
				"matchesDecision in internal/findingquery: %+[3]v", name, value, spec)
		}
		if shown := render.OperationFilters(spec); len(shown) != 1 {
			t.Errorf("an operation with %s=%s shows the filters %v: add %[1]s to render.OperationFilters", name, value, shown)
		}
		filter, err := findingFilter(given)
		harness.Must(t, err)
		if reflect.ValueOf(filter).IsZero() {
			t.Errorf("lists ignore %s=%s: read %[1]s in findingFilter", name, value)
		}
	}
	for name, values := range valuesThatMatchAll {
		for _, value := range values {
			given, err := operations["listFindingsV2"].ParseQuery(url.Values{name: {value}}.Encode())
			harness.Must(t, err)
			_, err = selectionOf(given)
			if p := problem.Of(err); p.Status != http.StatusBadRequest || p.Field != "filters."+name {
				t.Errorf("%s=%s is answered with %+v", name, value, p)
			}
		}
	}
}
