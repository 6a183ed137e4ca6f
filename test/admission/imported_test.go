package admission_test

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
)

// The history shows which key imported a finding, so a scanner must not be able to claim one.
func TestOnlyUploadsRecordTheKeyThatImported(t *testing.T) {
	c := newCast(t, "imported")
	for name, allowed := range map[who]bool{uploads: true, admin: true, scanner: false, reporter: false} {
		scan := builder.Scan("s-"+string(name), start).In(c.namespace).Mutate(func(s *v1alpha1.Scan) { s.Spec.ImportedBy = "apikey/ci" }).Build()
		wantAnswer(t, c.as(name).Create(t.Context(), scan), allowed, string(name)+" says which key imported")
	}
}

// An import that did not know a scan of the branch could close findings of others, or take an old file for a new one.
func TestOnlyScansThatImportsIgnoreMayHaveTheLabelForThat(t *testing.T) {
	c := newCast(t, "uncounted")
	labelled := func(s *v1alpha1.Scan) { s.Labels = map[string]string{v1alpha1.UncountedLabel: "review"} }
	uploaded := func(s *v1alpha1.Scan) { s.Spec.Upload = &v1alpha1.ScanUpload{ID: "u-1", Scans: 1} }
	leased := func(s *v1alpha1.Scan) { s.Spec.Lease = &v1alpha1.ScanLease{Name: "import-1", Holder: "runner"} }
	scan := func(name string) *builder.ScanBuilder { return builder.Scan(name, start).In(c.namespace) }
	ended := func(name string, outcome v1alpha1.ScanOutcome) *builder.ScanBuilder {
		return scan(name).Ended(start.Add(time.Minute), outcome)
	}
	for reason, row := range map[string]struct {
		scan    *builder.ScanBuilder
		allowed bool
	}{
		"of a pull request":              {scan("s-review").OfPullRequest("r-1", 7), true},
		"a refused upload":               {ended("s-refused", v1alpha1.ScanFailed).Mutate(uploaded), true},
		"of the branch":                  {scan("s-runs"), false},
		"of the branch, failed":          {ended("s-failed", v1alpha1.ScanFailed), false},
		"an upload that runs":            {scan("s-upload").Mutate(uploaded), false},
		"an upload that succeeded":       {ended("s-done", v1alpha1.ScanSucceeded).Mutate(uploaded), false},
		"an upload that began and fails": {ended("s-broke", v1alpha1.ScanFailed).Mutate(uploaded).Mutate(leased), false},
	} {
		err := c.as(admin).Create(t.Context(), row.scan.Mutate(labelled).Build())
		if row.allowed != (err == nil) || !row.allowed && !apierrors.IsInvalid(err) {
			t.Errorf("%s: got %v", reason, err)
		}
	}
	stored := scan("s-stored").Build()
	env.Create(t, stored)
	labelled(stored)
	if err := c.as(admin).Update(t.Context(), stored); !apierrors.IsInvalid(err) {
		t.Errorf("a stored one of the branch: got %v", err)
	}
}
