package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/cmd/internal/flagerror"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

const listLong = `List findings.

A finding must match all filters, and one value of each repeated filter. The API server filters
and returns pages, so the command reads only what it shows. With --sort-by, --state, --rule,
--vulnerability, --package, --file, --owner, --text, --min-score, the times, --stale,
--suppressed and --policy it reads all findings that match the other filters: the API server cannot select by
these or, for the state, may not know the current one yet. The same applies to --user-status open, which
also finds findings whose decision has ended.

Sort by severity (high first, and the higher score), age, detected or updated (latest first), or
name, title, repository, project, state, tool.`

const listExample = `  # Open and serious findings of a project
  kubectl findings list --project api --severity high --severity medium --state open

  # Findings that nobody has triaged yet, the worst first
  kubectl findings list --user-status open --sort-by severity --limit 20

  # By any selectable field
  kubectl findings list --field-selector spec.class=CWE-89,status.state!=closed

  # Only names, for a script: other commands accept them as they are
  kubectl findings list --tool gosec --state closed -o name

  # Where a vulnerability occurs, by any of its ids, and where a package occurs
  kubectl findings list --vulnerability CVE-2019-1549 -A
  kubectl findings list --package lodash --sort-by severity

  # What is new since Monday in my team's projects
  kubectl findings list --owner team-payments --created-since 2026-03-02T00:00:00Z

  # Findings whose facts have changed since the decision, and findings that their source suppresses
  kubectl findings list --stale
  kubectl findings list --suppressed -o wide

  # What a policy decides about now
  kubectl findings list --policy mute-tests

  # In all organizations
  kubectl findings list -A --severity high -o wide`

type listOptions struct {
	cli

	filter           filter
	output           *output
	allOrganizations bool
	sortBy           string
	limit            int64
}

func newListCommand(c cli) *cobra.Command {
	o := &listOptions{cli: c, output: newOutput()}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List findings",
		Long:    listLong,
		Example: listExample,
		Args:    flagerror.NoArguments("filter with flags"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.filter.addFlags(cmd.Flags())
	o.output.addFlags(cmd)
	cmd.Flags().BoolVarP(&o.allOrganizations, "all-namespaces", "A", false, "list the findings of all organizations")
	cmd.Flags().StringVar(&o.sortBy, "sort-by", "", "order: "+alternatives(sortNames()))
	cmd.Flags().Int64Var(&o.limit, "limit", 0, "maximum number of findings to show; 0 for all")
	completeFilter(cmd, c)
	completeWords(cmd, "sort-by", sortNames())
	return cmd
}

func (o *listOptions) run(ctx context.Context) error {
	if err := errors.Join(o.validate(), o.filter.read()); err != nil {
		return err
	}
	session, err := o.open()
	if err != nil {
		return err
	}
	namespace := session.namespace
	if o.allOrganizations {
		namespace = metav1.NamespaceAll
	}
	listing, err := o.collect(ctx, session, namespace)
	if err != nil {
		return err
	}
	more := listing.sortAndLimit()
	if err := o.print(listing); err != nil {
		return err
	}
	switch {
	case len(listing.entries) == 0:
		if !o.allOrganizations {
			if err := session.checkAsked(ctx, o.filter.named()...); err != nil {
				return err
			}
		}
		fmt.Fprintf(o.streams.ErrOut, "no findings match in %s\n", place(namespace))
	case more:
		fmt.Fprintf(o.streams.ErrOut, "more findings match than the %d shown: raise --limit or add filters\n", o.limit)
	}
	return nil
}

// collect reads the findings to show, not yet sorted.
func (o *listOptions) collect(ctx context.Context, session *session, namespace string) (*listing, error) {
	options, err := o.filter.options(namespace)
	if err != nil {
		return nil, err
	}
	if err := o.filter.findOwned(ctx, session, namespace); err != nil {
		return nil, err
	}
	listing := &listing{output: o.output, namespaces: o.allOrganizations, order: sortings[o.sortBy], limit: o.limit,
		now: time.Now()}
	var read int64 // unlimited, because sorting and filtering must see all findings first
	switch {
	case o.filter.filtersLocally():
		listing.matches = o.filter.match
	case o.limit > 0 && o.sortBy == "":
		read = o.limit + 1 // one more than shown, because a page can have a continuation without a match
	}
	err = session.eachPage(ctx, "Finding", read, options, func(items []unstructured.Unstructured) error {
		return listing.add(session, items)
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, session.explain(err, need{what: "list findings", role: roleViewer, everywhere: o.allOrganizations})
	}
	return listing, nil
}

func (o *listOptions) validate() error {
	if o.limit < 0 {
		return fmt.Errorf("--limit is %d and must not be negative", o.limit)
	}
	if _, known := sortings[o.sortBy]; !known && o.sortBy != "" {
		return fmt.Errorf("--sort-by is %q and must be %s", o.sortBy, alternatives(sortNames()))
	}
	return o.output.check()
}

func (o *listOptions) print(l *listing) error {
	if !o.output.tables() {
		return o.output.objects(o.streams.Out, l.objects())
	}
	if len(l.entries) == 0 {
		return nil
	}
	return o.output.table(o.streams.Out, findingColumns(o.allOrganizations), l.rows())
}

func place(namespace string) string {
	if namespace == metav1.NamespaceAll {
		return "any organization"
	}
	return "namespace " + namespace
}

// sorting is an order of findings: by a key, then by name.
type sorting struct {
	key        func(*v1alpha1.Finding) string
	descending bool
}

var sortings = map[string]sorting{
	"name":       {key: func(f *v1alpha1.Finding) string { return f.Name }},
	"title":      {key: func(f *v1alpha1.Finding) string { return strings.ToLower(f.Spec.Details.Title) }},
	"repository": {key: func(f *v1alpha1.Finding) string { return string(f.Spec.RepositoryRef.Name) }},
	"project":    {key: func(f *v1alpha1.Finding) string { return string(f.Spec.ProjectRef.Name) }},
	"state":      {key: func(f *v1alpha1.Finding) string { return string(findingquery.StateOf(f)) }},
	"tool":       {key: func(f *v1alpha1.Finding) string { return f.Spec.Tool }},
	"severity": {key: func(f *v1alpha1.Finding) string {
		return strconv.Itoa(slices.Index(severityChoice.values, string(f.Spec.Details.Severity))) +
			worstFirst(f.Spec.Details.Score)
	}},
	"age":      {key: func(f *v1alpha1.Finding) string { return instant(madeAt(f)) }, descending: true},
	"detected": {key: func(f *v1alpha1.Finding) string { return instant(detectedAt(f)) }, descending: true},
	"updated": {key: func(f *v1alpha1.Finding) string {
		return instant(findingstate.Recorded(f).Status.UpdatedAt)
	}, descending: true},
}

// worstFirst returns a key that sorts higher scores first, and findings without a score last.
func worstFirst(score string) string {
	number, err := strconv.ParseFloat(score, 64)
	if err != nil {
		return "z"
	}
	return fmt.Sprintf("%05.1f", 100-number)
}

func sortNames() []string { return slices.Sorted(maps.Keys(sortings)) }

// madeAt returns when the object was created, which its age refers to, as in every kubectl table.
func madeAt(object metav1.Object) *v1alpha1.Time {
	return &v1alpha1.Time{Time: object.GetCreationTimestamp().Time}
}

// detectedAt returns when the problem was first seen.
func detectedAt(f *v1alpha1.Finding) *v1alpha1.Time {
	at := findingstate.CreatedAt(f)
	return &at
}

// entry is the stored part of a finding: its row or the object itself.
type entry struct {
	key    string
	row    row
	object unstructured.Unstructured
}

// listing collects the findings to show.
type listing struct {
	output *output
	// namespaces means that the table shows them.
	namespaces bool
	order      sorting
	// matches filters by criteria that the API server does not support; may be nil.
	matches func(*v1alpha1.Finding) bool
	// limit is how many entries to show; 0: all. Without an order, collecting stops once there is one more.
	limit   int64
	now     time.Time
	entries []entry
}

// add processes a page, and keeps only the parts of each finding that will be printed.
func (l *listing) add(s *session, items []unstructured.Unstructured) error {
	if !l.output.tables() && l.order.key == nil && l.matches == nil { // it need not be read
		for _, item := range items {
			l.entries = append(l.entries, entry{object: l.kept(item)})
		}
		return nil
	}
	for item, finding := range readable[v1alpha1.Finding](s, items) {
		if l.matches != nil && !l.matches(finding) {
			continue
		}
		e := entry{}
		if l.order.key != nil {
			e.key = l.order.key(finding)
		}
		if l.output.tables() {
			e.row = findingRow(finding, l.now, l.output.wide(), l.namespaces)
		} else {
			e.object = l.kept(item)
		}
		l.entries = append(l.entries, e)
		if l.order.key == nil && l.limit > 0 && int64(len(l.entries)) > l.limit {
			return errEnough
		}
	}
	return nil
}

// kept returns the part of an object that will be printed.
func (l *listing) kept(item unstructured.Unstructured) unstructured.Unstructured {
	if !l.output.names() {
		return item
	}
	named := unstructured.Unstructured{}
	named.SetGroupVersionKind(item.GroupVersionKind())
	named.SetName(item.GetName())
	return named
}

// sortAndLimit sorts the entries and keeps the first ones. It reports whether any were left out.
func (l *listing) sortAndLimit() bool {
	if l.order.key != nil {
		// The API server already returns findings sorted by name.
		slices.SortStableFunc(l.entries, func(a, b entry) int {
			if l.order.descending {
				a, b = b, a
			}
			return cmp.Compare(a.key, b.key)
		})
	}
	if l.limit > 0 && int64(len(l.entries)) > l.limit {
		l.entries = l.entries[:l.limit]
		return true
	}
	return false
}

func (l *listing) rows() []row {
	rows := make([]row, len(l.entries))
	for i, e := range l.entries {
		rows[i] = e.row
	}
	return rows
}

func (l *listing) objects() []unstructured.Unstructured {
	objects := make([]unstructured.Unstructured, len(l.entries))
	for i, e := range l.entries {
		objects[i] = e.object
	}
	return objects
}

// findingColumns returns the columns of `kubectl get findings`. The title, which may be long, comes last, so that it
// does not shift the other columns.
func findingColumns(namespaces bool) []column {
	columns := []column{
		{name: "Name"}, {name: "Severity"}, {name: "State"}, {name: "Triage"}, {name: "Stale"}, {name: "Project"}, {name: "Age"},
		{"Repository", true}, {"File", true}, {"Line", true}, {"Score", true}, {"Vulnerability", true}, {"Package", true},
		{"Class", true}, {"Tool", true}, {"Triaged By", true},
		{"Why", true}, {"Until", true}, {"Suppressed", true}, {"Justification", true}, {name: "Title"},
	}
	if namespaces {
		return append([]column{{name: "Namespace"}}, columns...)
	}
	return columns
}

func findingRow(f *v1alpha1.Finding, now time.Time, wide, namespaces bool) row {
	title, line := f.Spec.Details.Title, ""
	if !wide {
		title = shortened(title, titleLength)
	}
	vulnerability, inPackage, suppressed, justification := "", "", "", ""
	if s := f.Spec.Suppression; s != nil {
		suppressed, justification = string(s.Kind), s.Justification
	}
	until := ""
	if end := f.Spec.Triage.ExpiresAt; end != nil {
		until = instant(end)
	}
	if v := f.Spec.Vulnerability; v != nil {
		vulnerability = v.ID
	}
	if p := f.Spec.Package; p != nil {
		inPackage = p.Name
	}
	at := f.Spec.Details.Place()
	if at.LineNumber > 0 {
		line = strconv.Itoa(int(at.LineNumber))
	}
	r := row{
		f.Name, string(f.Spec.Details.Severity), string(findingquery.StateOf(f)), string(findingstate.UserStatus(f)),
		findingstate.StaleReason(f), string(f.Spec.ProjectRef.Name),
		ago(madeAt(f), now), string(f.Spec.RepositoryRef.Name), at.FilePath, line, f.Spec.Details.Score, vulnerability,
		inPackage, f.Spec.Class, f.Spec.Tool, f.Spec.Triage.By, string(f.Spec.Triage.Reason), until,
		suppressed, justification, title,
	}
	if namespaces {
		return append(row{f.Namespace}, r...)
	}
	return r
}
