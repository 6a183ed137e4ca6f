package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

const triageLong = `Decide about findings.

Muted findings are not to be acted on, confirmed ones are real, reopened ones are undecided again.
--reason says why in a word that can be counted, and an organization may require one to mute. --expires-at and
--expires-in end the decision by itself: then the finding is open again, and its history says whose decision ended.
Another decision comes without the reason and the end of the one before.
--comment explains the decision and replaces the previous comment; without a decision it changes only
the comment. The API server records who decided.

A decision is stale once the facts differ from those that it was made about: another severity, other
code, another version, a doubt ("kubectl findings list --stale"). Repeat the same decision to
confirm that it still holds.

Name the findings, or select them with the filters of "kubectl findings list". The selection is
shown first, and nothing is written until you confirm or pass --yes. A finding that somebody else
triages in the meantime is left as it is and counts as failed.

--dry-run=client shows what would change; --dry-run=server also has the API server check it. The
exit code is 1 if anything failed.`

const triageExample = `  # Mute a finding and say why
  kubectl findings triage f-gvoagaawln76qanzzhb4sxqjlh --mute --comment "Only the sample reads it"

  # Mute it for 30 days, with a reason
  kubectl findings triage f-gvoagaawln76qanzzhb4sxqjlh --mute --reason accepted-risk --expires-in 720h

  # Confirm two
  kubectl findings triage f-gvoagaawln76qanzzhb4sxqjlh f-2ct6uq3wq4gmjhchz5t6kb5hgi --confirm

  # Preview what would be muted, then mute it
  kubectl findings triage --field-selector spec.class=CWE-338,spec.tool=gosec --mute --dry-run
  kubectl findings triage --field-selector spec.class=CWE-338,spec.tool=gosec --mute --comment "Not used for secrets"

  # Keep muted what has changed since it was muted
  kubectl findings triage --stale --user-status muted --mute --comment "Looked at again"

  # Reopen everything that is muted in a project
  kubectl findings triage --project api --user-status muted --reopen --yes`

// The values of --dry-run.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

type triageOptions struct {
	streams    genericiooptions.IOStreams
	kubeconfig *connectionFlags

	mute, confirm, reopen bool
	grounds               groundFlags
	comment               string
	commented             bool

	filter      filter
	dryRun      string
	yes         bool
	concurrency int
	output      string
	quiet       bool
}

func newTriageCommand(kubeconfig *connectionFlags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &triageOptions{streams: streams, kubeconfig: kubeconfig}
	cmd := &cobra.Command{
		Use:     "triage (NAME... | FILTERS) (--mute | --confirm | --reopen) [--reason REASON] [--comment TEXT]",
		Short:   "Mute, confirm or reopen findings, and comment on them",
		Long:    triageLong,
		Example: triageExample,
		RunE: func(cmd *cobra.Command, names []string) error {
			o.commented = cmd.Flags().Changed("comment")
			return o.run(cmd.Context(), names)
		},
		ValidArgsFunction: completeNames(kubeconfig, "Finding", severityAndTitle),
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.mute, "mute", false, "mark the findings as not to be acted on")
	flags.BoolVar(&o.confirm, "confirm", false, "mark the findings as real")
	flags.BoolVar(&o.reopen, "reopen", false, "mark the findings as undecided")
	o.grounds.add(flags)
	flags.StringVar(&o.comment, "comment", "", "an explanation; replaces the previous comment")
	o.filter.addFlags(flags)
	flags.StringVar(&o.dryRun, "dry-run", dryRunNone,
		"none, client (show what would change) or server (have the API server check it); client if no value is given")
	flags.Lookup("dry-run").NoOptDefVal = dryRunClient
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	flags.IntVar(&o.concurrency, "concurrency", defaultConcurrency, "how many findings are written at the same time")
	flags.StringVarP(&o.output, "output", "o", "", "format of the summary: json, yaml or name; default: text")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "show no progress and no preview")
	completeFilter(cmd, kubeconfig)
	completeWords(cmd, "reason", append(reasonWords(), noGrounds))
	completeWords(cmd, "dry-run", []string{dryRunNone, dryRunClient, dryRunServer})
	return cmd
}

func (o *triageOptions) run(ctx context.Context, names []string) error {
	decision, err := o.validate(names)
	if err != nil {
		return err
	}
	session, err := o.kubeconfig.open()
	if err != nil {
		return err
	}
	t := &triager{session: session, decision: decision, dryRun: o.dryRun}
	summary := &bulkSummary{
		Action: decision.past(), Namespace: session.namespace, what: "findings", resource: "finding.appsec.dev",
	}
	if o.dryRun != dryRunNone {
		summary.DryRun = o.dryRun
	}
	targets := named(names)
	if len(names) == 0 {
		if targets, err = o.choose(ctx, t, summary); err != nil {
			return err
		}
		if len(targets)+len(summary.Unchanged) == 0 {
			if err := session.checkPlace(ctx); err != nil {
				return err
			}
		}
		if agreed, err := o.agree(ctx, decision, session.namespace, targets); !agreed || err != nil {
			return err
		}
	}
	o.write(ctx, t, targets, summary)
	return errors.Join(summary.print(o.streams.Out, o.output), t.explain(ctx, summary))
}

func (o *triageOptions) validate(names []string) (decision, error) {
	var errs []error
	var comment *string
	if o.commented {
		comment = &o.comment
	}
	grounds, errOfGrounds := o.grounds.read(time.Now())
	d, err := decide(o.mute, o.confirm, o.reopen, comment, grounds)
	errs = append(errs, errOfGrounds, err, checkSelection(names, o.filter.empty(), "findings"),
		checkConcurrency(o.concurrency), checkBulkOutput(o.output))
	if !slices.Contains([]string{dryRunNone, dryRunClient, dryRunServer}, o.dryRun) {
		errs = append(errs, fmt.Errorf("--dry-run is %q and must be none, client or server", o.dryRun))
	}
	return d, errors.Join(errs...)
}

// checkSelection wants names or filters, and not both.
func checkSelection(names []string, unfiltered bool, what string) error {
	switch {
	case len(names) > 0 && !unfiltered:
		return fmt.Errorf("there are names and filters: name the %s or select them, not both", what)
	case len(names) == 0 && unfiltered:
		return fmt.Errorf("which %s? Name them, or select them with a filter", what)
	}
	return nil
}

// target is a finding that is to be decided about.
type target struct {
	name string
	// shown is what the user saw of it before agreeing; nil where it was named.
	shown *shownFinding
}

// shownFinding is as much of a finding as a preview needs.
type shownFinding struct {
	resourceVersion string
	severity        v1alpha1.Level
	title, project  string
	verdict         verdict
}

func named(names []string) []target {
	slices.Sort(names)
	names = slices.Compact(names)
	targets := make([]target, len(names))
	for i, name := range names {
		targets[i] = target{name: name}
	}
	return targets
}

// choose returns the findings that match and would change; the others are counted.
func (o *triageOptions) choose(ctx context.Context, t *triager, summary *bulkSummary) ([]target, error) {
	options, err := o.filter.options(t.session.namespace)
	if err != nil {
		return nil, err
	}
	if err := o.filter.findOwned(ctx, t.session, t.session.namespace); err != nil {
		return nil, err
	}
	var targets []target
	_, err = t.session.eachPage(ctx, "Finding", 0, options, func(items []unstructured.Unstructured) error {
		for _, item := range items {
			f, err := decode[v1alpha1.Finding](item)
			if err != nil {
				return fmt.Errorf("read finding %s: %w", item.GetName(), err)
			}
			if !o.filter.match(&f) {
				continue
			}
			if !t.decision.changes(verdictOf(&f)) {
				summary.Unchanged = append(summary.Unchanged, f.Name)
				continue
			}
			targets = append(targets, target{f.Name, &shownFinding{
				f.ResourceVersion, f.Spec.Details.Severity, f.Spec.Details.Title, string(f.Spec.ProjectRef.Name), verdictOf(&f),
			}})
		}
		return nil
	})
	return targets, t.session.explain(err, need{what: "list findings", role: roleViewer})
}

// agree shows what would be done and asks for leave to do it.
func (o *triageOptions) agree(ctx context.Context, d decision, namespace string, targets []target) (bool, error) {
	if !o.quiet && len(targets) > 0 {
		if err := preview(o.streams.ErrOut, d, targets); err != nil {
			return false, err
		}
	}
	if len(targets) == 0 || o.dryRun != dryRunNone {
		return true, nil
	}
	agreed, err := confirm(ctx, o.streams, o.yes, fmt.Sprintf("%s %d findings in namespace %s", d.imperative(),
		len(targets), namespace))
	if !agreed && err == nil {
		fmt.Fprintln(o.streams.ErrOut, "nothing was written")
	}
	return agreed, err
}

// mostPreviewed is how many objects a preview shows.
const mostPreviewed = 20

func preview(to io.Writer, d decision, targets []target) error {
	var rows []row
	for _, t := range targets[:min(len(targets), mostPreviewed)] {
		rows = append(rows, row{
			t.name, string(t.shown.severity), t.shown.verdict.String(), d.becomes(t.shown.verdict),
			shortened(t.shown.title, titleLength), t.shown.project,
		})
	}
	columns := []column{{name: "Name"}, {name: "Severity"}, {name: "Triage"}, {name: "Becomes"}, {name: "Title"},
		{name: "Project"}}
	if err := printTable(to, columns, rows, printers.PrintOptions{}); err != nil {
		return err
	}
	if more := len(targets) - len(rows); more > 0 {
		fmt.Fprintf(to, "... and %d more\n", more)
	}
	return nil
}

func (o *triageOptions) write(ctx context.Context, t *triager, targets []target, summary *bulkSummary) {
	names := make([]string, len(targets))
	for i, target := range targets {
		names[i] = target.name
	}
	progress := newProgress(o.streams.ErrOut, o.quiet, "findings")
	endings := forEach(ctx, len(targets), o.concurrency, progress.at, func(i int) (bool, error) {
		return t.decideAbout(ctx, targets[i])
	})
	progress.finish()
	summary.count(names, endings)
	for i, e := range endings {
		if e.err != nil {
			t.first, t.firstName = e.err, names[i]
			break
		}
	}
}

// triager writes one decision to many findings.
type triager struct {
	session  *session
	decision decision
	dryRun   string

	// first is what went wrong with the first finding that failed.
	first     error
	firstName string
}

// decideAbout writes the decision to one finding, if it makes a difference there.
func (t *triager) decideAbout(ctx context.Context, target target) (changed bool, err error) {
	known := target.shown
	err = patiently(ctx, func() error {
		var err error
		if known == nil {
			if known, err = t.read(ctx, target); err != nil {
				return err
			}
		}
		if !t.decision.changes(known.verdict) {
			return nil
		}
		if err := t.write(ctx, target.name, known); err != nil {
			if apierrors.IsConflict(err) {
				known = nil // read it anew
			}
			return err
		}
		changed = true
		return nil
	})
	return changed, err
}

// read returns the finding as it is now. One that was shown and that somebody decided about since is
// refused: the user has agreed to change something else.
func (t *triager) read(ctx context.Context, target target) (*shownFinding, error) {
	f := &v1alpha1.Finding{}
	if err := t.session.get(ctx, target.name, f); err != nil {
		return nil, err
	}
	now := verdictOf(f)
	if target.shown != nil && t.decision.changes(now) {
		if err := t.meanwhile(target.shown.verdict, now, f.Spec.Triage.By); err != nil {
			return nil, err
		}
	}
	return &shownFinding{resourceVersion: f.ResourceVersion, verdict: now}, nil
}

// meanwhile says what has happened to a finding since it was shown.
func (t *triager) meanwhile(shown, now verdict, by string) error {
	switch {
	case !equality.Semantic.DeepEqual(shown.Triage, now.Triage):
		return fmt.Errorf("%s decided about it in the meantime (%s): it was left as it is", orSomebody(by), now.UserStatus)
	case shown.UserStatus != now.UserStatus:
		return fmt.Errorf("the decision of %s ended in the meantime: it was left as it is, look at it again", orSomebody(by))
	case t.decision.UserStatus != nil && shown.Facts != now.Facts:
		return errors.New("a scan changed it in the meantime: it was left as it is, look at it again")
	}
	return nil
}

func orSomebody(by string) string {
	if by == "" {
		return "somebody"
	}
	return by
}

func (t *triager) write(ctx context.Context, name string, known *shownFinding) error {
	if t.dryRun == dryRunClient {
		return nil
	}
	patch, err := t.decision.patch(known.verdict, known.resourceVersion)
	if err != nil {
		return err
	}
	var options []client.PatchOption
	if t.dryRun == dryRunServer {
		options = append(options, client.DryRunAll)
	}
	f := &v1alpha1.Finding{}
	f.Namespace, f.Name = t.session.namespace, name
	return t.session.patch(ctx, f, patch, options...)
}

// explain says why the command failed, and what to do about the first failure.
func (t *triager) explain(ctx context.Context, summary *bulkSummary) error {
	err := summary.err()
	if err == nil || t.first == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), suggestTimeout)
	defer cancel()
	next := t.session.notFound(ctx, t.first, need{what: "triage findings", role: roleTriager, kind: "Finding",
		name: t.firstName})
	return fmt.Errorf("%w: %w", err, next)
}
