package admission_test

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// creations are the ways to create an object.
var creations = map[string]func(*testing.T, client.Client, *unstructured.Unstructured) error{
	"create": func(t *testing.T, as client.Client, object *unstructured.Unstructured) error {
		return as.Create(t.Context(), object)
	},
	"create with a generated name": func(t *testing.T, as client.Client, object *unstructured.Unstructured) error {
		object.SetGenerateName(object.GetName() + "-")
		object.SetName("")
		return as.Create(t.Context(), object)
	},
	"apply": func(t *testing.T, as client.Client, object *unstructured.Unstructured) error {
		return createByApply(t, as, object)
	},
	"forced apply": func(t *testing.T, as client.Client, object *unstructured.Unstructured) error {
		return createByApply(t, as, object, client.ForceOwnership)
	},
}

func createByApply(t *testing.T, as client.Client, object *unstructured.Unstructured, options ...client.PatchOption) error {
	patch := client.RawPatch(types.ApplyPatchType, harness.JSON(t, object.Object))
	return as.Patch(t.Context(), object, patch, append(options, client.FieldOwner("creator"))...)
}

func triaged(status v1alpha1.UserStatus, comments string) func(name string) client.Object {
	return func(name string) client.Object { return builder.Finding(name).Triage(status, comments).Build() }
}

func TestWhoCreatesWhat(t *testing.T) {
	table := []struct {
		name    string
		object  func(name string) client.Object
		allowed []who
		reason  string
	}{
		{"finding without triage", findingOpen, []who{scanner, uploads, reporter, admin}, "scanners find"},
		{"finding with the default triage", triaged(v1alpha1.UserStatusOpen, ""), []who{scanner, uploads, reporter, admin}, "exactly the default says nothing"},
		{"muted finding", triaged(v1alpha1.UserStatusMuted, ""), []who{admin}, "a scanner cannot mute what it finds"},
		{"commented finding", triaged(v1alpha1.UserStatusOpen, "fine"), []who{admin}, "a comment is a decision"},
		{"finding with an owner", func(name string) client.Object {
			return builder.Finding(name).Mutate(func(f *v1alpha1.Finding) {
				f.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: "0"}}
			}).Build()
		}, []who{admin}, "findings carry no owner reference"},
		{"finding with a finalizer", func(name string) client.Object {
			return builder.Finding(name).Mutate(func(f *v1alpha1.Finding) { f.Finalizers = []string{"appsec.dev/cleanup"} }).Build()
		}, []who{admin}, "a finalizer keeps others from deleting"},
		{"project", func(name string) client.Object { return builder.Project(name).Build() }, []who{reporter, admin}, "the scanner role only reads projects"},
		{"project that people have described", projectOf, []who{admin}, "spec.user takes the verb triage, at the start too"},
		{"repository", repositoryOf, []who{reporter, admin}, "the scanner role only reads repositories"},
		{"scan", scanOf, []who{scanner, uploads, reporter, admin}, "the importer records its scan"},
		{"review", reviewOf, []who{scanner, uploads, reporter, admin}, "the importer records a pull request"},
		{"review issue", issueOf, []who{scanner, uploads, reporter, admin}, "the importer records what a review found"},
		{"webhook endpoint", endpointOf, []who{editor, reporter, admin}, "RBAC decides who sends events where"},
		{"API key", keyOf, []who{editor, reporter, admin}, "RBAC decides who makes keys"},
	}
	c := newCast(t, "create")
	next := nextName()
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			for _, name := range everyone {
				for how, create := range creations {
					t.Run(fmt.Sprintf("%s/%s", name, how), func(t *testing.T) {
						object := toUnstructured(t, in(c.namespace, row.object(next())))
						err := create(t, c.as(name), object)
						allowed := slices.Contains(row.allowed, name)
						wantAnswer(t, err, allowed, row.reason)
						if allowed || object.GetName() == "" {
							return
						}
						harness.Same(t, "the refused object does not exist", true, env.Gone(t, object))
					})
				}
			}
		})
	}
}
