// Package triage writes what people decide about findings to the Kubernetes API.
package triage

import (
	"encoding/json"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// Decision is what a person decided about a finding. A nil member stays as it is.
type Decision struct {
	UserStatus *v1alpha1.UserStatus
	Comments   *string
	// By is who decided, as the finding records it.
	By string
}

// mergePatch returns the JSON merge patch that turns the finding into what was decided, if
// the API server still has the very state that is given. It names only what differs: a
// decision that changes nothing is nobody's, so the finding keeps the name of whoever made
// the last one, and the API server writes nothing.
func mergePatch(finding *v1alpha1.Finding, decision Decision) ([]byte, error) {
	patch := map[string]any{
		"metadata": map[string]any{"resourceVersion": finding.ResourceVersion},
	}
	triage := map[string]any{}
	if to := decision.UserStatus; to != nil && *to != findingstate.UserStatus(&finding.Spec) {
		triage["userStatus"] = *to
	}
	if to := decision.Comments; to != nil && *to != finding.Spec.Triage.Comments {
		triage["comments"] = *to
	}
	if len(triage) > 0 {
		triage["by"] = decision.By
		patch["spec"] = map[string]any{"triage": triage}
	}
	return json.Marshal(patch)
}
