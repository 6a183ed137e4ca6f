package import_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// A closed finding that was retired and is reported again is a new finding with the same name: it
// is undecided, and detected now.
func TestARetiredFindingThatComesBackIsCreatedAnew(t *testing.T) {
	p := newProject(t)
	stays := result{rule: "stays", path: "a.go", message: "stays", level: "error", line: 1}
	goes := result{rule: "goes", path: "b.go", message: "goes", level: "warning", line: 2}
	p.imports(document(stays, goes), commitA)
	before := p.titled("goes")
	p.triage(before.Name, `{"spec":{"triage":{"userStatus":"active"}}}`)
	if s := p.imports(document(stays), commitB); s.Closed != 1 {
		t.Fatalf("second import: %+v, want 1 closed", *s)
	}
	closed := p.titled("goes")
	p.must(env.Client.Delete(t.Context(), &closed, client.Preconditions{UID: new(closed.UID), ResourceVersion: new(closed.ResourceVersion)}))

	if s := p.imports(document(stays), commitB); s.Unchanged != 1 || s.Closed+s.Created != 0 {
		t.Errorf("an import that does not report it: %+v, want 1 unchanged", *s)
	}
	if s := p.imports(document(stays, goes), commitB); s.Created != 1 || s.Reopened != 0 || s.Unchanged != 1 {
		t.Errorf("the import that reports it again: %+v, want 1 created, 1 unchanged", *s)
	}
	after := p.titled("goes")
	switch {
	case after.Name != before.Name || after.UID == before.UID:
		t.Errorf("got %s with UID %s, want %s with another UID than %s", after.Name, after.UID, before.Name, before.UID)
	case after.Spec.Closed != nil || after.Spec.Triage.UserStatus != v1alpha1.UserStatusOpen:
		t.Errorf("closed %v, triaged as %s: want it as new", after.Spec.Closed, after.Spec.Triage.UserStatus)
	}
}
