package admission_test

import (
	"maps"
	"testing"

	jsonmergepatch "github.com/evanphx/json-patch/v5"
	"gomodules.xyz/jsonpatch/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// owner is the field manager that applied the fixtures.
const owner = "fixture-owner"

// fragment is a change in the form of a JSON merge patch.
type fragment map[string]any

// onto returns object with the fragment merged in.
func (f fragment) onto(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	before, err := object.MarshalJSON()
	harness.Must(t, err)
	after, err := jsonmergepatch.MergePatch(before, harness.JSON(t, f))
	harness.Must(t, err)
	out := &unstructured.Unstructured{}
	harness.Must(t, out.UnmarshalJSON(after))
	return out
}

// hasNull reports whether the fragment removes a member, which an apply cannot express.
func hasNull(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case fragment:
		return hasNull(map[string]any(v))
	case map[string]any:
		for _, member := range v {
			if hasNull(member) {
				return true
			}
		}
	}
	return false
}

// form is a way to request a change of an existing object.
type form struct {
	name string
	// verb is the verb that RBAC requires.
	verb string
	// send requests the change as the given requester; at is "" or a subresource.
	send func(t *testing.T, as client.Client, live *unstructured.Unstructured, change fragment, at string) error
}

var forms = []form{
	{name: "update", verb: "update", send: sendUpdate},
	{name: "merge patch", verb: "patch", send: sendMergePatch},
	{name: "JSON patch", verb: "patch", send: sendJSONPatch},
	// With the name of the manager that owns the fields, so that there are no conflicts.
	{name: "apply under the owner's name", verb: "patch", send: sendApplyAsOwner},
	{name: "forced apply", verb: "patch", send: sendForcedApply},
}

func sendUpdate(t *testing.T, as client.Client, live *unstructured.Unstructured, change fragment, at string) error {
	wanted := change.onto(t, live)
	if at != "" {
		return as.SubResource(at).Update(t.Context(), wanted)
	}
	return as.Update(t.Context(), wanted)
}

func sendMergePatch(t *testing.T, as client.Client, live *unstructured.Unstructured, change fragment, at string) error {
	return sendPatch(t, as, live, client.RawPatch(types.MergePatchType, harness.JSON(t, change)), at)
}

// decide has the requester write these members of the triage.
func (c *cast) decide(t *testing.T, as who, live *unstructured.Unstructured, members map[string]any) error {
	t.Helper()
	return sendMergePatch(t, c.as(as), live, triage(members), "")
}

func sendJSONPatch(t *testing.T, as client.Client, live *unstructured.Unstructured, change fragment, at string) error {
	before, err := live.MarshalJSON()
	harness.Must(t, err)
	after, err := change.onto(t, live).MarshalJSON()
	harness.Must(t, err)
	operations, err := jsonpatch.CreatePatch(before, after)
	harness.Must(t, err)
	return sendPatch(t, as, live, client.RawPatch(types.JSONPatchType, harness.JSON(t, operations)), at)
}

func sendApplyAsOwner(t *testing.T, as client.Client, live *unstructured.Unstructured, change fragment, at string) error {
	wanted := change.onto(t, live)
	body := applyBody(wanted)
	for _, part := range []string{"spec", "status"} {
		if value, found := wanted.Object[part]; found && (part == "spec") == (at == "") {
			body[part] = value
		}
	}
	metadata := body["metadata"].(map[string]any)
	for _, member := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
		if value, found, _ := unstructured.NestedFieldNoCopy(wanted.Object, "metadata", member); found && at == "" {
			metadata[member] = value
		}
	}
	return sendPatch(t, as, live, client.RawPatch(types.ApplyPatchType, harness.JSON(t, body)), at, client.FieldOwner(owner))
}

func sendForcedApply(t *testing.T, as client.Client, live *unstructured.Unstructured, change fragment, at string) error {
	body := applyBody(live)
	for key, value := range change {
		if key != "metadata" {
			body[key] = value
			continue
		}
		maps.Copy(body["metadata"].(map[string]any), value.(map[string]any))
	}
	return sendPatch(t, as, live, client.RawPatch(types.ApplyPatchType, harness.JSON(t, body)), at,
		client.FieldOwner("another-manager"), client.ForceOwnership)
}

func applyBody(live *unstructured.Unstructured) map[string]any {
	return map[string]any{
		"apiVersion": live.GetAPIVersion(),
		"kind":       live.GetKind(),
		"metadata":   map[string]any{"name": live.GetName(), "namespace": live.GetNamespace()},
	}
}

func sendPatch(t *testing.T, as client.Client, live *unstructured.Unstructured, patch client.Patch, at string, options ...client.PatchOption) error {
	target := live.DeepCopy()
	if at == "" {
		return as.Patch(t.Context(), target, patch, options...)
	}
	var sub []client.SubResourcePatchOption
	for _, option := range options {
		sub = append(sub, option.(client.SubResourcePatchOption))
	}
	return as.SubResource(at).Patch(t.Context(), target, patch, sub...)
}

// toUnstructured drops the members that a create must not contain.
func toUnstructured(t *testing.T, object client.Object) *unstructured.Unstructured {
	t.Helper()
	content, err := kruntime.DefaultUnstructuredConverter.ToUnstructured(object)
	harness.Must(t, err)
	delete(content, "status")
	return &unstructured.Unstructured{Object: content}
}

// in sets the object's namespace and returns it.
func in(namespace string, object client.Object) client.Object {
	object.SetNamespace(namespace)
	return object
}

// applied creates the object as the administrator by a server-side apply of the fixtures' owner, so
// that every field has an owner, and returns it as stored.
func applied(t *testing.T, object client.Object) *unstructured.Unstructured {
	t.Helper()
	out := toUnstructured(t, object)
	apply := client.ApplyConfigurationFromUnstructured(out)
	if err := env.Client.Apply(t.Context(), apply, client.FieldOwner(owner)); err != nil {
		t.Fatalf("apply %s: %v", object.GetName(), err)
	}
	return env.Stored(t, out)
}

// wantAnswer checks that the API server accepted or denied the request.
func wantAnswer(t *testing.T, err error, allowed bool, reason string) {
	t.Helper()
	switch {
	case allowed && err != nil:
		t.Errorf("refused: %v\nreason it must be allowed: %s", err, reason)
	case !allowed && !apierrors.IsForbidden(err):
		t.Errorf("want a refusal, got error %v\nreason it must be refused: %s", err, reason)
	}
}

// wantRefusal checks that the API server denied the request, with these texts in the message.
func wantRefusal(t *testing.T, what string, err error, says ...string) {
	t.Helper()
	if !apierrors.IsForbidden(err) {
		t.Errorf("%s: want a refusal, got %v", what, err)
		return
	}
	harness.ErrorContains(t, what, err, says...)
}
