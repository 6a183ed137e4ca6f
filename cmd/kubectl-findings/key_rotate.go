package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/cmd/internal/flagerror"
)

const rotateLong = `Give an API key a new token and wait until it has been issued.

The previous token stays valid for the time given with --overlap. Without it the previous token is
refused at once: use that for a leaked token; other clients would be interrupted.`

// mostOverlap is the longest overlap that the API server accepts.
const mostOverlap = 720 * time.Hour

type rotateOptions struct {
	issuance
	kubeconfig *connectionFlags

	overlap time.Duration
}

// newRotateKeyCommand returns the command for both `rotate-key` and `key rotate`.
func newRotateKeyCommand(use string, kubeconfig *connectionFlags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &rotateOptions{issuance: issuance{streams: streams}, kubeconfig: kubeconfig}
	command := "rotate-key"
	if use != command {
		command = "key " + use
	}
	cmd := &cobra.Command{
		Use:   use + " NAME [--overlap DURATION]",
		Short: "Give an API key a new token",
		Long:  rotateLong,
		Example: fmt.Sprintf(`  # The previous token works for another day
  kubectl findings %[1]s dashboard --overlap 24h

  # It has leaked: it is refused at once
  kubectl findings %[1]s dashboard`, command),
		Args: flagerror.Arguments(cobra.ExactArgs(1), "give the name of one key"),
		RunE: func(cmd *cobra.Command, names []string) error {
			return o.run(cmd.Context(), names[0])
		},
		ValidArgsFunction: completeOneName(kubeconfig, "APIKey", keyDescription),
	}
	o.addFlags(cmd)
	cmd.Flags().DurationVar(&o.overlap, "overlap", 0, "how long the previous token stays valid, at most 720h")
	return cmd
}

func (o *rotateOptions) run(ctx context.Context, name string) error {
	if o.overlap < 0 || o.overlap > mostOverlap {
		return fmt.Errorf("--overlap is %s and must be from 0s to %s", o.overlap, mostOverlap)
	}
	if o.timeout <= 0 {
		return fmt.Errorf("--timeout is %s and must be greater than 0s", o.timeout)
	}
	session, err := o.kubeconfig.open()
	if err != nil {
		return err
	}
	key := &v1alpha1.APIKey{}
	err = patiently(ctx, func() error {
		if err := session.get(ctx, name, key); err != nil {
			return err
		}
		patch, err := rotation(key, o.overlap)
		if err != nil {
			return err
		}
		return session.patch(ctx, key, patch)
	})
	if err != nil {
		return session.notFound(ctx, err, need{what: "rotate API keys", role: roleAdmin, kind: "APIKey", name: name})
	}
	if err := o.untilIssued(ctx, session, key); err != nil {
		return err
	}
	return o.hand(ctx, session, key, rotated(key))
}

// rotation requests one more token than the spec did, so that two concurrent rotations make two tokens.
func rotation(key *v1alpha1.APIKey, overlap time.Duration) (client.Patch, error) {
	var until any // null: the default, none
	if overlap > 0 {
		until = overlap.String()
	}
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": key.ResourceVersion},
		"spec": map[string]any{"rotation": map[string]any{
			"serial": max(wantedSerial(key), key.Status.RotationSerial) + 1, "overlap": until,
		}},
	})
	return client.RawPatch(types.MergePatchType, data), err
}

func rotated(key *v1alpha1.APIKey) string {
	before := "is refused"
	if p := key.Status.Previous; p != nil {
		before = "works until " + instant(&p.ExpiresAt)
	}
	return fmt.Sprintf("API key %s has a new token, valid until %s; the one before %s", key.Name,
		instant(key.Status.ExpiresAt), before)
}
