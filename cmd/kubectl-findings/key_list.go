package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/cmd/internal/flagerror"
)

const keyListLong = `List an organization's API keys, their state, and when they were last used. No token is shown.`

const keyListExample = `  # Which keys exist, and when they expire
  kubectl findings key list

  # Also show what they may do
  kubectl findings key list -o wide`

func newKeyListCommand(c cli) *cobra.Command {
	output := newOutput()
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List API keys",
		Long:    keyListLong,
		Example: keyListExample,
		Args:    flagerror.NoArguments(""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return listAll(cmd.Context(), c, output, listed[v1alpha1.APIKey]{
				need: need{what: "list API keys", role: roleViewer, kind: "APIKey"}, columns: keyColumns, row: keyRow,
				none: func(s *session) string {
					return fmt.Sprintf("there are no API keys in %s; create one with: %s", place(s.namespace),
						s.command("findings", "key", "create", "NAME"))
				},
			})
		},
	}
	output.addFlags(cmd)
	return cmd
}

var keyColumns = []column{
	{name: "Name"}, {name: "Description"}, {name: "Ready"}, {name: "Reason"}, {name: "Expires"}, {name: "Last Used"}, {name: "Age"},
	{"Scopes", true}, {"Old Token Until", true}, {"Secret", true},
}

func keyRow(key *v1alpha1.APIKey, now time.Time) row {
	ready, reason, previous, secret, allowed := "", "", "", "", v1alpha1.DefaultScopes()
	if c := v1alpha1.FindCondition(key.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		ready, reason = string(c.Status), c.Reason
	}
	if p := key.Status.Previous; p != nil {
		previous = instant(&p.ExpiresAt)
	}
	if ref := key.Status.SecretRef; ref != nil {
		secret = string(ref.Name)
	}
	if len(key.Spec.Scopes) > 0 {
		allowed = key.Spec.Scopes
	}
	return row{
		key.Name, shortened(key.Spec.Description, titleLength), ready, reason,
		instant(key.Status.ExpiresAt), ago(key.Status.LastUsedAt, now),
		ago(madeAt(key), now), strings.Join(words(allowed...), ","), previous, secret,
	}
}
