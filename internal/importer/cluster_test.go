package importer

import (
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/test/testenv"
)

// An importer that is younger than the CRDs must not lose what it brings.
func TestAFieldThatTheSchemaHasNotIsRefused(t *testing.T) {
	im := New(env.Client, Target{Namespace: testenv.SystemNamespace}, Options{})
	spec := map[string]any{"fieldOfTomorrow": 1}
	_, err := apply(t.Context(), im, fieldManager("test"), "Scan", appliedMeta{Name: "s-tomorrow"}, spec)
	if err == nil || !strings.Contains(err.Error(), "fieldOfTomorrow") {
		t.Errorf("got %v", err)
	}
}
