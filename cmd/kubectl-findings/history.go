package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

const historyLong = `Show who decided what about a finding, and when.

The finding keeps the last 16 changes of any sort; --all shows those that scanners made too.
What is older, and comments in full, are in the controllers' audit log.`

const historyExample = `  # Who muted this, and why
  kubectl findings history f-gvoagaawln76qanzzhb4sxqjlh

  # When it was found, closed and found again
  kubectl findings history f-gvoagaawln76qanzzhb4sxqjlh --all`

type historyOptions struct {
	streams    genericiooptions.IOStreams
	kubeconfig *connectionFlags

	all    bool
	output string
}

func newHistoryCommand(kubeconfig *connectionFlags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &historyOptions{streams: streams, kubeconfig: kubeconfig}
	cmd := &cobra.Command{
		Use:     "history NAME",
		Short:   "Show who decided what about a finding, and when",
		Long:    historyLong,
		Example: historyExample,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			return o.run(cmd.Context(), names[0])
		},
		ValidArgsFunction: completeOneName(kubeconfig, "Finding", severityAndTitle),
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "show every change, not only what people decided")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "json or yaml; a table if not given")
	return cmd
}

func (o *historyOptions) run(ctx context.Context, name string) error {
	if err := checkOutput(o.output); err != nil {
		return err
	}
	session, err := o.kubeconfig.open()
	if err != nil {
		return err
	}
	finding := &v1alpha1.Finding{}
	if err := session.get(ctx, name, finding); err != nil {
		return session.notFound(ctx, err, need{what: "read findings", role: roleViewer, kind: "Finding", name: name})
	}
	shown := history(finding.Status.Transitions, o.all)
	if o.output != "" {
		return write(o.streams.Out, o.output, shown, nil)
	}
	if len(shown) > 0 {
		columns, rows := historyTable(shown, o.all)
		if err := newOutput().table(o.streams.Out, columns, rows); err != nil {
			return err
		}
	}
	for _, note := range historyNotes(finding, len(shown)) {
		fmt.Fprintln(o.streams.ErrOut, note)
	}
	return nil
}

// history picks the decisions of people, or everything; never nil, for it may be encoded.
func history(transitions []v1alpha1.Transition, all bool) []v1alpha1.Transition {
	shown := []v1alpha1.Transition{}
	for _, t := range transitions {
		if all || t.Type == v1alpha1.TransitionTriaged {
			shown = append(shown, t)
		}
	}
	return shown
}

func historyTable(shown []v1alpha1.Transition, all bool) ([]column, []row) {
	columns := []column{{name: "When"}, {name: "Who"}, {name: "From"}, {name: "To"}, {name: "Comment"}}
	if all {
		columns = append([]column{{name: "Seq"}, {name: "What"}}, append(columns, column{name: "Scan"})...)
	}
	var rows []row
	for _, t := range shown {
		r := row{instant(&t.At), t.By, t.From, t.To, t.Comment}
		if all {
			r = append(row{strconv.FormatInt(t.Seq, 10), string(t.Type)}, append(r, t.Scan)...)
		}
		rows = append(rows, r)
	}
	return columns, rows
}

// historyNotes say what the table does not show.
func historyNotes(f *v1alpha1.Finding, shown int) []string {
	var notes []string
	transitions := f.Status.Transitions
	if len(transitions) > 0 && transitions[0].Seq > 1 {
		notes = append(notes, fmt.Sprintf("changes 1 to %d are older than what the finding keeps: they are in the controllers' audit log", transitions[0].Seq-1))
	} else if shown == 0 {
		notes = append(notes, "nobody has decided anything about it")
	}
	if f.Status.ObservedGeneration < f.Generation {
		notes = append(notes, "the last change has yet to be recorded: ask again in a moment")
	}
	return notes
}
