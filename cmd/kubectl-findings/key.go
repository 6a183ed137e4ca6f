package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/cmd/internal/flagerror"
	"github.com/appsec-dev/findings-operator/internal/apitime"
)

const keyLong = `Create, list and rotate the API keys of an organization.

A key's token is stored in a Secret and nowhere else: whoever may read the organization's Secrets
may read its tokens.`

func newKeyCommand(c cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "key",
		Aliases: []string{"keys"},
		Short:   "Create, list and rotate API keys",
		Long:    keyLong,
		Example: keyCreateExample,
		Args:    flagerror.NoArguments("use create, list or rotate; kubectl delete apikey NAME deletes a key"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newKeyCreateCommand(c),
		newKeyListCommand(c),
		newRotateKeyCommand("rotate", c),
	)
	return cmd
}

// issuance is what key create and rotate-key have in common: setting the key's expiry, waiting for a token and showing
// it.
type issuance struct {
	cli
	expiresIn time.Duration
	showToken bool
	timeout   time.Duration
}

const flagExpiresIn = "expires-in"

// addFlags adds the flags; expiresIn describes --expires-in.
func (i *issuance) addFlags(cmd *cobra.Command, expiresIn string) {
	cmd.Flags().DurationVar(&i.expiresIn, flagExpiresIn, 0, expiresIn)
	cmd.Flags().BoolVar(&i.showToken, "show-token", false,
		"print only the token to standard output; this reads the key's Secret")
	cmd.Flags().DurationVar(&i.timeout, "timeout", time.Minute, "how long to wait for the token")
}

// check checks the flags; given reports whether a flag is set.
func (i *issuance) check(given func(flag string) bool) error {
	var err error
	if given(flagExpiresIn) && i.expiresIn <= 0 {
		err = fmt.Errorf("--expires-in is %s and must be greater than 0", i.expiresIn)
	}
	return errors.Join(err, checkTimeout(i.timeout))
}

// expiresAt returns the expiry that --expires-in gives the key; nil without the flag. It counts from the API server's
// clock once a response has told that, as for rotate-key, which reads the key first: the controllers' clocks decide
// when the key expires. The expiry of a new key is computed before any request, so it counts from the local clock.
func (i *issuance) expiresAt() *v1alpha1.Time {
	if i.expiresIn == 0 {
		return nil
	}
	at := v1alpha1.NewTime(apitime.Now().Add(i.expiresIn))
	return &at
}

// untilIssued waits until the token that the key's spec requests is issued.
func (i *issuance) untilIssued(ctx context.Context, s *session, key *v1alpha1.APIKey) error {
	name, generation, serial := key.Name, key.Generation, key.Spec.Rotation.WantedSerial()
	ctx, cancel := context.WithTimeout(ctx, i.timeout)
	defer cancel()
	token := "token"
	next := "\nThe key was created. Its token is issued once this prints the name of a Secret: " +
		s.printField("status.secretRef.name", name)
	if serial > 0 {
		token = "new token"
		next = fmt.Sprintf("\nThe request remains. Do not rotate again: that could end the current token at once. "+
			"The new token is issued once this prints %d: %s", serial, s.printField("status.rotationSerial", name))
	}
	var never error
	err := s.await(ctx, key, func() (issued bool, _ error) {
		issued, never = isIssued(key, generation, serial)
		return issued, never
	})
	switch {
	case err == nil, never != nil:
		return err
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("API key %s has no %s after %s; is the controller of findings-operator running? "+
			"See: %s%s", name, token, i.timeout, s.command("describe", "apikey", name), next)
	}
	return fmt.Errorf("wait for the %s of API key %s: %w%s", token, name,
		s.explain(err, need{what: "read API keys", role: roleViewer}), next)
}

// isIssued reports whether the controllers have processed that generation of the key. It returns an error if they never
// will.
func isIssued(key *v1alpha1.APIKey, generation, serial int64) (bool, error) {
	if key.Status.ObservedGeneration < generation {
		return false, nil
	}
	if v1alpha1.IsConditionTrue(key.Status.Conditions, v1alpha1.ConditionStalled) {
		stalled := v1alpha1.FindCondition(key.Status.Conditions, v1alpha1.ConditionStalled)
		return false, fmt.Errorf("API key %s gets no token (%s): %s", key.Name, stalled.Reason, stalled.Message)
	}
	return key.Status.KeyID != "" && key.Status.RotationSerial >= serial, nil
}

// reportToken reports where the token is stored, or prints it on request: only the token goes to standard output,
// everything else to standard error.
func (i *issuance) reportToken(ctx context.Context, s *session, key *v1alpha1.APIKey, what string) error {
	fmt.Fprintln(i.streams.ErrOut, what)
	name := string(key.Status.SecretRef.Name)
	get := s.command("get", "secret", name, "-o", "go-template={{.data."+v1alpha1.APIKeyTokenKey+" | base64decode}}")
	if !i.showToken {
		fmt.Fprintf(i.streams.ErrOut, "The token is in Secret %s; if you may read it, get it with:\n  %s\n", name, get)
		return nil
	}
	next := "Do not rotate the key for it. Get the token with: " + get
	secret := &corev1.Secret{}
	switch err := withRetries(ctx, func() error { return s.get(ctx, name, secret) }); {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the token is in Secret %s, which you may not read: %w", name, err)
	case err != nil:
		return fmt.Errorf("the token was issued, but Secret %s, which holds it, cannot be read: %w\n%s", name,
			err, next)
	case len(secret.Data[v1alpha1.APIKeyTokenKey]) == 0:
		return fmt.Errorf("there is no %s in Secret %s, although one was issued: see %s",
			v1alpha1.APIKeyTokenKey, name, s.command("describe", "apikey", key.Name))
	}
	if _, err := fmt.Fprintf(i.streams.Out, "%s\n", secret.Data[v1alpha1.APIKeyTokenKey]); err != nil {
		return fmt.Errorf("the token was issued, but cannot be printed: %w\n%s", err, next)
	}
	return nil
}
