package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/cmd/internal/flagerror"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

const historyLong = `Show who decided what about a finding, and when: people, and policies if no person has.

The finding keeps the last 16 changes of any kind; --all also shows those that scanners made.
For a scan that was uploaded over REST it also shows the API key, while the scan is kept.
The controllers' audit log has the older decisions, and their ends, with whole comments; other older changes, such
as verdicts of policies, are not kept.`

const historyExample = `  # Who muted this, and why
  kubectl findings history f-gvoagaawln76qanzzhb4sxqjlh

  # When it was found, closed and found again
  kubectl findings history f-gvoagaawln76qanzzhb4sxqjlh --all`

type historyOptions struct {
	cli

	all    bool
	output string
}

func newHistoryCommand(c cli) *cobra.Command {
	o := &historyOptions{cli: c}
	cmd := &cobra.Command{
		Use:     "history NAME",
		Short:   "Show who decided what about a finding, and when",
		Long:    historyLong,
		Example: historyExample,
		Args:    flagerror.Arguments(cobra.ExactArgs(1), "give the name of one finding"),
		RunE: func(cmd *cobra.Command, names []string) error {
			return o.run(cmd.Context(), bare("Finding", names...)[0])
		},
		ValidArgsFunction: completeOneName(c, "Finding", severityAndTitle),
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "show every change, not only what people decided")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "json or yaml; a table if not given")
	completeWords(cmd, "output", summaryFormats)
	return cmd
}

func (o *historyOptions) run(ctx context.Context, name string) error {
	if err := checkOutput(o.output, summaryFormats); err != nil {
		return err
	}
	session, err := o.open()
	if err != nil {
		return err
	}
	finding := &v1alpha1.Finding{}
	if err := session.get(ctx, name, finding); err != nil {
		return session.notFound(ctx, err, need{what: "read findings", role: roleViewer, kind: "Finding", name: name})
	}
	finding = findingstate.Recorded(finding)
	shown, err := session.withKeys(ctx, history(finding.Status.Transitions, o.all))
	if err != nil {
		return err
	}
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

// history returns the transitions about decisions, or all. It is never nil, because it may be encoded.
func history(transitions []v1alpha1.Transition, all bool) []v1alpha1.Transition {
	shown := []v1alpha1.Transition{}
	for _, t := range transitions {
		switch t.Type {
		case v1alpha1.TransitionTriaged, v1alpha1.TransitionJudged, v1alpha1.TransitionExpired, v1alpha1.TransitionStale,
			v1alpha1.TransitionFresh:
			shown = append(shown, t)
		default:
			if all {
				shown = append(shown, t)
			}
		}
	}
	return shown
}

// change is a transition with the API key that uploaded its scan, if known.
type change struct {
	v1alpha1.Transition `json:",inline"`
	ImportedBy          string `json:"importedBy,omitempty"`
}

// withKeys adds the API keys. A scan that was deleted, or that the user may not read, has none.
func (s *session) withKeys(ctx context.Context, transitions []v1alpha1.Transition) ([]change, error) {
	keys := map[string]string{"": ""}
	changes := []change{}
	for _, t := range transitions {
		if _, known := keys[t.Scan]; !known {
			scan := &v1alpha1.Scan{}
			err := s.get(ctx, t.Scan, scan)
			if err != nil && !kube.IsNotFound(err) && !apierrors.IsForbidden(err) {
				return nil, fmt.Errorf("read scan %s: %w", t.Scan, err)
			}
			keys[t.Scan] = scan.Spec.ImportedBy
		}
		changes = append(changes, change{Transition: t, ImportedBy: keys[t.Scan]})
	}
	return changes, nil
}

func historyTable(shown []change, all bool) ([]column, []row) {
	columns := []column{{name: "When"}, {name: "Who"}, {name: "From"}, {name: "To"}, {name: "Comment"}}
	if all {
		columns = append([]column{{name: "Seq"}, {name: "What"}}, append(columns, column{name: "Scan"}, column{name: "Imported by"})...)
	}
	var rows []row
	for _, t := range shown {
		r := row{instant(&t.At), who(&t.Transition), t.From, t.To, detail(&t.Transition)}
		if !all && t.Type != v1alpha1.TransitionTriaged {
			r[4] = strings.TrimSuffix(string(t.Type)+": "+r[4], ": ")
		}
		if all {
			r = append(row{strconv.FormatInt(t.Seq, 10), string(t.Type)}, append(r, t.Scan, t.ImportedBy)...)
		}
		rows = append(rows, r)
	}
	return columns, rows
}

// who returns the author of the change: for a policy also the policy's author, for a review issue who decided about it,
// for an operation who committed it.
func who(t *v1alpha1.Transition) string {
	if t.Author == "" {
		return t.By
	}
	return fmt.Sprintf("%s (%s)", t.By, t.Author)
}

// detail returns the comment, preceded by the decision's reason and expiry.
func detail(t *v1alpha1.Transition) string {
	grounds := string(t.Reason)
	if t.ExpiresAt != nil {
		grounds = strings.TrimSpace(grounds + " until " + instant(t.ExpiresAt))
	}
	return strings.TrimSuffix(strings.TrimPrefix(grounds+": "+t.Comment, ": "), ": ")
}

// historyNotes describe what is missing from the table.
func historyNotes(f *v1alpha1.Finding, shown int) []string {
	var notes []string
	transitions := f.Status.Transitions
	if len(transitions) > 0 && transitions[0].Seq > 1 {
		notes = append(notes,
			fmt.Sprintf("changes 1 to %d are older than what the finding keeps: the controllers' audit log has the decisions "+
				"among them, and their ends; the others are not kept", transitions[0].Seq-1))
	} else if shown == 0 {
		notes = append(notes, "nobody has decided anything about it")
	}
	if v := findingstate.Verdict(f); v != nil {
		by := "no person's decision is in force; the policy " + string(v.Policy)
		if v.ReviewIssue != "" {
			by = fmt.Sprintf("no decision about the finding itself is in force; the decision of %s about the review issue %s",
				printable(v.By), v.ReviewIssue)
		}
		notes = append(notes, fmt.Sprintf("%s set the finding to %s at %s", by, v.UserStatus, instant(&v.Since)))
	}
	if findingstate.Ended(f) {
		notes = append(notes, fmt.Sprintf("the decision (%s) ended at %s: decide anew, or leave it open",
			findingstate.Declared(&f.Spec), instant(f.Status.EndedAt)))
	}
	if why := findingstate.WhyStale(f); why != "" {
		notes = append(notes,
			fmt.Sprintf("the decision was made about other facts (%s): repeat it if it still holds, or decide anew",
				printable(why)))
	}
	if s := f.Spec.Suppression; s != nil {
		suppressed := fmt.Sprintf("its source suppresses it (%s): %s", s.Kind, printable(s.Justification))
		notes = append(notes, strings.TrimSuffix(suppressed, ": "))
	}
	if !findingstate.IsRecorded(f) {
		notes = append(notes, "the last change has yet to be recorded: ask again in a moment")
	}
	return notes
}
