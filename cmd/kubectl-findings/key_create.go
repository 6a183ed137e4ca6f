package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/cmd/internal/flagerror"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

const keyCreateLong = `Create an API key and wait until its token has been issued.

The token is printed only with --show-token; else the command names the Secret that holds it. A
key without a scope may read and decide; to import scans, read webhook deliveries and send them
again, write policies or read keys, a key must list the scope. Without --expires-in
it expires after 90 days, or earlier if the organization's maximum lifetime is shorter. If that ends
a key before the requested time, the command reports it.`

const keyCreateExample = `  # A read-only key for a dashboard
  kubectl findings key create dashboard --description "The team's dashboard" \
    --scope findings:read --scope repos:read --expires-in 720h

  # A key for uploads from CI, into a variable
  FINDINGS_API_KEY=$(kubectl findings key create ci --scope findings:import --show-token)
  export FINDINGS_API_KEY`

type keyCreateOptions struct {
	issuance

	description       string
	scopes            []string
	requestsPerMinute int32
}

func newKeyCreateCommand(c cli) *cobra.Command {
	o := &keyCreateOptions{issuance: issuance{cli: c}}
	cmd := &cobra.Command{
		Use:     "create NAME",
		Short:   "Create an API key",
		Long:    keyCreateLong,
		Example: keyCreateExample,
		Args:    flagerror.Arguments(cobra.ExactArgs(1), "give the name of one key"),
		RunE: func(cmd *cobra.Command, names []string) error {
			return o.run(cmd.Context(), names[0], cmd.Flags().Changed)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	o.addFlags(cmd, "how long the key is valid, for example 720h")
	cmd.Flags().StringVar(&o.description, "description", "", "who uses the key and for what")
	cmd.Flags().StringSliceVar(&o.scopes, "scope", nil, "what the key may do: "+alternatives(scopes)+" (can be repeated)")
	cmd.Flags().Int32Var(&o.requestsPerMinute, "requests-per-minute", 0,
		"rate limit of the key; default: the organization's")
	completeWords(cmd, "scope", scopes)
	return cmd
}

var scopes = words(v1alpha1.Scopes()...)

func (o *keyCreateOptions) run(ctx context.Context, name string, given func(flag string) bool) error {
	spec, err := o.spec(given)
	if err != nil {
		return err
	}
	session, err := o.open()
	if err != nil {
		return err
	}
	key := &v1alpha1.APIKey{Spec: spec}
	key.Namespace, key.Name = session.namespace, name
	if err := o.create(ctx, session, key); err != nil {
		return err
	}
	if err := o.untilIssued(ctx, session, key); err != nil {
		return err
	}
	return o.reportToken(ctx, session, key, created(key))
}

// created describes the new key: also whether the organization's maximum lifetime makes it expire before the requested
// time, and whether it lacks a scope that another one requires.
func created(key *v1alpha1.APIKey) string {
	return fmt.Sprintf("API key %s was created, valid until %s", key.Name, instant(key.Status.ExpiresAt)) +
		endsEarlier(key) + lacksTriage(key)
}

// endsEarlier returns a line about a key whose token expires before the time in its spec; empty for others.
func endsEarlier(key *v1alpha1.APIKey) string {
	asked := key.Spec.ExpiresAt
	if asked == nil || !key.Status.ExpiresAt.Before(asked) {
		return ""
	}
	return fmt.Sprintf("\nspec.expiresAt is %s: the organization's maximum lifetime (spec.apiKeys.maxLifetime) "+
		"ends it earlier", instant(asked))
}

// lacksTriage returns a line about a key that has the scope policies:write but may not write policies; empty for
// others.
func lacksTriage(key *v1alpha1.APIKey) string {
	if !slices.Contains(key.Spec.Scopes, v1alpha1.ScopePoliciesWrite) ||
		slices.Contains(key.Spec.Scopes, v1alpha1.ScopeFindingsTriage) {
		return ""
	}
	return "\nIt cannot write policies yet: policies:write needs findings:triage too, so add that to spec.scopes"
}

func (o *keyCreateOptions) create(ctx context.Context, s *session, key *v1alpha1.APIKey) error {
	err := s.create(ctx, key)
	if kube.IsAlreadyExists(err) {
		return fmt.Errorf("%w\nTake another name, or get a new token for that key with: %s",
			err, s.command("findings", "rotate-key", key.Name))
	}
	if kube.IsNotFound(err) {
		return errors.Join(s.checkPlace(ctx), err)
	}
	if kube.IsOutcomeUnknown(err) {
		return fmt.Errorf("it is not known whether API key %s was created: %w\n"+
			"If this prints the name of a Secret, the key exists and its token is there; if it prints nothing, the token "+
			"follows: repeat it; if it does not find the key, create that again: %s", key.Name, err,
			s.printField("status.secretRef.name", key.Name))
	}
	return s.explain(err, need{what: "create API keys", role: roleAdmin})
}

// spec reads the flags; given reports whether a flag is set.
func (o *keyCreateOptions) spec(given func(flag string) bool) (v1alpha1.APIKeySpec, error) {
	spec := v1alpha1.APIKeySpec{Description: o.description, ExpiresAt: o.expiresAt()}
	errs := []error{o.check(given)}
	switch limited := given("requests-per-minute"); {
	case limited && o.requestsPerMinute < 1:
		errs = append(errs, fmt.Errorf("--requests-per-minute is %d and must be from 1", o.requestsPerMinute))
	case limited:
		spec.RateLimit = &v1alpha1.RateLimit{RequestsPerMinute: &o.requestsPerMinute}
	}
	for _, scope := range o.scopes {
		if !slices.Contains(scopes, scope) {
			errs = append(errs, fmt.Errorf("--scope is %q and must be %s", scope, alternatives(scopes)))
		}
		if !slices.Contains(spec.Scopes, v1alpha1.Scope(scope)) {
			spec.Scopes = append(spec.Scopes, v1alpha1.Scope(scope))
		}
	}
	return spec, errors.Join(errs...)
}
