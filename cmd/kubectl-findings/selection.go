package main

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
)

// Fields of a finding that the API server itself selects by. There are no more: see the
// selectableFields of the CRD.
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

// choice is a field with few values, of which several may be asked for.
type choice struct {
	flag, field string
	values      []string
	// always says that no finding is without one.
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
		words(v1alpha1.CategoryCode, v1alpha1.CategoryPackage, v1alpha1.CategorySecret), false}
)

func words[T ~string](values ...T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

// chosen are the values given, whatever their case, each once and in the order of all.
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

// selector asks the API server for the values given. A field selector knows no "or", so more
// than one value is asked for by ruling out all the others.
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

// alternatives reads "a, b or c".
func alternatives(values []string) string {
	last := len(values) - 1
	return strings.Join(values[:last], ", ") + " or " + values[last]
}

// filter is what the flags say of the findings that are meant.
type filter struct {
	severities, states, userStatuses, categories           []string
	class, minScore                                        string
	createdSince, createdUntil, updatedSince, updatedUntil string
	stale, suppressed                                      bool

	// flags are those of the filter.
	flags *pflag.FlagSet
	// asked is what the flags mean: in part as soon as they are parsed, in whole once they are read.
	asked     v1alpha1.FindingSelection
	selection *findingquery.Selection
	owned     owned
}

func (f *filter) addFlags(to *pflag.FlagSet) {
	f.flags = pflag.NewFlagSet("filter", pflag.ContinueOnError)
	flags, asked := f.flags, &f.asked
	flags.StringVar((*string)(&asked.Repository), "repository", "", "only findings of this Repository")
	flags.StringVar((*string)(&asked.Project), "project", "", "only findings of this Project")
	flags.StringSliceVar(&f.severities, "severity", nil,
		"only findings of this severity: high, medium or low (can be repeated)")
	flags.StringSliceVar(&f.states, "state", nil,
		"only findings in this state: open, open_muted or closed (can be repeated)")
	flags.StringSliceVar(&f.userStatuses, "user-status", nil,
		"only findings with this decision: open, active or muted (can be repeated)")
	flags.StringSliceVar(&f.categories, "category", nil,
		"only findings of this category: Code, Package or Secret (can be repeated)")
	flags.StringVar(&f.class, "class", "", "only findings of this class, for example CWE-89")
	flags.StringVar(&asked.Tool, "tool", "", "only findings of this scanner")
	flags.StringVar(&asked.Rule, "rule", "", "only findings of this scanner rule, for example G201")
	flags.StringVar(&asked.Vulnerability, "vulnerability", "",
		"only findings of this vulnerability, by its id or an alias, for example CVE-2019-1549")
	flags.StringVar(&asked.Package, "package", "",
		"only findings in this package, by its name or its package URL, with or without a version")
	flags.StringVar(&asked.File, "file", "", "only findings in this file, or below this folder if it ends in a slash")
	flags.BoolVar(&f.stale, "stale", false, "only findings whose facts have changed since the decision; =false for all others")
	flags.BoolVar(&f.suppressed, "suppressed", false, "only findings that their source suppresses; =false for all others")
	flags.StringVar((*string)(&asked.Policy), "policy", "", "only findings about which this TriagePolicy decides now")
	flags.StringVar(&asked.Owner, "owner", "", "only findings of projects of this owner")
	flags.StringVar(&asked.Text, "text", "",
		"only findings of which the title or the path holds each of these words, whatever the case")
	flags.StringVar(&f.minScore, "min-score", "", "only findings of this score at least, from 0 to 10")
	flags.StringVar(&f.createdSince, "created-since", "",
		"only findings that were found at this time or later, as 2026-01-31T12:00:00Z")
	flags.StringVar(&f.createdUntil, "created-until", "", "only findings that were found before this time")
	flags.StringVar(&f.updatedSince, "updated-since", "", "only findings that changed at this time or later")
	flags.StringVar(&f.updatedUntil, "updated-until", "", "only findings that did not change at this time or later")
	addSelectorFlags(flags, &asked.LabelSelector, &asked.FieldSelector)
	to.AddFlagSet(flags)
}

// refuseBlank refuses flags that are given without a value, as a script does whose variable is not set: a decision
// would be about more findings than are meant.
func (f *filter) refuseBlank() error {
	var errs []error
	f.flags.VisitAll(func(flag *pflag.Flag) {
		value := flag.Value.String()
		if list, is := flag.Value.(pflag.SliceValue); is {
			value = strings.Join(list.GetSlice(), "")
		}
		if flag.Changed && strings.TrimSpace(value) == "" {
			errs = append(errs, fmt.Errorf("--%s has no value: give it one, or leave it out", flag.Name))
		}
	})
	return errors.Join(errs...)
}

func addSelectorFlags(flags *pflag.FlagSet, labels, fields *string) {
	flags.StringVarP(labels, "selector", "l", "", "label selector, for example team=payments,env!=test")
	flags.StringVar(fields, "field-selector", "", "field selector, for example spec.class=CWE-89,status.state!=closed")
}

// read turns the flags into the selection that the controllers evaluate too.
func (f *filter) read() error {
	var errs []error
	asked := &f.asked
	asked.Severity = chosen[v1alpha1.Level](severityChoice, f.severities, &errs)
	asked.State = chosen[v1alpha1.FindingState](stateChoice, f.states, &errs)
	asked.UserStatus = chosen[v1alpha1.UserStatus](userStatusChoice, f.userStatuses, &errs)
	asked.Category = chosen[v1alpha1.FindingCategory](categoryChoice, f.categories, &errs)
	if f.class != "" {
		asked.Class = &f.class
	}
	if f.flags.Changed("stale") {
		asked.Stale = &f.stale
	}
	if f.flags.Changed("suppressed") {
		asked.Suppressed = &f.suppressed
	}
	asked.MinScore = readScore(f.minScore, &errs)
	asked.CreatedSince, asked.CreatedUntil = readPeriod("created", f.createdSince, f.createdUntil, &errs)
	asked.UpdatedSince, asked.UpdatedUntil = readPeriod("updated", f.updatedSince, f.updatedUntil, &errs)
	if _, err := selectors("", asked.LabelSelector, asked.FieldSelector); err != nil {
		return errors.Join(append(errs, err)...)
	}
	var err error
	if f.selection, err = findingquery.NewSelection(asked); err != nil && asked.FieldSelector != "" {
		err = fmt.Errorf("%w\n%s", err,
			"Findings are selected by metadata.name, metadata.namespace, "+alternatives(selectable)+".")
	}
	return errors.Join(append(errs, err)...)
}

// empty reports whether every finding of the namespace is meant.
func (f *filter) empty() bool { return reflect.ValueOf(f.asked).IsZero() }

// options has the API server do as much of the choosing as it can.
func (f *filter) options(namespace string) (client.ListOptions, error) {
	asked := &f.asked
	terms := []fields.Selector{
		severityChoice.selector(words(asked.Severity...)), categoryChoice.selector(words(asked.Category...)),
	}
	// What is declared open is so, and what is declared otherwise may be open too: that decision may have ended.
	if !slices.Contains(asked.UserStatus, v1alpha1.UserStatusOpen) {
		terms = append(terms, userStatusChoice.selector(words(asked.UserStatus...)))
	}
	for _, exact := range []struct{ field, value string }{
		{fieldRepository, string(asked.Repository)}, {fieldProject, string(asked.Project)},
		{fieldClass, f.class}, {fieldTool, asked.Tool},
	} {
		if exact.value != "" {
			terms = append(terms, fields.OneTermEqualSelector(exact.field, exact.value))
		}
	}
	return selectors(namespace, asked.LabelSelector, asked.FieldSelector, terms...)
}

// looksItself reports whether the API server's choice is not all: it takes eight fields of a kind, and
// of state and decision it knows what is recorded, which right after an import, or an end, is not so yet.
func (f *filter) looksItself() bool {
	left := f.asked
	left.Severity, left.Category, left.Repository, left.Project, left.Class, left.Tool = nil, nil, "", "", nil, ""
	left.LabelSelector, left.FieldSelector = "", ""
	return !reflect.ValueOf(left).IsZero()
}

// match reports whether a finding is one that the flags mean.
func (f *filter) match(finding *v1alpha1.Finding) bool {
	return f.selection.Matches(finding, f.owned.in(finding.Namespace, f.asked.Owner))
}

// selectors joins what -l and --field-selector say with further terms.
func selectors(namespace, byLabel, byField string, terms ...fields.Selector) (client.ListOptions, error) {
	options := client.ListOptions{Namespace: namespace}
	own, err := fields.ParseSelector(byField)
	if err != nil {
		return options, fmt.Errorf("--field-selector is %q and cannot be read: %w", byField, err)
	}
	if options.LabelSelector, err = labels.Parse(byLabel); err != nil {
		return options, fmt.Errorf("--selector is %q and cannot be read: %w", byLabel, err)
	}
	terms = slices.DeleteFunc(append(terms, own), func(s fields.Selector) bool { return s.Empty() })
	options.FieldSelector = fields.AndSelectors(terms...)
	return options, nil
}
