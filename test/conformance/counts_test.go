package conformance

import (
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// Counts by the values of filters are an addition to the contract.

// counted returns the counts by field and value.
func (o *organization) counted(query string) map[string]map[string]float64 {
	o.t.Helper()
	counts := map[string]map[string]float64{}
	for _, field := range o.get(with("/v2/finding-counts", query)).wants(200, "the counts").object().records("fields") {
		values := map[string]float64{}
		for _, value := range field.records("values") {
			values[value.text("value")] = value["count"].(float64)
		}
		counts[field.text("field")] = values
	}
	return counts
}

func TestCounts_HaveExactlyTheDescribedMembers(t *testing.T) {
	o := askedOrganization(t)
	got := o.get("/v2/finding-counts").wants(200, "the counts").object()
	wantsShape(t, "counts", got, findingCountsShape)
	fields := got.records("fields")
	wantsShapes(t, "fields", fields, fieldCountsShape)
	for _, field := range fields {
		if values := field.records("values"); len(values) > 0 {
			wantsShapes(t, "values", values, valueCountShape)
		}
	}
}

// Every reported value can be used as a filter, together with the request's filters on other
// fields.
func TestCounts_EachIsTheTotalOfAListWithTheValue(t *testing.T) {
	o := askedOrganization(t)
	for _, query := range []url.Values{
		{}, {"severity": {"low"}}, {"tool": {"trivy"}, "min_score": {"5"}}, {"owner": {"team-a"}, "text": {"openssl"}},
		{"created_since": {"2026-03-02T00:00:00Z"}, "category": {"Package"}}, {"rule": {"none"}},
	} {
		for field, values := range o.counted(query.Encode()) {
			for value, count := range values {
				list := url.Values{field: {value}}
				for name, given := range query {
					if name != field {
						list[name] = given
					}
				}
				harness.Same(t, "asked for "+query.Encode()+", "+field+"="+value+": rows of the list, as counted",
					count, float64(o.get(with("/v1/findings", list.Encode())).page().Total))
			}
		}
	}
}

func TestCounts_ListTheValuesThatFindingsHave(t *testing.T) {
	o := askedOrganization(t)
	counts := o.counted("tool=trivy")
	for field, want := range map[string]map[string]float64{
		"tool":          {"gosec": 1, "trivy": 3}, // the other values of the filter are included
		"rule":          {"CVE-2019-1549": 2},
		"package":       {"openssl": 2},
		"vulnerability": {"CVE-2019-1549": 2, "GHSA-29MW-WPGM-HMR9": 1},
		"min_score":     {"9": 1, "7": 1, "4": 2, "0.1": 2},
		"owner":         {"team-a": 2, "team-b": 1},
		"status":        {"open": 3},
	} {
		harness.Same(t, field, want, counts[field])
	}
}

func TestCounts_CanBeLimitedToAFieldAndANumberOfValues(t *testing.T) {
	o := askedOrganization(t)
	got := o.get("/v2/finding-counts?field=rule&values=1").wants(200, "the counts").object()
	want := []any{map[string]any{
		"field": "rule", "distinct": 2., "values": []any{map[string]any{"value": "CVE-2019-1549", "count": 2.}},
	}}
	if diff := cmp.Diff(want, got.list("fields")); diff != "" || got["total"] != 4. {
		t.Errorf("of %v (-want +got):\n%s", got["total"], diff)
	}
}

func TestCounts_ATypoIsRefused(t *testing.T) {
	c := anyKey(t)
	for query, name := range map[string]string{
		"severty=high": "severty", "field=severty": "field", "values=0": "values", "cursor=x": "cursor", "text=+": "text",
		"created_since=0001-01-01T00:00:00Z": "created_since",
	} {
		c.get(with("/v2/finding-counts", query)).wants(400, query).wantsDetail(name)
	}
}
