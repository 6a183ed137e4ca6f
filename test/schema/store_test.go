package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/corpus"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// stamped are the signature and the signed members that the API server sets, by kind.
var stamped = map[string][][]string{
	"Finding":         {{"spec", "triage", "by"}, {"spec", "triage", "basis"}},
	"ReviewIssue":     {{"spec", "triage", "by"}},
	"TriageOperation": {{"spec", "by"}, {"spec", "committedBy"}},
	"TriagePolicy":    {{"spec", "by"}},
}

func TestAnObjectFilledToItsBoundsIsStored(t *testing.T) {
	acceptAllKinds(t)
	for kind, crd := range crds(t) {
		t.Run(kind, func(t *testing.T) {
			schema := schemaOf(t, crd)
			g := &corpus.Generator{Full: true}
			object := newObject(crd, "filled")
			for _, part := range []string{"spec", "status"} {
				member := schema.Properties[part]
				object.Object[part] = g.Value(&member, part, 0)
			}
			switch kind {
			case "Finding", "ReviewIssue": // an undecided object has neither reason nor end
				decide(t, object)
			case "TriageOperation": // reason and end require a decision
				harness.Must(t, unstructured.SetNestedField(object.Object, "muted", "spec", "set", "userStatus"))
				unstructured.RemoveNestedField(object.Object, "spec", "committedBy") // else it comes from a backup
			case "TriagePolicy": // it must end after it begins
				for _, path := range [][]string{{"spec", "validUntil"}, {"status", "inForce", "spec", "validUntil"}} {
					harness.Must(t, unstructured.SetNestedField(object.Object, "9999-12-31T00:00:00Z", path...))
				}
			}
			want := object.DeepCopy()

			// As an importer writes it: with an owner for every field.
			spec := object.DeepCopy()
			unstructured.RemoveNestedField(spec.Object, "status")
			apply := client.ApplyConfigurationFromUnstructured(spec)
			if err := env.Client.Apply(t.Context(), apply, client.FieldOwner("schema-test"), client.ForceOwnership); err != nil {
				t.Fatalf("store the spec: %v", err)
			}
			stored := env.Stored(t, object)
			stored.Object["status"] = object.Object["status"]
			if err := controller(t).Status().Update(t.Context(), stored); err != nil {
				t.Fatalf("store the status: %v", err)
			}
			label := testenv.MergePatch(`{"metadata":{"labels":{"a":"b"}}}`)
			if err := env.Client.Patch(t.Context(), stored, label); err != nil {
				t.Fatalf("the policies' comparison of the whole spec must stay within their budget: %v", err)
			}

			stored = env.Stored(t, object)
			for _, path := range stamped[kind] {
				unstructured.RemoveNestedField(want.Object, path...)
				unstructured.RemoveNestedField(stored.Object, path...)
			}
			for _, part := range []string{"spec", "status"} {
				if diff := cmp.Diff(want.Object[part], stored.Object[part]); diff != "" {
					t.Errorf("%s (-sent +stored):\n%.2000s", part, diff)
				}
			}
		})
	}
}

// defaultStatus is the status of a new object, for kinds that have one by default. Manifests hold no status, so that it
// is no lasting difference for GitOps tools.
var defaultStatus = map[string]any{
	"Finding": map[string]any{"state": "open", "userStatus": "open"},
	// Tools that wait for it, such as Flux, take an object without a status for ready. The first write of the status
	// leaves out counts that the default has: without its zeros, columns would be blank.
	"Organization":    asMap(&v1alpha1.OrganizationStatus{ObservedGeneration: -1}),
	"WebhookDelivery": map[string]any{"phase": "Pending", "observedGeneration": int64(-1)},
}

func asMap(value any) map[string]any {
	out, err := kruntime.DefaultUnstructuredConverter.ToUnstructured(value)
	if err != nil {
		panic(err)
	}
	return out
}

// A default would be a permanent difference between what GitOps declares and what is stored.
func TestTheServerInjectsNoDefaultButTriage(t *testing.T) {
	acceptAllKinds(t)
	for kind, crd := range crds(t) {
		t.Run(kind, func(t *testing.T) {
			for _, full := range []bool{false, true} {
				if full && kind == "TriageOperation" {
					continue // its rules require members in each object
				}
				object := newObject(crd, map[bool]string{false: "default-minimal", true: "default-nested"}[full])
				spec := schemaOf(t, crd).Properties["spec"]
				object.Object["spec"] = (&corpus.Generator{Full: full}).Value(&spec, "spec", 0)
				if full {
					// Every object is present but contains only required members.
					object.Object["spec"] = hollow(&spec, object.Object["spec"])
				}
				want := object.DeepCopy()
				if triaged(kind) {
					harness.Must(t, unstructured.SetNestedField(want.Object, "open", "spec", "triage", "userStatus"))
				}
				env.Create(t, object)
				got := env.Stored(t, object)
				for _, path := range stamped[kind] {
					if kind != "Finding" {
						unstructured.RemoveNestedField(want.Object, path...)
						unstructured.RemoveNestedField(got.Object, path...)
					}
				}
				harness.Same(t, "spec", want.Object["spec"], got.Object["spec"])
				harness.Same(t, "status", defaultStatus[kind], got.Object["status"])
			}
		})
	}
}

// hollow removes every member that is neither required nor contains other members.
func hollow(schema *apiextensionsv1.JSONSchemaProps, value any) any {
	object, ok := value.(map[string]any)
	if !ok || schema.AdditionalProperties != nil {
		return value
	}
	out := map[string]any{}
	for name, member := range object {
		memberSchema := schema.Properties[name]
		required := false
		for _, r := range schema.Required {
			required = required || r == name
		}
		if required || memberSchema.Type == "object" && memberSchema.AdditionalProperties == nil {
			out[name] = hollow(&memberSchema, member)
		}
	}
	return out
}

// An apply leaves an item of a set in place if somebody else has added it too, and reports success: Git would take a
// scope away from a key that keeps it.
func TestWhatAManifestNoLongerListsIsGoneOrAConflict(t *testing.T) {
	acceptAllKinds(t)
	for _, c := range []struct {
		path   string
		object client.Object
		items  []any
	}{
		{"spec.scopes", builder.APIKey("listed").In("default").Build(), []any{"findings:read", "findings:triage"}},
		{"spec.events", builder.WebhookEndpoint("listed").In("default").Build(), []any{"finding.*", "scan.completed"}},
		{"spec.imports.projects", builder.Organization("listed").Build(), []any{"services/*", "web"}},
	} {
		object := content(t, c.object)
		edit{c.path: c.items}.apply(object.Object)
		apply := func(items []any, options ...client.ApplyOption) error {
			edit{c.path: items}.apply(object.Object)
			return applyFromGit(t, object, options...)
		}
		harness.Must(t, env.Client.Create(t.Context(), object.DeepCopy(), client.FieldOwner("kubectl-create")))
		harness.NoError(t, c.path+" as created", apply(c.items))
		if err := apply(c.items[:1]); !apierrors.IsConflict(err) {
			t.Errorf("%s with an item less: got %v, want a conflict", c.path, err)
		}
		harness.NoError(t, c.path+" with an item less, forced", apply(c.items[:1], client.ForceOwnership))
		stored, _, err := unstructured.NestedSlice(env.Stored(t, object).Object, strings.Split(c.path, ".")...)
		harness.Must(t, err)
		harness.Same(t, c.path, c.items[:1], stored)
	}
}

func applyFromGit(t *testing.T, object *unstructured.Unstructured, options ...client.ApplyOption) error {
	manifest := client.ApplyConfigurationFromUnstructured(object.DeepCopy())
	return env.Client.Apply(t.Context(), manifest, append(options, client.FieldOwner("git"))...)
}

// A key whose scopes were stored as a set: the first sync after the upgrade, without force, must not remove what others
// have added.
func TestTheOwnerOfAStoredEntryOwnsTheList(t *testing.T) {
	acceptAllKinds(t)
	defer listScopesAs(t, "atomic")
	listScopesAs(t, "set")
	key := content(t, builder.APIKey("upgraded").In("default").Scopes("findings:read").Build())
	harness.Must(t, applyFromGit(t, key))
	stored := env.Stored(t, key)
	edit{"spec.scopes": []any{"findings:read", "findings:import"}}.apply(stored.Object)
	harness.Must(t, env.Client.Update(t.Context(), stored, client.FieldOwner("kubectl-edit")))
	harness.NoError(t, "a sync before the upgrade", applyFromGit(t, key))

	listScopesAs(t, "atomic")
	wantAnswer(t, applyFromGit(t, key), `conflict with "kubectl-edit"`, "the manifest lacks an entry that others have added")
}

// listScopesAs changes the type of the list of scopes. Only a set refuses an item that is listed twice.
func listScopesAs(t *testing.T, kind string) {
	t.Helper()
	const path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/scopes/x-kubernetes-list-type"
	patch := client.RawPatch(types.JSONPatchType, fmt.Appendf(nil, `[{"op":"replace","path":%q,"value":%q}]`, path, kind))
	harness.Must(t, env.Client.Patch(t.Context(), content(t, crds(t)["APIKey"]), patch))
	twice := content(t, builder.APIKey("twice").In("default").Scopes("findings:read", "findings:read").Build())
	active := Succeed()
	if kind == "set" {
		active = MatchError(ContainSubstring("Duplicate value"))
	}
	harness.Eventually(t, func(g Gomega) {
		g.Expect(env.Client.Create(t.Context(), twice.DeepCopy(), client.DryRunAll)).To(active)
	})
}

// With a set, it removed the list.
func TestAServerSideApplyThatEmptiesAListIsRefused(t *testing.T) {
	acceptAllKinds(t)
	endpoint := content(t, builder.WebhookEndpoint("emptied").In("default").Events("finding.*").Build())
	harness.Must(t, applyFromGit(t, endpoint))
	edit{"spec.events": []any{}}.apply(endpoint.Object)
	wantAnswer(t, applyFromGit(t, endpoint), "at least 1 item", "without its list an endpoint gets all events")
}
