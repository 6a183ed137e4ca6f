package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/appsec-dev/findings-operator/cmd/internal/flagerror"
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

// errNamesOfSeveral is returned because a finding's name does not depend on the organization: another command would
// look for these names in one organization, and may find others of the same name there.
var errNamesOfSeveral = errors.New("-o name cannot be used with --all-namespaces, because findings of several " +
	"organizations can have the same name: choose one organization with --organization, or print each " +
	`namespace and name with -o jsonpath='{range .items[*]}{.metadata.namespace} {.metadata.name}{"\n"}{end}'`)

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

// collect reads the findings to show, not yet sorted, and one more if there are more.
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
	var readLimit int64 // 0: unlimited, because sorting and filtering must see all findings first
	switch {
	case o.filter.filtersLocally():
		listing.matches = o.filter.match
	case o.limit > 0 && o.sortBy == "":
		readLimit = o.limit + 1 // one more than shown, because a page can have a continuation without a match
	}
	err = session.eachPage(ctx, "Finding", readLimit, options, func(items []unstructured.Unstructured) error {
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
	if o.allOrganizations && o.output.names() {
		return errNamesOfSeveral
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
