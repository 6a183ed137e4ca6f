package import_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// A closed finding that was retired and is reported again is a new finding with the same name: it
// is undecided, and detected now.
func TestARetiredFindingThatComesBackIsCreatedAnew(t *testing.T) {
	p := newProject(t)
	stays := builder.Result{Rule: "stays", Path: "a.go", Message: "stays", Line: 1}
	goes := builder.Result{Rule: "goes", Path: "b.go", Message: "goes", Level: "warning", Line: 2}
	p.imports(document(stays, goes), commitA)
	before := p.titled("goes")
	p.triage(before.Name, `{"spec":{"triage":{"userStatus":"active"}}}`)
	p.did("the second import", p.imports(document(stays), commitB), counts{Unchanged: 1, Closed: 1})
	closed := p.titled("goes")
	harness.Must(p, env.Client.Delete(t.Context(), &closed, client.Preconditions{UID: new(closed.UID), ResourceVersion: new(closed.ResourceVersion)}))

	p.did("an import that does not report it", p.imports(document(stays), commitB), counts{Unchanged: 1})
	p.did("the import that reports it again", p.imports(document(stays, goes), commitB), counts{Created: 1, Unchanged: 1})
	after := p.titled("goes")
	switch {
	case after.Name != before.Name || after.UID == before.UID:
		t.Errorf("got %s with UID %s, want %s with another UID than %s", after.Name, after.UID, before.Name, before.UID)
	case after.Spec.Closed != nil || after.Spec.Triage.UserStatus != v1alpha1.UserStatusOpen:
		t.Errorf("closed %v, triaged as %s: want it as new", after.Spec.Closed, after.Spec.Triage.UserStatus)
	}
}
