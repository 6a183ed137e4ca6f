package admission_test

import (
	"testing"

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
