package kube

import (
	"bytes"
	"encoding/json"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// MergePatch returns a JSON merge patch that changes a member of an object, such as "spec", if the object still has the
// resource version; else the API server returns 409.
func MergePatch(resourceVersion, member string, change any) ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": resourceVersion}, member: change})
}

// Difference returns the JSON merge patch that turns before into after; nil if they are the same in JSON, which is the
// stored form: omitted empty lists, or one time in two zones, make no difference.
func Difference(before, after any) (json.RawMessage, error) {
	from, err := json.Marshal(before)
	if err != nil {
		return nil, err
	}
	to, err := json.Marshal(after)
	if err != nil {
		return nil, err
	}
	difference, err := jsonpatch.CreateMergePatch(from, to)
	if err != nil || bytes.Equal(difference, []byte("{}")) {
		return nil, err
	}
	return difference, nil
}
