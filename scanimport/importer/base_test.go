package importer

import (
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/recognition"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// If the first import of the base was cut off, its findings are known, but they are not all.
func TestABaseOfWhichNoScanHasSucceededIsNamed(t *testing.T) {
	findings := []v1alpha1.Finding{{}}
	for _, tc := range []struct {
		reason            string
		past              history
		findings          []v1alpha1.Finding
		unscanned, warned int
	}{
		{"never scanned", history{}, nil, 1, 0},
		{"the only scan failed before its first finding", history{"s-1": {}}, nil, 1, 0},
		{"the only scan failed later", history{"s-1": {wrote: true}}, findings, 0, 1},
		{"another succeeded", history{"s-1": {wrote: true}, "s-2": {succeeded: true}}, findings, 0, 0},
		{"its scans are deleted", history{}, findings, 0, 0},
	} {
		out := &Compared{Known: []map[int]bool{{}}}
		batches := []*Batch{{Tool: "lint", Category: v1alpha1.CategoryCode}}
		harness.Must(t, out.compare(t.Context(), Base{}, &v1alpha1.Repository{}, batches, []int{0}, tc.past, tc.findings))
		harness.Same(t, tc.reason, []int{tc.unscanned, tc.warned}, []int{len(out.Unscanned), len(out.Warnings)})
		for _, warning := range out.Warnings {
			if !strings.Contains(warning, "No scan of the base with lint (Code) has succeeded yet") {
				t.Errorf("%s: %s", tc.reason, warning)
			}
		}
	}
}

// With many results each look for issues takes long.
func TestIssuesAreLookedForAgainOnlyWithoutMoreResults(t *testing.T) {
	doubtful := match{before: &v1alpha1.Finding{}, doubt: recognition.DoubtLine}
	same := doubtful
	same.is.Snippet, same.was.Snippet = "x", "x"
	for _, tc := range []struct {
		reason string
		match  match
		want   int
	}{
		{"the results have other code", doubtful, 1},
		{"one has the code of its finding", same, 2},
		{"none is in doubt", match{before: &v1alpha1.Finding{}}, 0},
	} {
		looked := 0
		ownOf([]reported{{}}, []int{0}, []match{tc.match}, func(ResultSet) Distances {
			looked++
			return Distances{}
		})
		harness.Same(t, tc.reason, tc.want, looked)
	}
}
