package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/cmd/internal/flagerror"
	"github.com/appsec-dev/findings-operator/internal/apitime"
)

const policyLong = `Work on triage policies before they decide about findings.`

const policyTestLong = `Compare triage policies in files with the cluster: what each would decide if it were applied.

All policies of the files are evaluated together, as if they were in force, with the policies that are in
force in the namespace, over its findings that are not closed. They take the place of those of the same
name. For each policy it prints how many findings match, who decides about them, and which findings the
policy gains and loses compared with the version in the cluster. Nothing is written; if you may write
policies, a server-side dry run also checks that the API server accepts them. A policy with mode Preview,
or with validFrom in the future, is evaluated as if it applied now. If a policy of that name is in force,
applying such a file would end its decisions, so they are listed as lost.

The exit status is 0 if the comparison was made, 1 if it was not (an expression that does not compile, a
manifest that is refused, no connection), and 3 if it was made and a policy fails by --fail-on:

  gains, gains=N    it gains findings, or more than N
  losses, losses=N  it loses findings, or more than N
  changes, changes=N
                    what it decides changes for findings, or for more than N: gained, lost, or decided differently
  failures, failures=N
                    the expression fails for findings, or for more than N
  stopped           it could not come into force: more findings match than spec.maxFindings (once it
                    was stopped: than nine tenths of it), 100 other policies are in force, the
                    same expression takes too long to count in the cluster (TooCostly), or
                    spec.validUntil has come
  inert             it decides about no finding: none matches, or other policies or people decide about all

Each also fails for a file that no longer names spec.mode while the policy in the cluster has mode Apply, because
applying it may end what the policy decides.`

const policyTestExample = `  # What would this policy change?
  kubectl findings policy test -f mute-tests.yaml -n org-acme

  # All policies of a folder, with every finding that is gained or lost
  kubectl findings policy test -f policies/ --organization acme -o json

  # From another program
  kustomize build decisions/ | kubectl findings policy test -f -

  # In CI: exit status 3 if a policy reopens a finding, takes on more than 50, or could not come into force
  kubectl findings policy test -f policies/ -n org-acme --fail-on losses,gains=50,stopped`

func newPolicyCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "policy",
		Aliases: []string{"policies"},
		Short:   "Test triage policies before they are applied",
		Long:    policyLong,
		Example: policyTestExample,
		Args:    flagerror.NoArguments("use test"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newPolicyTestCommand(c))
	return cmd
}

type policyTestOptions struct {
	cli
	files  genericclioptions.FileNameFlags
	failOn []string
	output string
}

func newPolicyTestCommand(c cli) *cobra.Command {
	o := &policyTestOptions{cli: c}
	cmd := &cobra.Command{
		Use:               "test -f FILE...",
		Short:             "Compare triage policies in files with the cluster",
		Long:              policyTestLong,
		Example:           policyTestExample,
		Args:              flagerror.NoArguments("give files with -f"),
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	var kustomize string
	var recursive bool
	o.files = genericclioptions.FileNameFlags{
		Usage:     "file, folder or URL with the policies, or - for standard input (can be repeated)",
		Filenames: &[]string{}, Kustomize: &kustomize, Recursive: &recursive,
	}
	o.files.AddFlags(cmd.Flags())
	cmd.Flags().StringSliceVar(&o.failOn, "fail-on", nil,
		"exit with status 3 on "+alternatives(gateWords())+" (can be repeated; most accept a number, such as gains=50)")
	cmd.Flags().StringVarP(&o.output, "output", "o", "",
		"format of the comparison: json or yaml, which list every finding; default: text")
	completeWords(cmd, "fail-on", gateWords())
	completeWords(cmd, "output", summaryFormats)
	return cmd
}

func (o *policyTestOptions) run(ctx context.Context) error {
	gate, err := parsePolicyGate(o.failOn)
	if err := errors.Join(err, checkOutput(o.output, summaryFormats)); err != nil {
		return err
	}
	files, err := o.readWithin(ctx)
	if err != nil {
		return err
	}
	if err := compileAll(files); err != nil {
		return err
	}
	session, err := o.open()
	if err != nil {
		return err
	}
	result := &policyTestResult{}
	policies := byNamespace(files)
	for _, namespace := range slices.Sorted(maps.Keys(policies)) {
		session.namespace = namespace
		reports, err := o.compare(ctx, session, policies[namespace])
		if err != nil {
			return err
		}
		result.Policies = append(result.Policies, reports...)
	}
	result.Gate = gate.judge(result.Policies)
	return errors.Join(write(o.streams.Out, o.output, result, result.text), result.Gate.err())
}

// compare evaluates the policies, all of the session's namespace, over its findings.
func (o *policyTestOptions) compare(ctx context.Context, session *session, policies []*filedPolicy) ([]*policyReport,
	error) {
	session.unreadable = 0
	world, err := readWorld(ctx, session)
	if err != nil {
		return nil, session.explain(err, need{what: "test policies", role: roleViewer})
	}
	if world.empty() {
		if err := session.checkPlace(ctx); err != nil {
			return nil, err
		}
	}
	trials := newTrials(world, policies, apitime.Clock{}.Now())
	if err := errors.Join(trials.accepted(ctx, session)...); err != nil {
		return nil, err
	}
	err = session.eachPage(ctx, "Finding", 0, session.inNamespace(),
		func(items []unstructured.Unstructured) error {
			for _, finding := range readable[v1alpha1.Finding](session, items) {
				trials.add(finding)
			}
			return nil
		})
	if err != nil {
		return nil, session.explain(err, need{what: "list findings", role: roleViewer})
	}
	reports := trials.reports()
	if session.unreadable > 0 {
		for _, report := range reports {
			report.note(fmt.Sprintf("objects that cannot be read were left out: %d", session.unreadable))
		}
	}
	return reports, nil
}
