package importer

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// A finalizer may already have removed the findings of a project that is being deleted.
func TestWhatIsBeingDeletedIsRefused(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).Build()
	for kind, object := range map[string]client.Object{
		"repository": builder.Repository("repo").In("org-acme").Build(),
		"project":    builder.Project("proj").In("org-acme").Build(),
	} {
		wants := func(state string, exists bool, refusal string) {
			t.Helper()
			found, err := find(t.Context(), c, kind, client.ObjectKeyFromObject(object), object)
			harness.Same(t, kind+" "+state+": found", exists, found)
			harness.ErrorContains(t, kind+" "+state, err, refusal)
		}
		wants("absent", false, "")
		object.SetFinalizers([]string{"example.com/hold"})
		harness.Must(t, c.Create(t.Context(), object))
		wants("present", true, "")
		harness.Must(t, c.Delete(t.Context(), object))
		wants("deleting", true, "is being deleted")
	}
}
