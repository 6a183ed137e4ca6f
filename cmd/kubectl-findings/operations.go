package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/cmd/internal/flagerror"
)

const operationsLong = `List an organization's triage operations, the latest first: what each one does, its progress,
the outcome for its findings, and who created it. "kubectl findings triage --undo NAME" undoes one.`

const operationsExample = `  # What was decided about many findings at once
  kubectl findings operations

  # With the reason and comments of each, and who committed it
  kubectl findings operations -o wide`

func newOperationsCommand(c cli) *cobra.Command {
	output := newOutput()
	cmd := &cobra.Command{
		Use:     "operations",
		Aliases: []string{"ops"},
		Short:   "List triage operations",
		Long:    operationsLong,
		Example: operationsExample,
		Args:    flagerror.NoArguments(""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return listAll(cmd.Context(), c, output, listed[v1alpha1.TriageOperation]{
				need:  need{what: "list triage operations", role: roleViewer, kind: kindOperation},
				order: latestFirst, columns: operationColumns, row: operationRow,
				none: func(s *session) string { return "there are no triage operations in " + place(s.namespace) },
			})
		},
	}
	output.addFlags(cmd)
	return cmd
}

func latestFirst(a, b unstructured.Unstructured) int {
	return b.GetCreationTimestamp().Compare(a.GetCreationTimestamp().Time)
}

var operationColumns = []column{
	{name: "Name"}, {name: "Does"}, {name: "Phase"}, {name: "Matched"}, {name: "Changed"}, {name: "Unchanged"},
	{name: "Conflicted"}, {name: "Failed"}, {name: "By"}, {name: "Age"},
	{"Would Change", true}, {"Reason", true}, {"Committed By", true}, {"Comments", true},
}

func operationRow(o *v1alpha1.TriageOperation, now time.Time) row {
	s := &o.Status
	number := func(n int32) string { return strconv.Itoa(int(n)) }
	reason, comments := "", ""
	if set := o.Spec.Set; set != nil {
		reason = string(set.Reason)
		if set.Comments != nil {
			comments = cmp.Or(shortened(*set.Comments, titleLength), "(remove)")
		}
	}
	return row{
		o.Name, does(o), string(s.Phase), number(s.Matched), number(s.Changed), number(s.Unchanged), number(s.Conflicted),
		number(s.Failed), o.Spec.By, ago(madeAt(o), now),
		number(s.WouldChange), reason, o.Spec.CommittedBy, comments,
	}
}

// does describes an operation in the words of the triage flags.
func does(o *v1alpha1.TriageOperation) string {
	switch {
	case o.Spec.Undo != "":
		return "undo " + string(o.Spec.Undo)
	case o.Spec.Set == nil:
		return ""
	}
	return decisionWords[o.Spec.Set.UserStatus].verb
}

// operationDescription describes an operation beside its completed name.
func operationDescription(operation unstructured.Unstructured) string {
	o, err := decode[v1alpha1.TriageOperation](operation)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%s, %s, %d changed", does(&o), o.Status.Phase, o.Status.Changed))
}
