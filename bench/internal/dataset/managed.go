package dataset

import (
	"encoding/json"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// listKeys are the members that identify the items of associative lists; the items of other lists
// have one owner together.
var listKeys = map[string]string{"reviewedCommits": "sha"}

// atomicMembers are the members of a finding's spec that have one owner as a whole, and every status.
var atomicMembers = map[string]bool{
	"status": true, "repositoryRef": true, "projectRef": true, "vulnerability": true, "package": true, "agent": true,
	"doubt": true, "suppression": true, "details": true, "scan": true, "closed": true,
}

// writer is a manager that wrote a part of an object.
type writer struct {
	manager     string
	operation   metav1.ManagedFieldsOperationType
	subresource string
	at          v1alpha1.Time
}

func applied(manager string, at v1alpha1.Time) writer {
	return writer{manager: manager, operation: metav1.ManagedFieldsOperationApply, at: at}
}

// observed is the controllers' write of a status.
func observed(at v1alpha1.Time) writer {
	return writer{manager: v1alpha1.ControllerFieldManager, operation: metav1.ManagedFieldsOperationUpdate,
		subresource: "status", at: at}
}

// entry returns the API server's entry for a writer who wrote these members of a part. likeness is
// a key of all values that have the same members, whatever their content; it avoids most of the
// work.
func (w writer) entry(part, likeness string, value any) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: w.manager, Operation: w.operation, APIVersion: v1alpha1.GroupVersion.String(), Time: &metav1.Time{Time: w.at.Time},
		FieldsType: "FieldsV1", FieldsV1: fieldsOf(part, likeness, value), Subresource: w.subresource,
	}
}

// known caches field sets by part and likeness.
var known sync.Map

func fieldsOf(part, likeness string, value any) *metav1.FieldsV1 {
	key := part + "/" + likeness
	if fields, ok := known.Load(key); ok {
		return fields.(*metav1.FieldsV1)
	}
	var members any
	if err := json.Unmarshal(encode(value), &members); err != nil {
		panic(fmt.Sprintf("decode what was encoded: %v", err))
	}
	fields := metav1.NewFieldsV1(string(encode(map[string]any{"f:" + part: fieldSet(part, members)})))
	if likeness != "" {
		known.Store(key, fields)
	}
	return fields
}

// fieldSet returns the set of all fields below a value, in the form of FieldsV1.
func fieldSet(name string, value any) map[string]any {
	out := map[string]any{}
	if atomicMembers[name] {
		return out
	}
	switch value := value.(type) {
	case map[string]any:
		for member, below := range value {
			out["f:"+member] = fieldSet(member, below)
		}
	case []any:
		key, associative := listKeys[name]
		for _, item := range value {
			if members, ok := item.(map[string]any); ok && associative {
				below := fieldSet("", members)
				below["."] = map[string]any{}
				out["k:"+string(encode(map[string]any{key: members[key]}))] = below
			}
		}
	}
	return out
}

func encode(value any) []byte {
	content, err := json.Marshal(value)
	if err != nil {
		// API types and values made of them always encode.
		panic(fmt.Sprintf("encode %T: %v", value, err))
	}
	return content
}
