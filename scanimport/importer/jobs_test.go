package importer

import (
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// A job replaces only its own findings.
func TestWhichJobOwnsAFinding(t *testing.T) {
	scanned := series{category: v1alpha1.CategoryPackage}
	past := history{
		"nightly":    {series: scanned, succeeded: true},
		"nightly-2":  {series: scanned, succeeded: true},
		"incomplete": {series: series{category: v1alpha1.CategorySecret}, startedAt: time.Unix(1, 0)},
	}
	for name, tc := range map[string]struct {
		reason         string
		category       v1alpha1.FindingCategory
		scan, closedBy string
		own            bool
	}{
		"its own":                  {"", v1alpha1.CategoryPackage, "nightly", "", true},
		"of another category":      {"a tool may look for several things at once", v1alpha1.CategorySecret, "nightly", "", true},
		"of a job without success": {"it would be closed as not reported", v1alpha1.CategorySecret, "incomplete", "", false},
		"closed by this job":       {"its own job reports it again", v1alpha1.CategorySecret, "incomplete", "nightly-2", false},
		"scan removed, closed":     {"the closing scan is the best that is known", v1alpha1.CategorySecret, "removed", "nightly-2", true},
		"scan removed":             {"no other job has succeeded", v1alpha1.CategorySecret, "removed", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			f := v1alpha1.Finding{Spec: v1alpha1.FindingSpec{Category: tc.category, Scan: &v1alpha1.FindingScan{ScanID: tc.scan}}}
			if tc.closedBy != "" {
				f.Spec.Closed = &v1alpha1.FindingClosure{ScanID: tc.closedBy}
			}
			if own, _ := past.ofJob(scanned, []v1alpha1.Finding{f}); len(own) == 1 != tc.own {
				t.Errorf("own: %t, want %t, because %s", len(own) == 1, tc.own, tc.reason)
			}
		})
	}
}
