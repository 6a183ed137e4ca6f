package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/cmd/internal/flagerror"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
)

const triageIssueLong = `Decide about issues of pull requests.

Muted issues are not to be acted on, confirmed ones are real, reopened ones are undecided again; --reason,
--expires-at, --expires-in and --comment mean the same as for "kubectl findings triage". The API server
records who decided.

Later reviews of the pull request keep the decision. A gate ignores decisions: it fails for muted issues
too. Once the base branch has the same result, its finding shows the decision with its author, as long
as nobody has decided about the finding.`

const triageIssueExample = `  # Mute an issue with a reason
  kubectl findings triage-issue i-gvoagaawln76qanzzhb4sxqjlh --mute --reason used-in-tests

  # The issues of one pull request
  kubectl get reviewissues --field-selector spec.reviewRef.name=r-eok46ouhpsongpfsogwqhngnmc`

type triageIssueOptions struct {
	cli

	decides decisionFlags
	output  string
}

func newTriageIssueCommand(c cli) *cobra.Command {
	o := &triageIssueOptions{cli: c}
	cmd := &cobra.Command{
		Use:     "triage-issue NAME... (--mute | --confirm | --reopen) [--reason REASON] [--comment TEXT]",
		Short:   "Mute, confirm or reopen issues of pull requests, and comment on them",
		Long:    triageIssueLong,
		Example: triageIssueExample,
		Args:    flagerror.Arguments(cobra.MinimumNArgs(1), "give the name of at least one issue"),
		RunE: func(cmd *cobra.Command, names []string) error {
			return o.run(cmd.Context(), names)
		},
		ValidArgsFunction: completeNames(c, "ReviewIssue", issueDescription),
	}
	flags := cmd.Flags()
	o.decides.add(flags, "issues")
	completeWords(cmd, "reason", append(reasonWords(), noGrounds))
	addSummaryOutput(cmd, &o.output, bulkFormats)
	return cmd
}

func issueDescription(issue unstructured.Unstructured) string {
	return text(issue, "spec", "severity") + " " + text(issue, "spec", "title")
}

func (o *triageIssueOptions) run(ctx context.Context, names []string) error {
	d, err := o.decides.read()
	if err := errors.Join(err, checkOutput(o.output, bulkFormats)); err != nil {
		return err
	}
	s, err := o.open()
	if err != nil {
		return err
	}
	if err := o.decides.setEnd(ctx, s, &d); err != nil {
		return err
	}
	t := &triager{session: s, decision: d, dryRun: dryRunNone}
	names = distinct(bare("ReviewIssue", names...))
	outcomes := forEach(ctx, len(names), defaultConcurrency, func(int, int) {}, func(i int) (bool, error) {
		return t.decideAboutIssue(ctx, names[i])
	})
	summary := &bulkSummary{
		Action: d.wording().past, Namespace: s.namespace, what: "issues", resource: "reviewissue.appsec.dev",
	}
	summary.count(names, outcomes)
	return summary.conclude(ctx, s, o.streams.Out, o.output,
		need{what: "triage issues of pull requests", role: roleTriager, kind: "ReviewIssue"})
}

func (t *triager) decideAboutIssue(ctx context.Context, name string) (changed bool, err error) {
	issue := &v1alpha1.ReviewIssue{}
	return t.decideAbout(ctx, name, issue, func() verdict { return verdict{reviewstate.StandingOf(issue)} })
}
