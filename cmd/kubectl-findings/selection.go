package main

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
	"github.com/appsec-dev/findings-operator/scanimport/provision"
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

// chosen returns the given values, ignoring case and duplicates, in the order of all values.
func chosen[T ~string](c choice, given []string, errs *[]error) (values []T) {
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

// filter holds the flags that select findings.
type filter struct {
	severities, states, userStatuses, categories           []string
	class, minScore                                        string
	createdSince, createdUntil, updatedSince, updatedUntil string
	stale, suppressed                                      bool

	// flags are the filter's flags.
	flags *pflag.FlagSet
	// selection holds what the flags select: some fields are set while parsing, the others by read.
	selection v1alpha1.FindingSelection
	matcher   *findingquery.Selection
	owned     owned
}

func (f *filter) addFlags(to *pflag.FlagSet) {
	f.flags = pflag.NewFlagSet("filter", pflag.ContinueOnError)
	flags, selection := f.flags, &f.selection
	flags.StringVar((*string)(&selection.Repository), "repository", "", "only findings of this Repository")
	flags.StringVar((*string)(&selection.Project), "project", "", "only findings of this Project")
	flags.StringSliceVar(&f.severities, "severity", nil,
		"only findings of this severity: high, medium or low (can be repeated)")
	flags.StringSliceVar(&f.states, "state", nil,
		"only findings in this state: open, open_muted or closed (can be repeated)")
	flags.StringSliceVar(&f.userStatuses, "user-status", nil,
		"only findings with this decision: open, active or muted (can be repeated)")
	flags.StringSliceVar(&f.categories, "category", nil,
		"only findings of this category: Code, Package or Secret (can be repeated)")
	flags.StringVar(&f.class, "class", "", "only findings of this class, for example CWE-89")
	flags.StringVar(&selection.Tool, "tool", "", "only findings of this scanner")
	flags.StringVar(&selection.Rule, "rule", "", "only findings of this scanner rule, for example G201")
	flags.StringVar(&selection.Vulnerability, "vulnerability", "",
		"only findings of this vulnerability, by its id or an alias, for example CVE-2019-1549")
	flags.StringVar(&selection.Package, "package", "",
		"only findings in this package, by its name or its package URL, with or without a version")
	flags.StringVar(&selection.File, "file", "",
		"only findings in this file, by its path from the repository's root, or below this folder if it ends in a slash")
	flags.BoolVar(&f.stale, "stale", false, "only findings whose facts have changed since the decision; =false for all others")
	flags.BoolVar(&f.suppressed, "suppressed", false, "only findings that their source suppresses; =false for all others")
	flags.StringVar((*string)(&selection.Policy), "policy", "", "only findings about which this TriagePolicy decides now")
	flags.StringVar(&selection.Owner, "owner", "", "only findings of projects of this owner")
	flags.StringVar(&selection.Text, "text", "",
		"only findings whose title or path contains each of these words, ignoring case")
	flags.StringVar(&f.minScore, "min-score", "", "only findings with at least this score, from 0 to 10")
	flags.StringVar(&f.createdSince, "created-since", "",
		"only findings that were first seen at this time or later, for example 2026-01-31T12:00:00Z")
	flags.StringVar(&f.createdUntil, "created-until", "", "only findings that were first seen before this time")
	flags.StringVar(&f.updatedSince, "updated-since", "", "only findings that changed at this time or later")
	flags.StringVar(&f.updatedUntil, "updated-until", "", "only findings that last changed before this time")
	addSelectorFlags(flags, &selection.LabelSelector, &selection.FieldSelector, "spec.class=CWE-89,status.state!=closed")
	to.AddFlagSet(flags)
}

// addSelectorFlags adds -l and --field-selector; example is a field selector for the kind.
func addSelectorFlags(flags *pflag.FlagSet, labels, fields *string, example string) {
	flags.StringVarP(labels, "selector", "l", "", "label selector, for example team=payments,env!=test")
	flags.StringVar(fields, "field-selector", "", "field selector, for example "+example)
}

// read turns the flags into the selection that the controllers evaluate too.
func (f *filter) read() error {
	var errs []error
	selection := &f.selection
	selection.Severity = chosen[v1alpha1.Level](severityChoice, f.severities, &errs)
	selection.State = chosen[v1alpha1.FindingState](stateChoice, f.states, &errs)
	selection.UserStatus = chosen[v1alpha1.UserStatus](userStatusChoice, f.userStatuses, &errs)
	selection.Category = chosen[v1alpha1.FindingCategory](categoryChoice, f.categories, &errs)
	if f.class != "" {
		selection.Class = &f.class
	}
	if f.flags.Changed("stale") {
		selection.Stale = &f.stale
	}
	if f.flags.Changed("suppressed") {
		selection.Suppressed = &f.suppressed
	}
	selection.File = readFile(selection.File, &errs)
	selection.MinScore = readScore(f.minScore, &errs)
	selection.CreatedSince, selection.CreatedUntil = readPeriod("created", f.createdSince, f.createdUntil, &errs)
	selection.UpdatedSince, selection.UpdatedUntil = readPeriod("updated", f.updatedSince, f.updatedUntil, &errs)
	errs = append(errs,
		checkEnd("--created-since", selection.CreatedSince, findingquery.CheckSince),
		checkEnd("--created-until", selection.CreatedUntil, findingquery.CheckUntil),
		checkEnd("--updated-since", selection.UpdatedSince, findingquery.CheckSince),
		checkEnd("--updated-until", selection.UpdatedUntil, findingquery.CheckUntil))
	options, err := selectors("", selection.LabelSelector, selection.FieldSelector)
	if err == nil {
		err = checkChoices(options.FieldSelector, severityChoice, stateChoice, userStatusChoice, categoryChoice)
	}
	// Errors so far would be reported again below, under names that the user did not type.
	if err = errors.Join(append(errs, err)...); err != nil {
		return err
	}
	if f.matcher, err = findingquery.NewSelection(selection); err != nil && selection.FieldSelector != "" {
		err = fmt.Errorf("%w\n%s", err, selectedBy("Findings", selectable))
	}
	return err
}

// readFile returns a file, or a folder that ends in a slash, as findings name it: shells complete ./web/ or .\web\. A
// text that would become empty, and one that no shell completes, such as a URI, stay as they are.
func readFile(file string, errs *[]error) string {
	completed := strings.HasPrefix(file, ".") || strings.HasPrefix(file, "/") || strings.Contains(file, `\`)
	path := provision.Clean(file)
	switch {
	case !completed || strings.Contains(file, "://"):
		return file
	case provision.Leaves(file): // path is another folder
		*errs = append(*errs, fmt.Errorf("--file is %q and leads out of the repository: give the path from the "+
			"repository's root, for example web/", file))
		return file
	case path == "":
		return file
	case strings.HasSuffix(file, "/") || strings.HasSuffix(file, `\`):
		path += "/"
	}
	return path
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

// checkEnd returns an error for a flag whose time selects everything.
func checkEnd(flag string, at *v1alpha1.Time, check func(string, time.Time) error) error {
	if at == nil {
		return nil
	}
	return check(flag, at.Time)
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
