package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
	"github.com/appsec-dev/findings-operator/scanimport/provision"
)

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
	selection.Severity = readChoice[v1alpha1.Level](severityChoice, f.severities, &errs)
	selection.State = readChoice[v1alpha1.FindingState](stateChoice, f.states, &errs)
	selection.UserStatus = readChoice[v1alpha1.UserStatus](userStatusChoice, f.userStatuses, &errs)
	selection.Category = readChoice[v1alpha1.FindingCategory](categoryChoice, f.categories, &errs)
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
		checkBound("--created-since", selection.CreatedSince, findingquery.CheckSince),
		checkBound("--created-until", selection.CreatedUntil, findingquery.CheckUntil),
		checkBound("--updated-since", selection.UpdatedSince, findingquery.CheckSince),
		checkBound("--updated-until", selection.UpdatedUntil, findingquery.CheckUntil))
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

// checkBound returns an error for a flag whose time selects everything.
func checkBound(flag string, at *v1alpha1.Time, check func(string, time.Time) error) error {
	if at == nil {
		return nil
	}
	return check(flag, at.Time)
}

// readScore returns a score in the form of selections, with one decimal. Scores have no more decimals, so 7.25 means at
// least 7.3.
func readScore(text string, errs *[]error) string {
	if text == "" {
		return ""
	}
	number, err := strconv.ParseFloat(text, 64)
	if err != nil || !(number >= 0 && number <= findingquery.MaxScore/10) {
		*errs = append(*errs, fmt.Errorf("--min-score is %q and must be a number from 0 to 10", text))
		return ""
	}
	return strconv.FormatFloat(math.Ceil(number*10-1e-9)/10, 'f', 1, 64)
}

// readPeriod reads the bounds of a period: since is included, until is not.
func readPeriod(name, since, until string, errs *[]error) (from, to *v1alpha1.Time) {
	from, to = readBound(name+"-since", since, errs), readBound(name+"-until", until, errs)
	if from != nil && to != nil && to.Before(from) {
		*errs = append(*errs, fmt.Errorf("--%s-until is before --%s-since", name, name))
	}
	return from, to
}

// readBound returns a bound in the form of selections.
func readBound(flag, text string, errs *[]error) *v1alpha1.Time {
	at := readTime(flag, text, errs)
	if at == nil {
		return nil
	}
	return new(findingquery.Bound(at.Time))
}

func readTime(flag, text string, errs *[]error) *v1alpha1.Time {
	if text == "" {
		return nil
	}
	at, err := v1alpha1.ParseTime(text)
	if err != nil {
		*errs = append(*errs, fmt.Errorf("--%s: %w", flag, err))
		return nil
	}
	return &at
}

// timeFlag is readTime with the zero time for a flag that is not set.
func timeFlag(flag, text string, errs *[]error) time.Time {
	if at := readTime(flag, text, errs); at != nil {
		return at.Time
	}
	return time.Time{}
}
