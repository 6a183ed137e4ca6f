package chart

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// incompatible lists the changes, one per line, by which after may refuse, drop or no longer serve
// parts of objects that were valid for before. CEL rules cannot be compared; applying objects to
// the new schema covers them.
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

// compareBounds checks limits: a new or tighter limit refuses values that were accepted.
func compareBounds(report reporter, path string, before, after *apiextensionsv1.JSONSchemaProps) {
	for _, bound := range []struct {
		name   string
		closer bool
	}{
		{"maxLength", closerMax(before.MaxLength, after.MaxLength)},
		{"maxItems", closerMax(before.MaxItems, after.MaxItems)},
		{"maxProperties", closerMax(before.MaxProperties, after.MaxProperties)},
		{"maximum", closerMax(before.Maximum, after.Maximum)},
		{"minLength", closerMin(before.MinLength, after.MinLength)},
		{"minItems", closerMin(before.MinItems, after.MinItems)},
		{"minProperties", closerMin(before.MinProperties, after.MinProperties)},
		{"minimum", closerMin(before.Minimum, after.Minimum)},
	} {
		if bound.closer {
			report(path, "%s is closer than it was", bound.name)
		}
	}
	if after.XListType != nil && *after.XListType != "atomic" && (before.XListType == nil ||
		*before.XListType == "atomic") {
		report(path, "entries must differ now")
	}
}

func closerMax[N int64 | float64](before, after *N) bool {
	return after != nil && (before == nil || *after < *before)
}

func closerMin[N int64 | float64](before, after *N) bool {
	return after != nil && (before == nil || *after > *before)
}
