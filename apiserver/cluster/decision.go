package cluster

import (
	"encoding/json"

	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// Decision is what a person decided about an object.
type Decision struct {
	findingstate.Decision
	// By is who decided, as the object records it.
	By string
	// Basis is the facts that were decided upon; empty where decisions rest on none.
	Basis string
}

// Known is an object as a caller knows it, and what was decided about it until then.
type Known[T kube.Object] struct {
	Object   T
	Standing findingstate.Standing
}

// mergePatch returns the JSON merge patch that turns the object into what was decided, if
// the API server still has the very state that is given. It names only what differs: a
// decision that changes nothing is nobody's, so the object keeps the name of whoever made
// the last one, and the API server writes nothing.
func mergePatch[T kube.Object](known Known[T], decision Decision) ([]byte, error) {
	patch := map[string]any{
		"metadata": map[string]any{"resourceVersion": known.Object.GetResourceVersion()},
	}
	standing := known.Standing
	standing.Facts = decision.Basis
	if triage := decision.Changes(standing); len(triage) > 0 {
		triage["by"] = decision.By
		patch["spec"] = map[string]any{"triage": triage}
	}
	return json.Marshal(patch)
}
