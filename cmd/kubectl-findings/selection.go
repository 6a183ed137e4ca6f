package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
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

// selector asks the API server for the values given. A field selector knows no "or", so more
// than one value is asked for by ruling out all the others.
func (c choice) selector(given []string) (fields.Selector, error) {
	wanted := map[string]bool{}
	for _, value := range given {
		at := slices.IndexFunc(c.values, func(known string) bool { return strings.EqualFold(known, value) })
		if at < 0 {
			return nil, fmt.Errorf("--%s is %q and must be %s", c.flag, value, alternatives(c.values))
		}
		wanted[c.values[at]] = true
	}
	var terms []fields.Selector
	for _, value := range c.values {
		switch {
		case wanted[value] && len(wanted) == 1:
			return fields.OneTermEqualSelector(c.field, value), nil
		case len(wanted) > 0 && !wanted[value]:
			terms = append(terms, fields.OneTermNotEqualSelector(c.field, value))
		}
	}
	if len(wanted) > 0 && !c.always {
		terms = append(terms, fields.OneTermNotEqualSelector(c.field, ""))
	}
	return fields.AndSelectors(terms...), nil
}

// alternatives reads "a, b or c".
func alternatives(values []string) string {
	last := len(values) - 1
	return strings.Join(values[:last], ", ") + " or " + values[last]
}

// filter is what the flags say of the findings that are meant.
type filter struct {
	repository, project, class, tool             string
	severities, states, userStatuses, categories []string
	rule, vulnerability, inPackage, file         string
	stale, suppressed                            bool
	labels, fields                               string
	asked
}

func (f *filter) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.repository, "repository", "", "only findings of this Repository")
	flags.StringVar(&f.project, "project", "", "only findings of this Project")
	flags.StringSliceVar(&f.severities, "severity", nil,
		"only findings of this severity: high, medium or low (can be repeated)")
	flags.StringSliceVar(&f.states, "state", nil,
		"only findings in this state: open, open_muted or closed (can be repeated)")
	flags.StringSliceVar(&f.userStatuses, "user-status", nil,
		"only findings with this decision: open, active or muted (can be repeated)")
	flags.StringSliceVar(&f.categories, "category", nil,
		"only findings of this category: Code, Package or Secret (can be repeated)")
	flags.StringVar(&f.class, "class", "", "only findings of this class, for example CWE-89")
	flags.StringVar(&f.tool, "tool", "", "only findings of this scanner")
	flags.StringVar(&f.rule, "rule", "", "only findings of this scanner rule, for example G201")
	flags.StringVar(&f.vulnerability, "vulnerability", "",
		"only findings of this vulnerability, by its id or an alias, for example CVE-2019-1549")
	flags.StringVar(&f.inPackage, "package", "",
		"only findings in this package, by its name or its package URL, with or without a version")
	flags.StringVar(&f.file, "file", "", "only findings in this file, or below this folder if it ends in a slash")
	flags.BoolVar(&f.stale, "stale", false, "only findings whose facts have changed since the decision")
	flags.BoolVar(&f.suppressed, "suppressed", false, "only findings that their source suppresses")
	f.asked.addFlags(flags)
	addSelectorFlags(flags, &f.labels, &f.fields)
}

func addSelectorFlags(flags *pflag.FlagSet, labels, fields *string) {
	flags.StringVarP(labels, "selector", "l", "", "label selector, for example team=payments,env!=test")
	flags.StringVar(fields, "field-selector", "", "field selector, for example spec.class=CWE-89,status.state!=closed")
}

// empty reports whether every finding of the namespace is meant.
func (f *filter) empty() bool {
	return f.repository+f.project+f.class+f.tool+f.labels+f.fields+f.rule+f.vulnerability+f.inPackage+f.file == "" &&
		len(f.severities)+len(f.states)+len(f.userStatuses)+len(f.categories) == 0 && !f.stale && !f.suppressed &&
		f.asked.empty()
}

// options has the API server do the choosing; match does what is left of it.
func (f *filter) options(namespace string) (client.ListOptions, error) {
	var terms []fields.Selector
	var errs []error
	for _, exact := range []struct{ field, value string }{
		{fieldRepository, f.repository}, {fieldProject, f.project}, {fieldClass, f.class}, {fieldTool, f.tool},
	} {
		if exact.value != "" {
			terms = append(terms, fields.OneTermEqualSelector(exact.field, exact.value))
		}
	}
	for _, several := range []struct {
		choice
		given []string
	}{
		{severityChoice, f.severities}, {userStatusChoice, f.userStatuses}, {categoryChoice, f.categories},
	} {
		selector, err := several.selector(several.given)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		terms = append(terms, selector)
	}
	if _, err := stateChoice.selector(f.states); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, f.asked.read())
	options, err := selectors(namespace, f.labels, f.fields, terms...)
	return options, errors.Join(append(errs, err)...)
}

// looksItself reports whether the API server's choice is not all: it takes eight fields of a kind, and
// of the state it knows what the controllers have recorded, which right after an import is nothing yet.
func (f *filter) looksItself() bool {
	return len(f.states) > 0 || f.stale || f.suppressed || f.rule+f.vulnerability+f.inPackage+f.file != "" ||
		!f.asked.empty()
}

// match reports whether a finding is one that the flags mean, as far as options does not choose.
func (f *filter) match(finding *v1alpha1.Finding) bool {
	spec := &finding.Spec
	if len(f.states) > 0 {
		state := string(stateOf(finding))
		if !slices.ContainsFunc(f.states, func(given string) bool { return strings.EqualFold(given, state) }) {
			return false
		}
	}
	return f.asked.match(finding) && (!f.stale || findingstate.Stale(finding)) &&
		(!f.suppressed || spec.Suppression != nil) &&
		(f.rule == "" || spec.RuleID == f.rule) &&
		(f.vulnerability == "" || findingquery.IsVulnerability(spec.Vulnerability, f.vulnerability)) &&
		(f.inPackage == "" || findingquery.IsPackage(spec.Package, f.inPackage)) &&
		(f.file == "" || isIn(spec.Details.Location, f.file))
}

// stateOf is the state that the finding has this moment: what the controllers have recorded, unless the
// finding has changed since.
func stateOf(f *v1alpha1.Finding) v1alpha1.FindingState {
	if f.Status.State != "" && f.Status.ObservedGeneration >= f.Generation {
		return f.Status.State
	}
	return findingstate.State(f)
}

func isIn(l *v1alpha1.FileLocation, file string) bool {
	if l == nil {
		return false
	}
	if strings.HasSuffix(file, "/") {
		return strings.HasPrefix(l.FilePath, file)
	}
	return l.FilePath == file
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
