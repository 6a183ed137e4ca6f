package admission_test

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

const scannerManager = v1alpha1.ScannerFieldManagerPrefix + "gosec"

// scan applies all facts of a finding, as an importer does.
func scan(ctx context.Context, t *testing.T, as client.Client, finding *v1alpha1.Finding) error {
	t.Helper()
	object := toUnstructured(t, finding)
	unstructured.RemoveNestedField(object.Object, "spec", "triage")
	apply := client.ApplyConfigurationFromUnstructured(object)
	return as.Apply(ctx, apply, client.FieldOwner(scannerManager), client.ForceOwnership)
}

// declare applies a decision, as a GitOps tool does from a manifest that contains nothing else.
func declare(ctx context.Context, t *testing.T, as client.Client, name, namespace string, decision map[string]any, options ...client.PatchOption) error {
	t.Helper()
	body := map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Finding",
		"metadata": map[string]any{"name": name, "namespace": namespace},
		"spec":     map[string]any{"triage": decision},
	}
	target := &unstructured.Unstructured{Object: body}
	patch := client.RawPatch(types.ApplyPatchType, harness.JSON(t, body))
	return as.Patch(ctx, target, patch, append(options, client.FieldOwner("gitops"))...)
}

func TestARescanKeepsADecision(t *testing.T) {
	c := newCast(t, "rescan")
	for _, decider := range []who{triager, facade} {
		t.Run(string(decider), func(t *testing.T) {
			name := "by-" + string(decider)
			finding := func() *builder.FindingBuilder {
				return builder.Finding(name).In(c.namespace).Tool("gosec", v1alpha1.CategoryCode)
			}
			harness.Must(t, scan(t.Context(), t, c.as(scanner), finding().Build()))
			live := env.Stored(t, toUnstructured(t, finding().Build()))
			wantTriage(t, live, map[string]any{"userStatus": "open"})
			muted := triage(map[string]any{"userStatus": "muted", "comments": "accepted", "by": "apikey/ci"})
			harness.Must(t, sendMergePatch(t.Context(), t, c.as(decider), live, muted, ""))
			by := map[who]string{triager: c.members[triager].username, facade: "apikey/ci"}[decider]
			decided := map[string]any{"userStatus": "muted", "comments": "accepted", "by": by}
			version := env.Stored(t, live).GetResourceVersion()
			harness.Must(t, scan(t.Context(), t, c.as(scanner), finding().Build()))
			harness.Same(t, "resourceVersion after the same scan", version, env.Stored(t, live).GetResourceVersion())
			for step, facts := range []*builder.FindingBuilder{
				finding().Severity(v1alpha1.LevelHigh),
				finding().Closed(start, "scan-2"),
				finding().Title("reopened"),
			} {
				if err := scan(t.Context(), t, c.as(scanner), facts.Build()); err != nil {
					t.Fatalf("rescan %d: %v", step, err)
				}
				wantTriage(t, env.Stored(t, live), decided)
			}
		})
	}
}

// An apply deletes the fields that its field manager owned and that it omits: under the name of a
// person's manager, a scanner could remove a decision without naming it.
func TestABorrowedFieldManagerTakesNoDecisionAway(t *testing.T) {
	c := newCast(t, "borrowed")
	live := applied(t.Context(), t, builder.Finding("f").In(c.namespace).Build())
	decision := map[string]any{"userStatus": "muted", "comments": "accepted"}
	harness.Must(t, declare(t.Context(), t, c.as(triager), "f", c.namespace, decision, client.ForceOwnership))
	before := env.Stored(t, live)
	body := applyBody(live)
	body["spec"] = map[string]any{"details": severe}
	for _, force := range []bool{false, true} {
		options := []client.PatchOption{client.FieldOwner("gitops")}
		if force {
			options = append(options, client.ForceOwnership)
		}
		err := c.as(scanner).Patch(t.Context(), live.DeepCopy(), client.RawPatch(types.ApplyPatchType, harness.JSON(t, body)), options...)
		if !isRefusal(err) && !apierrors.IsConflict(err) {
			t.Errorf("force=%t: want a refusal, got %v", force, err)
		}
	}
	harness.Same(t, "the object", content(before), content(env.Stored(t, before)))
}

// The API server accepts the longest field manager name that an importer may use.
func TestTheLongestScannerFieldManagerIsAccepted(t *testing.T) {
	c := newCast(t, "manager-length")
	manager := scannerManager
	for len(manager) < v1alpha1.MaxFieldManagerLength {
		manager += "x"
	}
	apply := client.ApplyConfigurationFromUnstructured(toUnstructured(t, builder.Scan("s", start).In(c.namespace).Build()))
	for length, want := range map[int]bool{v1alpha1.MaxFieldManagerLength: true, v1alpha1.MaxFieldManagerLength + 1: false} {
		name := (manager + "x")[:length]
		if err := c.as(scanner).Apply(t.Context(), apply, client.FieldOwner(name)); (err == nil) != want {
			t.Errorf("%s", fmt.Sprintf("a field manager of %d bytes: accepted %t, want %t (%v)", length, err == nil, want, err))
		}
	}
}
