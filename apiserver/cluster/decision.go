package cluster

import (
	"encoding/json"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// Decision is what a person decided about a finding.
type Decision struct {
	findingstate.Decision
	// By is who decided, as the finding records it.
	By string
	// Basis is the facts that were decided upon.
	Basis string
}

// Known is a finding as a caller knows it.
type Known struct {
	*v1alpha1.Finding
	// Stale says that the decision that the finding has rests on facts that are no longer so.
	Stale bool
}

func knownOf(finding *v1alpha1.Finding) Known { return Known{finding, findingstate.Stale(finding)} }

// mergePatch returns the JSON merge patch that turns the finding into what was decided, if
// the API server still has the very state that is given. It names only what differs: a
// decision that changes nothing is nobody's, so the finding keeps the name of whoever made
// the last one, and the API server writes nothing.
func mergePatch(finding Known, decision Decision) ([]byte, error) {
	patch := map[string]any{
		"metadata": map[string]any{"resourceVersion": finding.ResourceVersion},
	}
	triage := decision.Changes(findingstate.Standing{
		UserStatus: findingstate.UserStatus(finding.Finding), Triage: finding.Spec.Triage, Stale: finding.Stale,
		Facts: decision.Basis,
	})
	if len(triage) > 0 {
		triage["by"] = decision.By
		patch["spec"] = map[string]any{"triage": triage}
	}
	return json.Marshal(patch)
}
