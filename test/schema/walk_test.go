package schema_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/appsec-dev/findings-operator/test/corpus"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// maxCharacters is the limit for spec and status of an object together. Stored JSON encodes some
// characters as six bytes, and etcd refuses requests over 1.5 MB.
const maxCharacters = 160_000

// maxSelectableFields is the API server's limit per version.
const maxSelectableFields = 8

// extent returns how many characters a value may hold, including the keys of maps, and reports
// every part without a bound.
func extent(schema *apiextensionsv1.JSONSchemaProps, path string, unbounded func(path, what string)) int64 {
	if schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields || schema.XIntOrString || schema.XEmbeddedResource {
		unbounded(path, "value of any shape")
		return 0
	}
	switch schema.Type {
	case "string":
		return stringExtent(schema, path, unbounded)
	case "array":
		if schema.MaxItems == nil {
			unbounded(path, "list without maxItems")
			return 0
		}
		return *schema.MaxItems * extent(schema.Items.Schema, path+"[]", unbounded)
	case "object":
		return objectExtent(schema, path, unbounded)
	case "integer", "boolean":
		return 0
	default:
		unbounded(path, fmt.Sprintf("value of type %q", schema.Type))
		return 0
	}
}

func stringExtent(schema *apiextensionsv1.JSONSchemaProps, path string, unbounded func(path, what string)) int64 {
	switch {
	case len(schema.Enum) > 0:
		var longest int64
		for _, value := range schema.Enum {
			longest = max(longest, int64(len(value.Raw)))
		}
		return longest
	case schema.MaxLength != nil:
		return *schema.MaxLength
	default:
		unbounded(path, "string without maxLength")
		return 0
	}
}

func objectExtent(schema *apiextensionsv1.JSONSchemaProps, path string, unbounded func(path, what string)) int64 {
	if schema.AdditionalProperties == nil {
		if len(schema.Properties) == 0 {
			unbounded(path, "object of any shape")
		}
		var sum int64
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			member := schema.Properties[name]
			sum += extent(&member, path+"."+name, unbounded)
		}
		return sum
	}
	key := corpus.MaxKeyLength(schema)
	if schema.MaxProperties == nil || key == 0 {
		unbounded(path, "map without maxProperties, or without a rule that bounds its keys")
		return 0
	}
	return *schema.MaxProperties * (key + extent(schema.AdditionalProperties.Schema, path+"{}", unbounded))
}

func TestEveryPartIsBoundedAndTheSumFitsEtcd(t *testing.T) {
	for kind, crd := range crds(t) {
		t.Run(kind, func(t *testing.T) {
			schema := schemaOf(t, crd)
			var sum int64
			for _, part := range []string{"spec", "status"} {
				member, found := schema.Properties[part]
				if !found {
					t.Fatalf("%s has no %s", kind, part)
				}
				sum += extent(&member, part, func(path, what string) { t.Errorf("%s: %s", path, what) })
			}
			if sum >= maxCharacters {
				t.Errorf("spec and status may hold %d characters, want fewer than %d: lower the bound of a field that needs"+
					" less, as \"Room for this in the schema\" in docs/decisions/ownership.md did", sum, maxCharacters)
			}
			t.Logf("%s may hold %d characters", kind, sum)
		})
	}
}

// The walk itself must detect missing bounds.
func TestTheWalkReportsWhatHasNoBound(t *testing.T) {
	table := map[string]apiextensionsv1.JSONSchemaProps{
		"string":      {Type: "string"},
		"list":        {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "boolean"}}},
		"any object":  {Type: "object"},
		"any value":   {XIntOrString: true},
		"free fields": {Type: "object", XPreserveUnknownFields: new(bool)},
		"map": {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{
			Schema: &apiextensionsv1.JSONSchemaProps{Type: "boolean"},
		}},
	}
	for name, schema := range table {
		reports := 0
		extent(&schema, "x", func(string, string) { reports++ })
		harness.Same(t, name+": reports", 1, reports)
	}
}

func TestEveryKindIsEasyToUseWithKubectl(t *testing.T) {
	short := map[string]string{}
	for kind, crd := range crds(t) {
		if len(crd.Spec.Names.ShortNames) == 0 {
			t.Errorf("%s has no short name", kind)
		}
		for _, name := range crd.Spec.Names.ShortNames {
			harness.Same(t, "the other kind that is called "+name+", as "+kind+" is", "", short[name])
			short[name] = kind
		}
		t.Run(kind, func(t *testing.T) {
			if !slices.Contains(crd.Spec.Names.Categories, "appsec") {
				t.Errorf("categories %v lack appsec", crd.Spec.Names.Categories)
			}
			version := crd.Spec.Versions[0]
			if version.Subresources == nil || version.Subresources.Status == nil {
				t.Error("there is no status subresource")
			}
			narrow, wide := 0, 0
			for _, column := range version.AdditionalPrinterColumns {
				if column.Priority == 0 {
					narrow++
				} else {
					wide++
				}
			}
			if narrow < 2 || wide < 1 {
				t.Errorf("%d printer columns and %d more with -o wide; want at least 2 and 1", narrow, wide)
			}
			if n := len(version.SelectableFields); n == 0 || n > maxSelectableFields {
				t.Errorf("%d selectable fields, want 1 to %d", n, maxSelectableFields)
			}
			if _, found := schemaOf(t, crd).Properties["status"].Properties["conditions"]; !found {
				t.Error("status has no conditions")
			}
		})
	}
}
