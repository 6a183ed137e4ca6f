package importer

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// An importer that is newer than the CRDs must not lose data silently.
func TestUnknownFieldIsRefused(t *testing.T) {
	spec := map[string]any{"fieldOfTomorrow": 1}
	meta := appliedMeta{Namespace: testenv.SystemNamespace, Name: "s-tomorrow"}
	_, err := apply(t.Context(), &Client{Client: env.Get(t).Client}, fieldManager("test"), "Scan", meta, spec)
	if err == nil || !strings.Contains(err.Error(), "fieldOfTomorrow") {
		t.Fatalf("got %v", err)
	}
	if kube.IsTemporary(err) {
		t.Errorf("%v is tried again, though it does not go away by itself", err)
	}
}

func TestMissingTargetNamesTheRoleThatMayCreateIt(t *testing.T) {
	target := Target{Namespace: testenv.SystemNamespace, Repository: "none", Project: "none"}
	im := New(&Client{Client: env.Get(t).Client}, target, Options{})
	_, err := im.repository(t.Context(), []*Batch{{}})
	for _, part := range []string{`no repository "none"`, "create and report on repositories.appsec.dev", "ClusterRole findings-admin"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got %v, want %q in it", err, part)
		}
	}
}

// A finalizer may already have removed the findings of a project that is being deleted.
func TestWhatIsBeingDeletedIsRefused(t *testing.T) {
	env := env.Get(t)
	namespace := env.Organization(t, "deleting")
	for kind, object := range map[string]client.Object{
		"repository": builder.Repository("repo").In(namespace).Build(),
		"project":    builder.Project("proj").In(namespace).Build(),
	} {
		key := client.ObjectKeyFromObject(object)
		wants := func(state string, exists bool, refusal string) {
			t.Helper()
			found, err := find(t.Context(), &Client{Client: env.Client}, kind, key, object)
			harness.Same(t, kind+" "+state+": found", exists, found)
			if err == nil && refusal != "" || err != nil && (refusal == "" || !strings.Contains(err.Error(), refusal)) {
				t.Errorf("%s %s: got %v, want %q", kind, state, err, refusal)
			}
		}
		wants("absent", false, "")
		object.SetFinalizers([]string{"example.com/hold"})
		harness.Must(t, env.Client.Create(t.Context(), object))
		wants("present", true, "")
		harness.Must(t, env.Client.Delete(t.Context(), object))
		wants("deleting", true, "is being deleted")
		env.Patch(t, object, `{"metadata":{"finalizers":null}}`)
	}
}
