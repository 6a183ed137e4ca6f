package chart

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// incompatible lists the changes, one per line, by which after may refuse, drop, change or no longer serve parts of
// objects that were valid for before. It cannot tell which objects a CEL rule refuses, so it lists each new one.
func incompatible(before, after *apiextensionsv1.CustomResourceDefinition) []string {
	var found []string
	report := func(path, format string, arguments ...any) {
		found = append(found, before.Name+path+": "+fmt.Sprintf(format, arguments...))
	}
	if before.Spec.Scope != after.Spec.Scope {
		report("", "the scope was %s, and is %s", before.Spec.Scope, after.Spec.Scope)
	}
	if !reflect.DeepEqual(before.Spec.Names, after.Spec.Names) {
		compareNames(report, &before.Spec.Names, &after.Spec.Names)
	}
	for i := range before.Spec.Versions {
		was := &before.Spec.Versions[i]
		at := slices.IndexFunc(after.Spec.Versions,
			func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == was.Name })
		if at < 0 || was.Served && !after.Spec.Versions[at].Served {
			report("", "the version %s is not served any more", was.Name)
			continue
		}
		is := &after.Spec.Versions[at]
		compareSelectable(report, was.SelectableFields, is.SelectableFields)
		compareSchema(report, "", was.Schema.OpenAPIV3Schema, is.Schema.OpenAPIV3Schema)
	}
	return found
}

type reporter func(path, format string, arguments ...any)

func compareNames(report reporter, before, after *apiextensionsv1.CustomResourceDefinitionNames) {
	if before.Kind != after.Kind || before.Plural != after.Plural {
		report("", "it was %s (%s), and is %s (%s)", before.Kind, before.Plural, after.Kind, after.Plural)
	}
	for _, name := range before.ShortNames {
		if !slices.Contains(after.ShortNames, name) {
			report("", "the short name %s is gone", name)
		}
	}
}

func compareSelectable(report reporter, before, after []apiextensionsv1.SelectableField) {
	for _, field := range before {
		if !slices.Contains(after, field) {
			report(field.JSONPath, "it cannot be selected by any more")
		}
	}
}

func compareSchema(report reporter, path string, before, after *apiextensionsv1.JSONSchemaProps) {
	if before.Type != after.Type && !(before.Type == "integer" && after.Type == "number") {
		report(path, "the type was %q, and is %q", before.Type, after.Type)
		return
	}
	compareBounds(report, path, before, after)
	compareRules(report, path, before, after)
	if was, is := defaultOf(before), defaultOf(after); was != is {
		report(path, "the default was %s, and is %s", was, is)
	}
	if was, is := listTypeOf(before), listTypeOf(after); was != is {
		report(path, "the list type was %q, and is %q", was, is)
	}
	if was, is := ptr.Deref(before.XMapType, "granular"), ptr.Deref(after.XMapType, "granular"); was != is {
		report(path, "the map type was %q, and is %q", was, is)
	}
	if !reflect.DeepEqual(before.Enum, after.Enum) && len(after.Enum) > 0 {
		compareEnum(report, path, before, after)
	}
	if after.Pattern != "" && after.Pattern != before.Pattern {
		report(path, "the pattern was %q, and is %q", before.Pattern, after.Pattern)
	}
	if after.Format != "" && after.Format != before.Format {
		report(path, "the format was %q, and is %q", before.Format, after.Format)
	}
	if before.Nullable && !after.Nullable {
		report(path, "null is refused")
	}
	for _, name := range after.Required {
		if was, known := before.Properties[name]; !slices.Contains(before.Required, name) &&
			after.Properties[name].Default == nil && (!known || was.Default == nil) {
			report(path+"."+name, "it is required now")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before.Properties)) {
		was := before.Properties[name]
		is, found := after.Properties[name]
		switch {
		case found:
			compareSchema(report, path+"."+name, &was, &is)
		case after.XPreserveUnknownFields == nil || !*after.XPreserveUnknownFields:
			report(path+"."+name, "it is gone, and is dropped from what is stored")
		}
	}
	if before.Items != nil && before.Items.Schema != nil && after.Items != nil && after.Items.Schema != nil {
		compareSchema(report, path+"[]", before.Items.Schema, after.Items.Schema)
	}
	if before.AdditionalProperties != nil && before.AdditionalProperties.Schema != nil {
		if after.AdditionalProperties == nil || after.AdditionalProperties.Schema == nil {
			report(path, "it takes no members of any name any more")
		} else {
			compareSchema(report, path+"{}", before.AdditionalProperties.Schema, after.AdditionalProperties.Schema)
		}
	}
}

func compareEnum(report reporter, path string, before, after *apiextensionsv1.JSONSchemaProps) {
	if len(before.Enum) == 0 {
		report(path, "it takes some values alone now")
		return
	}
	for _, value := range before.Enum {
		if !slices.ContainsFunc(after.Enum, func(v apiextensionsv1.JSON) bool { return string(v.Raw) == string(value.Raw) }) {
			report(path, "the value %s is refused", value.Raw)
		}
	}
}

// compareRules checks CEL rules. Their messages do not matter.
func compareRules(report reporter, path string, before, after *apiextensionsv1.JSONSchemaProps) {
	for _, rule := range after.XValidations {
		if !slices.ContainsFunc(before.XValidations, func(was apiextensionsv1.ValidationRule) bool {
			return was.Rule == rule.Rule && ptr.Deref(was.OptionalOldSelf, false) == ptr.Deref(rule.OptionalOldSelf, false)
		}) {
			report(path, "the rule %q is new", rule.Rule)
		}
	}
}

func defaultOf(schema *apiextensionsv1.JSONSchemaProps) string {
	if schema.Default == nil {
		return "none"
	}
	return string(schema.Default.Raw)
}

// listTypeOf returns the type of a list, with its keys.
func listTypeOf(schema *apiextensionsv1.JSONSchemaProps) string {
	return strings.Join(append([]string{ptr.Deref(schema.XListType, "atomic")}, schema.XListMapKeys...), " ")
}

// compareBounds checks limits: a new or tighter limit refuses values that were accepted.
func compareBounds(report reporter, path string, before, after *apiextensionsv1.JSONSchemaProps) {
	compareMax(report, path, "maxLength", before.MaxLength, after.MaxLength)
	compareMax(report, path, "maxItems", before.MaxItems, after.MaxItems)
	compareMax(report, path, "maxProperties", before.MaxProperties, after.MaxProperties)
	compareMax(report, path, "maximum", before.Maximum, after.Maximum)
	compareMin(report, path, "minLength", before.MinLength, after.MinLength)
	compareMin(report, path, "minItems", before.MinItems, after.MinItems)
	compareMin(report, path, "minProperties", before.MinProperties, after.MinProperties)
	compareMin(report, path, "minimum", before.Minimum, after.Minimum)
}

func compareMax[N int64 | float64](report reporter, path, name string, before, after *N) {
	if after != nil && (before == nil || *after < *before) {
		reportBound(report, path, name, before, *after)
	}
}

func compareMin[N int64 | float64](report reporter, path, name string, before, after *N) {
	if after != nil && (before == nil || *after > *before) {
		reportBound(report, path, name, before, *after)
	}
}

func reportBound[N int64 | float64](report reporter, path, name string, before *N, after N) {
	was := "none"
	if before != nil {
		was = fmt.Sprint(*before)
	}
	report(path, "%s was %s, and is %v", name, was, after)
}
