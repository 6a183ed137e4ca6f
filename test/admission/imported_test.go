package admission_test

import (
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
)

// The history shows which key imported a finding, so a scanner must not be able to claim one.
func TestWhichKeyImportedIsForUploadsToSay(t *testing.T) {
	c := newCast(t, "imported")
	for name, allowed := range map[who]bool{uploads: true, admin: true, scanner: false, reporter: false} {
		scan := builder.Scan("s-"+string(name), start).In(c.namespace).Mutate(func(s *v1alpha1.Scan) { s.Spec.ImportedBy = "apikey/ci" }).Build()
		err := c.as(name).Create(t.Context(), scan)
		if (err == nil) != allowed || (err != nil && !isRefusal(err)) {
			t.Errorf("%s creates a scan that was imported by a key: error %v, want allowed %t", name, err, allowed)
		}
	}
}
