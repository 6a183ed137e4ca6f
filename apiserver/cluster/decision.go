package cluster

import (
	"cmp"
	"time"

	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// Decision is a user's decision about an object.
type Decision struct {
	findingstate.Decision
	// By is the author that the object records.
	By string
	// Basis holds the facts that the decision is based on. Empty means those of the changed state, or none for kinds whose
	// decisions have no basis.
	Basis string
}

// Known is an object as a caller knows it, with the decisions made about it so far.
type Known[T kube.Object] struct {
	Object   T
	Standing findingstate.Standing
}

// mergePatch returns the JSON merge patch that applies the decision to the object, provided that the API server
// still holds exactly the given state. It contains only the differences: a decision that changes nothing keeps
// the author of the last one, and the API server writes nothing.
func mergePatch[T kube.Object](known Known[T], decision Decision, now time.Time) ([]byte, error) {
	spec := map[string]any{}
	standing := known.Standing
	standing.Facts = cmp.Or(decision.Basis, standing.Facts)
	if triage := decision.Changes(standing, now); len(triage) > 0 {
		triage["by"] = decision.By
		spec["triage"] = triage
	}
	return kube.MergePatch(known.Object.GetResourceVersion(), "spec", spec)
}
