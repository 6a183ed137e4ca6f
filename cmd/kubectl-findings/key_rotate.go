package main

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/cmd/internal/flagerror"
	"github.com/appsec-dev/findings-operator/internal/apitime"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

const rotateLong = `Give an API key a new token and wait until it has been issued.

The previous token stays valid for the time given with --overlap. Without it the previous token is
refused at once, which interrupts clients that use it: do that only if the token leaked.

A key with a spec.expiresAt, which --expires-in sets, expires at that time, even if it gets a new token:
--expires-in sets another time, counted from now. A key without spec.expiresAt needs no such flag: each
new token is valid for 90 days, or the organization's maximum if that is less. With --expires-in the key
gets a fixed end, which later rotations do not change.`

// maxOverlap is the longest overlap that the API server accepts.
const maxOverlap = 720 * time.Hour

type rotateOptions struct {
	issuance

	overlap time.Duration
}

// newRotateKeyCommand returns the command for both `rotate-key` and `key rotate`.
func newRotateKeyCommand(use string, c cli) *cobra.Command {
	o := &rotateOptions{issuance: issuance{cli: c}}
	command := "rotate-key"
	if use != command {
		command = "key " + use
	}
	cmd := &cobra.Command{
		Use:   use + " NAME [--overlap DURATION] [--expires-in DURATION]",
		Short: "Give an API key a new token",
		Long:  rotateLong,
		Example: fmt.Sprintf(`  # The previous token works for another day
  kubectl findings %[1]s dashboard --overlap 24h

  # It has leaked: it is refused at once
  kubectl findings %[1]s dashboard

  # The key is about to end, or has ended: it is valid for another 30 days
  kubectl findings %[1]s dashboard --overlap 24h --expires-in 720h`, command),
		Args: flagerror.Arguments(cobra.ExactArgs(1), "give the name of one key"),
		RunE: func(cmd *cobra.Command, names []string) error {
			if err := o.check(cmd.Flags().Changed); err != nil {
				return err
			}
			return o.run(cmd.Context(), bare("APIKey", names...)[0])
		},
		ValidArgsFunction: completeOneName(c, "APIKey", keyDescription),
	}
	o.addFlags(cmd, "how long the key is valid from now on, for example 720h; default: its end is not changed")
	cmd.Flags().DurationVar(&o.overlap, "overlap", 0, "how long the previous token stays valid, at most 720h")
	return cmd
}

func (o *rotateOptions) run(ctx context.Context, name string) error {
	if o.overlap < 0 || o.overlap > maxOverlap {
		return fmt.Errorf("--overlap is %s and must be from 0s to %s", o.overlap, maxOverlap)
	}
	session, err := o.open()
	if err != nil {
		return err
	}
	key := &v1alpha1.APIKey{}
	if err := o.request(ctx, session, name, key); err != nil {
		return session.notFound(ctx, err, need{what: "rotate API keys", role: roleAdmin, kind: "APIKey", name: name})
	}
	if err := o.untilIssued(ctx, session, key); err != nil {
		return err
	}
	return o.reportToken(ctx, session, key, rotated(key))
}

// request requests a new token, once, even if the response is lost: a second rotation would replace a token that nobody
// has received yet, and end the current one without its overlap.
func (o *rotateOptions) request(ctx context.Context, s *session, name string, key *v1alpha1.APIKey) error {
	var unanswered *v1alpha1.APIKeyRotation
	var expiresAt *v1alpha1.Time
	err := withRetries(ctx, func() error {
		*key = v1alpha1.APIKey{} // or decoding would keep an overlap that is not in the response
		if err := s.get(ctx, name, key); err != nil {
			return err
		}
		if unanswered != nil && reflect.DeepEqual(key.Spec.Rotation, unanswered) {
			return nil // written by an earlier attempt
		}
		if expiresAt == nil {
			expiresAt = o.expiresAt()
		}
		if end := key.Spec.ExpiresAt; expiresAt == nil && end != nil && !end.After(apitime.Now()) {
			return fmt.Errorf("API key %s and all its tokens expired at %s (spec.expiresAt): "+
				"set a new end with --expires-in", name, instant(end))
		}
		next := nextRotation(key, o.overlap)
		patch, err := rotation(key, next, expiresAt)
		if err != nil {
			return err
		}
		if err = s.patch(ctx, key, patch); kube.IsOutcomeUnknown(err) {
			unanswered = next
		}
		return err
	})
	if err != nil && unanswered != nil {
		return fmt.Errorf("it is not known whether API key %s gets a new token: %w\n"+
			"Do not rotate it again if this prints %d: %s",
			name, err, unanswered.Serial, s.printField("spec.rotation.serial", name))
	}
	return err
}

// nextRotation returns a rotation to the serial after that in the spec, so that two concurrent rotations make two
// tokens.
func nextRotation(key *v1alpha1.APIKey, overlap time.Duration) *v1alpha1.APIKeyRotation {
	next := &v1alpha1.APIKeyRotation{Serial: max(key.Spec.Rotation.WantedSerial(), key.Status.RotationSerial) + 1}
	if overlap > 0 {
		next.Overlap = &metav1.Duration{Duration: overlap}
	}
	return next
}

// rotation returns the patch that requests the rotation, and sets the key's expiry unless it is nil.
func rotation(key *v1alpha1.APIKey, next *v1alpha1.APIKeyRotation, expiresAt *v1alpha1.Time) (client.Patch, error) {
	// An overlap of null is the default, none.
	spec := map[string]any{"rotation": map[string]any{"serial": next.Serial, "overlap": next.Overlap}}
	if expiresAt != nil {
		spec["expiresAt"] = expiresAt
	}
	data, err := kube.MergePatch(key.ResourceVersion, "spec", spec)
	return client.RawPatch(types.MergePatchType, data), err
}

// printField returns the command that prints a field of the key.
func (s *session) printField(field, name string) string {
	return s.command("get", "apikey", name, "-o", "jsonpath={."+field+"}")
}

func rotated(key *v1alpha1.APIKey) string {
	before := "is refused"
	if p := key.Status.Previous; p != nil {
		before = "works until " + instant(&p.ExpiresAt)
	}
	text := fmt.Sprintf("API key %s has a new token, valid until %s; the one before %s%s", key.Name,
		instant(key.Status.ExpiresAt), before, endsEarlier(key))
	if key.Spec.Disabled {
		text += "\nThe key is disabled: its tokens are refused until spec.disabled is removed"
	}
	return text
}
