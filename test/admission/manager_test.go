package admission_test

import (
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
func scan(t *testing.T, as client.Client, finding *v1alpha1.Finding) error {
	t.Helper()
	object := toUnstructured(t, finding)
	unstructured.RemoveNestedField(object.Object, "spec", "triage")
	apply := client.ApplyConfigurationFromUnstructured(object)
	return as.Apply(t.Context(), apply, client.FieldOwner(scannerManager), client.ForceOwnership)
}

func TestARescanKeepsADecision(t *testing.T) {
	c := newCast(t, "rescan")
	for _, decider := range []who{triager, facade} {
		t.Run(string(decider), func(t *testing.T) {
			name := "by-" + string(decider)
			finding := func() *builder.FindingBuilder {
				return builder.Finding(name).In(c.namespace).Tool("gosec", v1alpha1.CategoryCode)
			}
			harness.Must(t, scan(t, c.as(scanner), finding().Build()))
			live := env.Stored(t, toUnstructured(t, finding().Build()))
			wantTriage(t, live, map[string]any{"userStatus": "open"})
			muted := triage(map[string]any{"userStatus": "muted", "comments": "accepted", "by": "apikey/ci"})
			harness.Must(t, sendMergePatch(t, c.as(decider), live, muted, ""))
			by := map[who]string{triager: c.members[triager].username, facade: "apikey/ci"}[decider]
			decided := map[string]any{"userStatus": "muted", "comments": "accepted", "by": by}
			version := env.Stored(t, live).GetResourceVersion()
			harness.Must(t, scan(t, c.as(scanner), finding().Build()))
			harness.Same(t, "resourceVersion after the same scan", version, env.Stored(t, live).GetResourceVersion())
			for step, facts := range []*builder.FindingBuilder{
				finding().Severity(v1alpha1.LevelHigh),
				finding().Closed(start, "scan-2"),
				finding().Title("reopened"),
			} {
				if err := scan(t, c.as(scanner), facts.Build()); err != nil {
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
	live := applied(t, builder.Finding("f").In(c.namespace).Build())
	apply := func(as who, spec map[string]any, options ...client.PatchOption) error {
		body := applyBody(live)
		body["spec"] = spec
		patch := client.RawPatch(types.ApplyPatchType, harness.JSON(t, body))
		return c.as(as).Patch(t.Context(), live.DeepCopy(), patch, append(options, client.FieldOwner("gitops"))...)
	}
	decision := map[string]any{"triage": map[string]any{"userStatus": "muted", "comments": "accepted"}}
	harness.Must(t, apply(triager, decision, client.ForceOwnership))
	before := env.Stored(t, live)
	for forced, options := range map[bool][]client.PatchOption{false: nil, true: {client.ForceOwnership}} {
		err := apply(scanner, map[string]any{"details": severe}, options...)
		if !apierrors.IsForbidden(err) && !apierrors.IsConflict(err) {
			t.Errorf("forced %t: want a refusal, got %v", forced, err)
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
