package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
)

const triageLong = `Decide about findings.

Muted findings are not to be acted on, confirmed ones are real, reopened ones are undecided again.
--reason gives the reason as a keyword, and an organization may require one to mute. --expires-at and
--expires-in set when the decision ends: then the finding is open again, and its history shows whose decision ended.
A new decision does not inherit the reason and the end of the previous one; the same decision keeps them.
--comment explains the decision and replaces the previous comment; without a decision it changes only
the comment. The API server records who decided.

A decision is stale if the facts have changed since it was made: another severity, other code,
another version, a doubt ("kubectl findings list --stale"). Repeat the same decision to
confirm that it is still right: each finding keeps its reason, unless you give --reason. If the organization
requires one to mute, filters need --reason; findings that you name need none if they have one.

If you name the findings, each gets a decision in your own name. If you select them with the filters of
"kubectl findings list", the command creates a TriageOperation, which the controllers carry out in the cluster.
It is shown first, and nothing is decided until you confirm or pass --yes. A finding that somebody else
triages in the meantime is not changed and counts as conflicted. While the operation waits, for example
for an older one, standard error shows why. Ctrl-C and --timeout only stop the waiting; an operation that
you have confirmed continues.

--undo OPERATION restores what the findings had before an operation ("kubectl findings operations"
lists them), except for findings that somebody has decided about since.

--dry-run shows what would change: with filters it creates an operation, shows it and deletes it.
--dry-run=server also has the API server check the write. The exit code is 1 if anything failed
or conflicted.`

const triageExample = `  # Mute a finding with a comment
  kubectl findings triage f-gvoagaawln76qanzzhb4sxqjlh --mute --comment "Only the sample reads it"

  # Mute it for 30 days, with a reason
  kubectl findings triage f-gvoagaawln76qanzzhb4sxqjlh --mute --reason accepted-risk --expires-in 720h

  # Confirm two
  kubectl findings triage f-gvoagaawln76qanzzhb4sxqjlh f-2ct6uq3wq4gmjhchz5t6kb5hgi --confirm

  # Preview what would be muted, then mute it
  kubectl findings triage --field-selector spec.class=CWE-338,spec.tool=gosec --mute --dry-run
  kubectl findings triage --field-selector spec.class=CWE-338,spec.tool=gosec --mute --comment "Not used for secrets"

  # Repeat the decision about muted findings that have changed since
  kubectl findings triage --stale --user-status muted --mute --comment "Looked at again"

  # Reopen everything that is muted in a project
  kubectl findings triage --project api --user-status muted --reopen --yes

  # Undo that
  kubectl findings triage --undo reopen-x7k2pd`

// The values of --dry-run.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

type triageOptions struct {
	cli

	decides decisionFlags

	filter      filter
	undo        string
	dryRun      string
	yes         bool
	timeout     time.Duration
	concurrency int
	output      string
	quiet       bool
}

func newTriageCommand(c cli) *cobra.Command {
	o := &triageOptions{cli: c}
	cmd := &cobra.Command{
		Use:     "triage ((NAME... | FILTERS) (--mute | --confirm | --reopen) [--comment TEXT] | --undo OPERATION)",
		Short:   "Mute, confirm or reopen findings, and comment on them",
		Long:    triageLong,
		Example: triageExample,
		RunE: func(cmd *cobra.Command, names []string) error {
			return o.run(cmd.Context(), names)
		},
		ValidArgsFunction: completeNames(c, "Finding", severityAndTitle),
	}
	flags := cmd.Flags()
	o.decides.add(flags, "findings")
	o.filter.addFlags(flags)
	flags.StringVar(&o.undo, "undo", "", "restore what the findings had before this TriageOperation")
	flags.StringVar(&o.dryRun, "dry-run", dryRunNone,
		"none, client (show what would change) or server (have the API server check it); client if no value is given")
	flags.Lookup("dry-run").NoOptDefVal = dryRunClient
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	flags.DurationVar(&o.timeout, "timeout", time.Hour,
		"how long to wait for the preview of an operation, and again for its end")
	flags.IntVar(&o.concurrency, "concurrency", defaultConcurrency,
		"how many named findings are written at the same time")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "show no progress and no preview")
	completeFilter(cmd, c)
	register(cmd, "undo", func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return offer(cmd.Context(), c, kindOperation, begun, nil, operationDescription)
	})
	completeWords(cmd, "reason", append(reasonWords(), noGrounds))
	completeWords(cmd, "dry-run", []string{dryRunNone, dryRunClient, dryRunServer})
	addSummaryOutput(cmd, &o.output, bulkFormats)
	return cmd
}

func (o *triageOptions) run(ctx context.Context, names []string) error {
	decision, err := o.validate(names)
	if err != nil {
		return err
	}
	session, err := o.open()
	if err != nil {
		return err
	}
	if err := o.decides.setEnd(ctx, session, &decision); err != nil {
		return err
	}
	if len(names) > 0 {
		return o.decideNamed(ctx, &triager{session: session, decision: decision, dryRun: o.dryRun}, names)
	}
	w := &operating{triageOptions: o, session: session, decision: decision}
	w.summary = o.newSummary(session.namespace, w.wording().past)
	return w.run(ctx)
}

// newSummary returns an empty summary; past is what happened to the findings.
func (o *triageOptions) newSummary(namespace, past string) *bulkSummary {
	summary := &bulkSummary{Action: past, Namespace: namespace, what: "findings", resource: "finding.appsec.dev"}
	if o.dryRun != dryRunNone {
		summary.DryRun = o.dryRun
	}
	return summary
}

func (o *triageOptions) validate(names []string) (decision, error) {
	errs := []error{checkConcurrency(o.concurrency), checkOutput(o.output, bulkFormats), checkTimeout(o.timeout)}
	if !slices.Contains([]string{dryRunNone, dryRunClient, dryRunServer}, o.dryRun) {
		errs = append(errs, fmt.Errorf("--dry-run is %q and must be none, client or server", o.dryRun))
	}
	if err := o.filter.read(); err != nil {
		return decision{}, errors.Join(append(errs, err)...)
	}
	if o.undo != "" {
		o.undo = bare(kindOperation, o.undo)[0]
		if len(names) > 0 || !o.filter.empty() || o.decides.given() {
			errs = append(errs, errors.New("--undo cannot be combined with names, filters or a decision: "+
				"the operation records its findings and their previous decisions"))
		}
		return decision{}, errors.Join(errs...)
	}
	d, err := o.decides.read()
	errs = append(errs, err, checkSelection(names, o.filter.empty(), "findings"))
	if len(names) == 0 && (o.decides.reason == noGrounds || o.decides.expiresAt == noGrounds) {
		errs = append(errs, errors.New("--reason none and --expires-at none go with the names of findings: "+
			"with filters, --reopen the findings and decide anew"))
	}
	return d, errors.Join(errs...)
}

// checkSelection requires either names or filters, not both.
func checkSelection(names []string, unfiltered bool, what string) error {
	switch {
	case len(names) > 0 && !unfiltered:
		return fmt.Errorf("there are names and filters: name the %s or select them, not both", what)
	case len(names) == 0 && unfiltered:
		return fmt.Errorf("which %s? Name them, or select them with a filter", what)
	}
	return nil
}
