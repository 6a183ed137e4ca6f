package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
)

// The fields of a finding that the API server can select by: the selectableFields of the CRD.
const (
	fieldRepository = "spec.repositoryRef.name"
	fieldProject    = "spec.projectRef.name"
	fieldTool       = "spec.tool"
	fieldCategory   = "spec.category"
	fieldClass      = "spec.class"
	fieldSeverity   = "spec.details.severity"
	fieldUserStatus = "spec.triage.userStatus"
	fieldState      = "status.state"
)

var selectable = []string{fieldRepository, fieldProject, fieldTool, fieldCategory, fieldClass, fieldSeverity,
	fieldUserStatus, fieldState}

// choice is a field with few values, several of which may be selected.
type choice struct {
	flag, field string
	values      []string
	// always means that every finding has a value.
	always bool
}

var (
	severityChoice = choice{"severity", fieldSeverity,
		words(v1alpha1.LevelHigh, v1alpha1.LevelMedium, v1alpha1.LevelLow), true}
	stateChoice = choice{"state", fieldState,
		words(v1alpha1.FindingStateOpen, v1alpha1.FindingStateOpenMuted, v1alpha1.FindingStateClosed), false}
	userStatusChoice = choice{"user-status", fieldUserStatus,
		words(v1alpha1.UserStatusOpen, v1alpha1.UserStatusActive, v1alpha1.UserStatusMuted), true}
	categoryChoice = choice{"category", fieldCategory,
		words(v1alpha1.FindingCategories()...), false}
)

func words[T ~string](values ...T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

// readChoice returns the given values, ignoring case and duplicates, in the order of all values.
func readChoice[T ~string](c choice, given []string, errs *[]error) (values []T) {
	wanted := map[string]bool{}
	for _, value := range given {
		at := slices.IndexFunc(c.values, func(known string) bool { return strings.EqualFold(known, value) })
		if at < 0 {
			*errs = append(*errs, fmt.Errorf("--%s is %q and must be %s", c.flag, value, alternatives(c.values)))
			continue
		}
		wanted[c.values[at]] = true
	}
	for _, value := range c.values {
		if wanted[value] {
			values = append(values, T(value))
		}
	}
	return values
}

// selector returns the field selector for the given values. Field selectors have no "or", so several values are
// selected by excluding all others.
func (c choice) selector(given []string) fields.Selector {
	var terms []fields.Selector
	for _, value := range c.values {
		wanted := slices.Contains(given, value)
		switch {
		case wanted && len(given) == 1:
			return fields.OneTermEqualSelector(c.field, value)
		case len(given) > 0 && !wanted:
			terms = append(terms, fields.OneTermNotEqualSelector(c.field, value))
		}
	}
	if len(given) > 0 && !c.always {
		terms = append(terms, fields.OneTermNotEqualSelector(c.field, ""))
	}
	return fields.AndSelectors(terms...)
}

// alternatives returns "a, b or c".
func alternatives(values []string) string {
	last := len(values) - 1
	return strings.Join(values[:last], ", ") + " or " + values[last]
}

// checkChoices returns an error for a value that one of the fields never has: it would match nothing, or everything.
func checkChoices(selector fields.Selector, choices ...choice) error {
	var errs []error
	for _, term := range selector.Requirements() {
		for _, c := range choices {
			if c.field == term.Field && term.Value != "" && !slices.Contains(c.values, term.Value) {
				errs = append(errs, fmt.Errorf("--field-selector: %s is %q and must be %s", c.field, term.Value,
					alternatives(c.values)))
			}
		}
	}
	return errors.Join(errs...)
}

// selectedBy names the fields by which the API server selects the objects.
func selectedBy(objects string, fields []string) string {
	return objects + " are selected by metadata.name, metadata.namespace, " + alternatives(fields) + "."
}

// empty reports whether the filter selects every finding of the namespace.
func (f *filter) empty() bool { return reflect.ValueOf(f.selection).IsZero() }

// options makes the API server filter as much as it can.
func (f *filter) options(namespace string) (client.ListOptions, error) {
	selection := &f.selection
	terms := []fields.Selector{
		severityChoice.selector(words(selection.Severity...)), categoryChoice.selector(words(selection.Category...)),
	}
	// Findings with another declared decision may be open, too, because that may have expired.
	if !slices.Contains(selection.UserStatus, v1alpha1.UserStatusOpen) {
		terms = append(terms, userStatusChoice.selector(words(selection.UserStatus...)))
	}
	for _, exact := range []struct{ field, value string }{
		{fieldRepository, string(selection.Repository)}, {fieldProject, string(selection.Project)},
		{fieldClass, f.class}, {fieldTool, selection.Tool},
	} {
		if exact.value != "" {
			terms = append(terms, fields.OneTermEqualSelector(exact.field, exact.value))
		}
	}
	return selectors(namespace, selection.LabelSelector, selection.FieldSelector, terms...)
}

// filtersLocally reports whether the findings must be filtered here, too: the API server selects by eight fields only,
// and its recorded state and decision may be outdated right after an import or an expiry.
func (f *filter) filtersLocally() bool {
	left := f.selection
	left.Severity, left.Category, left.Repository, left.Project, left.Class, left.Tool = nil, nil, "", "", nil, ""
	left.LabelSelector, left.FieldSelector = "", ""
	return !reflect.ValueOf(left).IsZero()
}

// named returns the objects that the filter names; a name may be empty.
func (f *filter) named() []need {
	return []need{
		{kind: "Repository", name: string(f.selection.Repository)},
		{kind: "Project", name: string(f.selection.Project)},
		{kind: "TriagePolicy", name: string(f.selection.Policy)},
	}
}

// match reports whether the flags select a finding.
func (f *filter) match(finding *v1alpha1.Finding) bool {
	return f.matcher.Matches(finding, f.owned.in(finding.Namespace, f.selection.Owner))
}

// selectors combines -l and --field-selector with further terms. It refuses a field selector without a term, as from
// unset shell variables around a comma; the library does so for a label selector.
func selectors(namespace, byLabel, byField string, terms ...fields.Selector) (client.ListOptions, error) {
	options := client.ListOptions{Namespace: namespace}
	own, err := fields.ParseSelector(byField)
	if err != nil {
		return options, fmt.Errorf("--field-selector is %q and cannot be read: %w", byField, err)
	}
	if byField != "" && own.Empty() {
		return options, fmt.Errorf("--field-selector is %q and selects everything: leave it out", byField)
	}
	if err := checkExcludedFields(own); err != nil {
		return options, fmt.Errorf("--field-selector is %q: %w", byField, err)
	}
	if options.LabelSelector, err = labels.Parse(byLabel); err != nil {
		return options, fmt.Errorf("--selector is %q and cannot be read: %w", byLabel, err)
	}
	if err := checkExcludedLabels(options.LabelSelector); err != nil {
		return options, fmt.Errorf("--selector is %q: %w", byLabel, err)
	}
	terms = slices.DeleteFunc(append(terms, own), func(s fields.Selector) bool { return s.Empty() })
	options.FieldSelector = fields.AndSelectors(terms...)
	return options, nil
}

// checkExcludedFields returns an error for a field of which only the empty value is excluded, as from an unset
// variable, because that selects everything, or almost: few objects lack a field by which they are selected.
func checkExcludedFields(selector fields.Selector) error {
	for _, r := range selector.Requirements() {
		if r.Operator == selection.NotEquals && r.Value == "" {
			return fmt.Errorf("%s!= excludes only the empty value: give a value, or leave it out", r.Field)
		}
	}
	return nil
}

// checkExcludedLabels returns an error for a label of which only the empty value is excluded, as from an unset
// variable, because that selects almost everything, unless another term selects the objects that have the label.
func checkExcludedLabels(selector labels.Selector) error {
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		required := slices.ContainsFunc(requirements, func(other labels.Requirement) bool {
			return other.Key() == r.Key() && !other.Matches(labels.Set{})
		})
		if slices.Equal(r.ValuesUnsorted(), []string{""}) && !required {
			return fmt.Errorf("%s excludes only the empty value, and objects without the label match: give a value, or write "+
				"%s for objects that have the label", &r, r.Key())
		}
	}
	return nil
}

// owned is the set of projects of the selected owner.
type owned map[types.NamespacedName]bool

// in returns a function that maps a namespace's project to its owner.
func (o owned) in(namespace, owner string) findingquery.Owners {
	return func(project v1alpha1.ResourceName) string {
		if o[types.NamespacedName{Namespace: namespace, Name: string(project)}] {
			return owner
		}
		return ""
	}
}

// findOwned looks up the owner's projects if the filter has an owner.
func (f *filter) findOwned(ctx context.Context, s *session, namespace string) error {
	if f.selection.Owner == "" {
		return nil
	}
	f.owned = owned{}
	options := client.ListOptions{
		Namespace: namespace, FieldSelector: fields.OneTermEqualSelector("spec.owner", f.selection.Owner),
	}
	err := s.eachPage(ctx, "Project", 0, options, func(items []unstructured.Unstructured) error {
		for _, item := range items {
			f.owned[types.NamespacedName{Namespace: item.GetNamespace(), Name: item.GetName()}] = true
		}
		return nil
	})
	return s.explain(err, need{what: "list projects", role: roleViewer, everywhere: namespace == ""})
}
