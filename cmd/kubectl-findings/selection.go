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

var selectable = []string{fieldRepository, fieldProject, fieldTool, fieldCategory, fieldClass, fieldSeverity, fieldUserStatus, fieldState}

// choice is a field with few values, of which several may be asked for.
type choice struct {
	flag, field string
	values      []string
	// always says that no finding is without one.
	always bool
}

var (
	severityChoice   = choice{"severity", fieldSeverity, words(v1alpha1.LevelHigh, v1alpha1.LevelMedium, v1alpha1.LevelLow), true}
	stateChoice      = choice{"state", fieldState, words(v1alpha1.FindingStateOpen, v1alpha1.FindingStateOpenMuted, v1alpha1.FindingStateClosed), false}
	userStatusChoice = choice{"user-status", fieldUserStatus, words(v1alpha1.UserStatusOpen, v1alpha1.UserStatusActive, v1alpha1.UserStatusMuted), true}
	categoryChoice   = choice{"category", fieldCategory, words(v1alpha1.CategoryCode, v1alpha1.CategoryPackage, v1alpha1.CategorySecret), false}
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
	labels, fields                               string
}

func (f *filter) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.repository, "repository", "", "only findings of this Repository")
	flags.StringVar(&f.project, "project", "", "only findings of this Project")
	flags.StringSliceVar(&f.severities, "severity", nil, "only findings of this severity: high, medium or low (may be repeated)")
	flags.StringSliceVar(&f.states, "state", nil, "only findings in this state: open, open_muted or closed (may be repeated)")
	flags.StringSliceVar(&f.userStatuses, "user-status", nil, "only findings of which people said this: open, active or muted (may be repeated)")
	flags.StringSliceVar(&f.categories, "category", nil, "only findings of this category: Code, Package or Secret (may be repeated)")
	flags.StringVar(&f.class, "class", "", "only findings of this class of vulnerability, as CWE-89")
	flags.StringVar(&f.tool, "tool", "", "only what this scanner found")
	flags.StringVar(&f.rule, "rule", "", "only findings of this rule of a scanner, as G201")
	flags.StringVar(&f.vulnerability, "vulnerability", "", "only findings of this vulnerability, by its id or an alias, as CVE-2019-1549")
	flags.StringVar(&f.inPackage, "package", "", "only findings in this package, by its name or its package URL, with a version or without")
	flags.StringVar(&f.file, "file", "", "only findings in this file, or below this folder where it ends in a slash")
	addSelectorFlags(flags, &f.labels, &f.fields)
}

func addSelectorFlags(flags *pflag.FlagSet, labels, fields *string) {
	flags.StringVarP(labels, "selector", "l", "", "label selector, as team=payments,env!=test")
	flags.StringVar(fields, "field-selector", "", "field selector, as spec.class=CWE-89,status.state!=closed")
}

// empty reports whether every finding of the namespace is meant.
func (f *filter) empty() bool {
	return f.repository+f.project+f.class+f.tool+f.labels+f.fields+f.rule+f.vulnerability+f.inPackage+f.file == "" &&
		len(f.severities)+len(f.states)+len(f.userStatuses)+len(f.categories) == 0
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
	options, err := selectors(namespace, f.labels, f.fields, terms...)
	return options, errors.Join(append(errs, err)...)
}

// looksItself reports whether the API server's choice is not all: it takes eight fields of a kind, and
// of the state it knows what the controllers have recorded, which right after an import is nothing yet.
func (f *filter) looksItself() bool {
	return len(f.states) > 0 || f.rule+f.vulnerability+f.inPackage+f.file != ""
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
	return (f.rule == "" || spec.RuleID == f.rule) &&
		(f.vulnerability == "" || isVulnerability(spec.Vulnerability, f.vulnerability)) &&
		(f.inPackage == "" || isPackage(spec.Package, f.inPackage)) &&
		(f.file == "" || isIn(spec.Details.Location, f.file))
}

// stateOf is the state that the finding has this moment: what the controllers have recorded, unless the
// finding has changed since.
func stateOf(f *v1alpha1.Finding) v1alpha1.FindingState {
	if f.Status.State != "" && f.Status.ObservedGeneration >= f.Generation {
		return f.Status.State
	}
	return findingstate.State(&f.Spec)
}

func isVulnerability(v *v1alpha1.FindingVulnerability, id string) bool {
	if v == nil {
		return false
	}
	is := func(known string) bool { return strings.EqualFold(known, id) }
	return is(v.ID) || slices.ContainsFunc(v.Aliases, is)
}

// isPackage compares the name, or the package URL: one without a version means every version.
func isPackage(p *v1alpha1.FindingPackage, wanted string) bool {
	if p == nil {
		return false
	}
	if !strings.HasPrefix(wanted, "pkg:") {
		return strings.EqualFold(p.Name, wanted)
	}
	rest, is := strings.CutPrefix(p.PURL, wanted)
	return is && (rest == "" || strings.ContainsAny(rest[:1], "@?#"))
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
