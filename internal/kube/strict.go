package kube

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// strictSpecs returns an empty spec for each kind that decides about the findings it selects. An unknown member of such
// a spec may narrow the selection: without it the object would decide about more findings. An APIKey or a
// WebhookEndpoint may be narrowed, too, but skipping one would end a client's access, or lose events for good.
var strictSpecs = map[string]func() any{
	"TriageOperation": func() any { return &v1alpha1.TriageOperationSpec{} },
	"TriagePolicy":    func() any { return &v1alpha1.TriagePolicySpec{} },
}

// refuseUnknown returns an error if the spec of an object of a strict kind has a member that this version does not
// know.
func refuseUnknown(kind string, raw []byte) error {
	empty, strict := strictSpecs[kind]
	if !strict {
		return nil
	}
	var object struct {
		Spec json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(raw, &object); err != nil || object.Spec == nil { // a bookmark has none
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(object.Spec))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(empty()); err != nil {
		return fmt.Errorf("the spec has a member that this version does not know and that may narrow what it selects "+
			"(upgrade the controllers and the REST API; do not remove the member): %w", err)
	}
	return nil
}
