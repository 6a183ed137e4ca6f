package schema_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/corpus"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// violation is a value that violates one bound of a part.
type violation struct {
	path  string
	bound string
	value any
}

// violations returns one violation for each bound of the schema.
func violations(schema *apiextensionsv1.JSONSchemaProps, path string) []violation {
	var out []violation
	add := func(bound string, value any) { out = append(out, violation{path, bound, value}) }
	switch schema.Type {
	case "string":
		if schema.MaxLength != nil {
			add("maxLength", strings.Repeat("a", int(*schema.MaxLength)+1))
		}
		if schema.MinLength != nil && *schema.MinLength > 0 {
			add("minLength", "")
		}
		if len(schema.Enum) > 0 {
			add("enum", "no-such-value")
		}
		if schema.Pattern != "" {
			add("pattern", "-")
		}
		for _, text := range notForms(schema) {
			add("form "+text, text)
		}
	case "integer":
		if schema.Minimum != nil {
			add("minimum", int64(*schema.Minimum)-1)
		}
		if schema.Maximum != nil {
			add("maximum", int64(*schema.Maximum)+1)
		}
	case "array":
		add("maxItems", slices.Repeat([]any{filler(schema.Items.Schema)}, int(*schema.MaxItems)+1))
		if schema.MinItems != nil {
			add("minItems", []any{})
		}
		out = append(out, violations(schema.Items.Schema, path)...)
	case "object":
		if schema.AdditionalProperties != nil {
			members := map[string]any{}
			for i := range *schema.MaxProperties + 1 {
				members[corpus.Unique("a", 8, i+1)] = filler(schema.AdditionalProperties.Schema)
			}
			add("maxProperties", members)
			add("key length", map[string]any{strings.Repeat("a", int(corpus.MaxKeyLength(schema))+1): filler(schema.AdditionalProperties.Schema)})
			out = append(out, violations(schema.AdditionalProperties.Schema, path+".*")...)
		}
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			member := schema.Properties[name]
			out = append(out, violations(&member, path+"."+name)...)
		}
	}
	return out
}

// notForms returns texts that look like a time or a duration but are invalid.
func notForms(schema *apiextensionsv1.JSONSchemaProps) []string {
	switch {
	case corpus.IsTime(schema):
		return []string{
			"2026-01-01T00:00:00+99:99", "2026-01-01T00:00:00+24:00", "2026-01-01T00:00:00,5Z", "2026-01-01T0:00:00Z",
			"2026-01-01T00:00:60Z", "2026-02-30T00:00:00Z", "0000-12-31T23:59:59Z", "9999-12-31T23:59:59-05:00", "2026-01-01",
		}
	case corpus.IsDuration(schema):
		return []string{"365d", "90 days", "3 weeks", "-1h", "9999999999h", "yesterday"}
	default:
		return nil
	}
}

// filler returns a value of the type, which may violate other bounds.
func filler(schema *apiextensionsv1.JSONSchemaProps) any {
	switch schema.Type {
	case "string":
		return "a"
	case "integer":
		return int64(1)
	default:
		return map[string]any{}
	}
}

var indexes = regexp.MustCompile(`\[[^]]*\]`)

func TestEachBoundIsKeptAndTheErrorNamesTheField(t *testing.T) {
	acceptAllKinds(t)
	as := controller(t)
	for kind, crd := range crds(t) {
		schema := schemaOf(t, crd)
		holder := newObject(crd, "status-holder")
		holder.Object["spec"] = corpus.Part(schema, "spec", "", nil)
		env.Create(t, holder)
		for _, part := range []string{"spec", "status"} {
			member := schema.Properties[part]
			for _, v := range violations(&member, part) {
				if slices.ContainsFunc(stamped[kind], func(path []string) bool { return v.path == strings.Join(path, ".") }) &&
					v.path != "spec.triage.basis" {
					continue // set by the API server, whatever is sent
				}
				t.Run(kind+"/"+v.path+"/"+v.bound, func(t *testing.T) {
					var err error
					if part == "spec" {
						object := newObject(crd, "refused")
						object.Object["spec"] = corpus.Part(schema, part, v.path, v.value)
						if triaged(kind) && strings.HasPrefix(v.path, "spec.triage.") && v.path != "spec.triage.userStatus" {
							decide(t, object) // without a decision the API server removes the basis and refuses reason and end
						}
						err = env.Client.Create(t.Context(), object, client.DryRunAll)
					} else {
						object := holder.DeepCopy()
						object.Object["status"] = corpus.Part(schema, part, v.path, v.value)
						err = as.Status().Update(t.Context(), object, client.DryRunAll)
					}
					wantInvalid(t, err, v.path)
				})
			}
		}
	}
}

// Clients that are newer than the CRDs recognise by these words that a field would be dropped.
func TestAStrictWriteIsToldWhichFieldsAreUnknown(t *testing.T) {
	finding := content(t, builder.Finding("newer").In("default").Build())
	env.Create(t, finding.DeepCopy())
	strict := client.WithFieldValidation(env.Client, metav1.FieldValidationStrict)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"triage":{"untilTomorrow":true}}}`))
	created := finding.DeepCopy()
	harness.Must(t, unstructured.SetNestedField(created.Object, true, "spec", "triage", "untilTomorrow"))
	for method, err := range map[string]error{
		"create": strict.Create(t.Context(), created, client.DryRunAll),
		"patch":  strict.Patch(t.Context(), finding.DeepCopy(), patch, client.DryRunAll),
	} {
		harness.Same(t, method, `unknown field "spec.triage.untilTomorrow"`, kube.UnknownFields(err))
	}
}

// triaged reports whether people decide about objects of the kind.
func triaged(kind string) bool { return kind == "Finding" || kind == "ReviewIssue" }

func decide(t *testing.T, finding *unstructured.Unstructured) {
	t.Helper()
	harness.Must(t, unstructured.SetNestedField(finding.Object, "muted", "spec", "triage", "userStatus"))
}

// wantInvalid checks that the API server refused the object and named the field.
func wantInvalid(t *testing.T, err error, path string) {
	t.Helper()
	if !apierrors.IsInvalid(err) {
		t.Fatalf("want an object that is refused as invalid, got error %v", err)
	}
	path = strings.TrimSuffix(path, ".*")
	var fields []string
	for _, cause := range kube.StatusOf(err).Details.Causes {
		field := indexes.ReplaceAllString(cause.Field, "")
		fields = append(fields, field)
		if field == path || strings.HasPrefix(field, path+".") {
			return
		}
	}
	t.Errorf("the error names %v, want %s: %v", fields, path, err)
}

func TestRequiredPartsAreRequired(t *testing.T) {
	acceptAllKinds(t)
	for kind, crd := range crds(t) {
		schema := schemaOf(t, crd)
		spec := schema.Properties["spec"]
		for _, path := range requiredParts(&spec, "spec") {
			t.Run(kind+"/"+path, func(t *testing.T) {
				object := newObject(crd, "refused")
				object.Object["spec"] = corpus.Part(schema, "spec", path, nil)
				remove(object.Object, strings.Split(path, "."))
				wantInvalid(t, env.Client.Create(t.Context(), object, client.DryRunAll), path)
			})
		}
	}
}

func requiredParts(schema *apiextensionsv1.JSONSchemaProps, path string) []string {
	var out []string
	if schema.Items != nil {
		return requiredParts(schema.Items.Schema, path)
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		member := schema.Properties[name]
		if slices.Contains(schema.Required, name) {
			out = append(out, path+"."+name)
		}
		out = append(out, requiredParts(&member, path+"."+name)...)
	}
	return out
}

// remove removes the member at the path, in every item of the lists on the way.
func remove(value any, path []string) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			remove(item, path)
		}
	case map[string]any:
		if len(path) == 1 {
			delete(v, path[0])
			return
		}
		remove(v[path[0]], path[1:])
	}
}
