package readmodel

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// scan returns a scan of project api; it belongs to an upload unless that is "".
func scan(name string, rv int, upload string, outcome v1alpha1.ScanOutcome) *v1alpha1.Scan {
	s := &v1alpha1.Scan{
		ObjectMeta: meta(acmeNamespace, name, rv),
		Spec: v1alpha1.ScanSpec{
			RepositoryRef: v1alpha1.RepositoryReference{Name: "shop"}, ProjectRef: v1alpha1.ProjectReference{Name: "api"},
			Tool: "lint", Category: v1alpha1.CategoryCode, StartedAt: v1alpha1.NewTime(epoch), Outcome: outcome,
		},
	}
	if upload != "" {
		s.Spec.Upload = &v1alpha1.ScanUpload{ID: upload, Scans: 2}
	}
	return s
}

func TestScansAreSelectedByWhatTheQueryNames(t *testing.T) {
	m, _ := newTestModel(t)
	other := scan("s-other", 9, "", "")
	other.Spec.ProjectRef.Name = "web"
	feed(t, m, scans, scan("s-1", 5, "u-1", v1alpha1.ScanSucceeded), scan("s-2", 6, "u-1", v1alpha1.ScanFailed), scan("s-3", 7, "", ""), other)
	show(t, m, organizations, organization(acme, acmeNamespace, 8), organization("other", "org-other", 10))
	for _, tc := range []struct {
		reason string
		query  ScanQuery
		want   []string
	}{
		{"all", ScanQuery{}, []string{"s-1", "s-2", "s-3", "s-other"}},
		{"by status", ScanQuery{Status: new("running")}, []string{"s-3", "s-other"}},
		{"by project", ScanQuery{Project: new("web")}, []string{"s-other"}},
		{"by upload", ScanQuery{Upload: new("u-1")}, []string{"s-1", "s-2"}},
		{"by upload and status", ScanQuery{Upload: new("u-1"), Status: new("failed")}, []string{"s-2"}},
		{"by project and repository", ScanQuery{Project: new("api"), Repository: new("shop")}, []string{"s-1", "s-2", "s-3"}},
		{"by upload and project", ScanQuery{Upload: new("u-1"), Project: new("web")}, nil},
		{"by upload and repository", ScanQuery{Upload: new("u-1"), Repository: new("none")}, nil},
		{"of another repository", ScanQuery{Project: new("api"), Repository: new("none")}, nil},
	} {
		tc.query.Limit = index.Limit{Size: 10}
		page, err := m.ListScans(acme, tc.query)
		harness.Must(t, err)
		var got []string
		for _, item := range page.Items {
			shown := harness.Decoded[struct{ ID string }](t, item.AppendTo(nil))
			got = append(got, shown.ID)
		}
		slices.Sort(got)
		if diff := cmp.Diff(tc.want, got); diff != "" || page.Total != len(tc.want) {
			t.Errorf("%s: total %d (-want +got):\n%s", tc.reason, page.Total, diff)
		}
	}
	harness.Same(t, "scans of the upload", 2, len(m.Upload(acme, "u-1")))
	harness.Same(t, "scans of the upload that another organization sees", 0, len(m.Upload("other", "u-1")))
	if _, there := m.ScanJSON("other", "s-1"); there {
		t.Error("another organization sees a scan")
	}
	feedDeletion(t, m, scans, scan("s-1", 20, "u-1", v1alpha1.ScanSucceeded))
	settle(m)
	if _, there := m.ScanJSON(acme, "s-1"); there {
		t.Error("a scan is deleted, and shown")
	}
}
