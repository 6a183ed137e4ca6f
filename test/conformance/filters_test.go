package conformance

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
)

// Filters of findings are an addition to the contract.
func TestFindings_FiltersLeaveOutWhatDoesNotMatch(t *testing.T) {
	o := newOrganization(t)
	class := func(class string) func(*v1alpha1.Finding) {
		return func(f *v1alpha1.Finding) { f.Spec.Class = class }
	}
	o.create(
		builder.Finding("f-low").In(o.namespace).Build(),
		builder.Finding("f-high").In(o.namespace).Severity("high").Mutate(class("CWE-22")).Build(),
		builder.Finding("f-muted").In(o.namespace).Triage("muted", "").Mutate(class("cwe-22")).Build(),
		builder.Finding("f-active").In(o.namespace).Triage("active", "").Severity("medium").Build(),
		builder.Finding("f-closed").In(o.namespace).Closed(firstFinding, "").Project("repo", "other").Build(),
		builder.Finding("f-other").In(o.namespace).Project("other", "proj").Build(),
	)
	o.settled(6)
	for _, path := range []string{"/v1/findings", "/v2/findings"} {
		for _, test := range []struct {
			query string
			want  []string
		}{
			{"status=open", []string{"f-active", "f-high", "f-low", "f-other"}},
			{"status=open_muted", []string{"f-muted"}},
			{"status=closed", []string{"f-closed"}},
			{"user_status=open", []string{"f-closed", "f-high", "f-low", "f-other"}},
			{"user_status=active", []string{"f-active"}},
			{"user_status=muted", []string{"f-muted"}},
			{"severity=high", []string{"f-high"}},
			{"severity=medium", []string{"f-active"}},
			{"severity=low", []string{"f-closed", "f-low", "f-muted", "f-other"}},
			{"repo_id=other", []string{"f-other"}},
			{"project_id=other", []string{"f-closed"}},
			{"repo_id=repo&project_id=proj", []string{"f-active", "f-high", "f-low", "f-muted"}},
			{"class=CWE-22", []string{"f-high"}},
			{"class=", []string{"f-active", "f-closed", "f-high", "f-low", "f-muted", "f-other"}},
			{"repo_id=none", nil},
			{"status=open&user_status=muted", nil},
			{"status=open&severity=low&project_id=proj", []string{"f-low", "f-other"}},
		} {
			page := o.get(with(path, test.query)).page()
			got := page.ids()
			slices.Sort(got)
			if !cmp.Equal(append([]string{}, test.want...), got) || page.Total != len(test.want) {
				t.Errorf("%s?%s: got %v, total %d; want %v", path, test.query, got, page.Total, test.want)
			}
		}
	}
}

func TestFindings_UnknownFilterValuesAreRefused(t *testing.T) {
	c := anyKey(t)
	for _, path := range []string{"/v1/findings", "/v2/findings"} {
		for _, query := range []string{
			"status=muted", "status=OPEN", "status=%20", "user_status=closed", "severity=critical",
			"repo_id=%00", "project_id=%ff", "class=%ff", "repo_id=" + strings.Repeat("a", 254), "status=open&status=closed",
		} {
			c.get(with(path, query)).badQuery(query)
		}
	}
}
