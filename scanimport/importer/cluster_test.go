package importer

import (
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/internal/kube"
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
