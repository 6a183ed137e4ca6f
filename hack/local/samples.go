package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Names from config/samples.
const (
	sampleOrganization = "sample"
	sampleNamespace    = v1alpha1.NamespacePrefix + sampleOrganization
	sampleAPIKey       = "sample"
	sampleRepository   = "vulnerable-service"
	sampleProject      = "vulnerable-service"
	// sampleScanner is the service account that the controller creates in every organization.
	sampleScanner = "scanner"
)

// earlierTimeout is how long a start without samples waits for the key of an earlier run to be ready.
const earlierTimeout = 10 * time.Second

// samples holds the sample organization's data.
type samples struct {
	// token of the sample API key; "" if the key is disabled or not ready.
	token string
	// unready is why the key of an earlier run is not ready, if it is not.
	unready string
	// summary of the imports.
	summary  string
	receiver *receiver
}

// key returns the sample API key's token, or "" if there is none.
func (s *samples) key() string {
	if s == nil {
		return ""
	}
	return s.token
}

// stop ends the processes of the samples, if there are any.
func (s *samples) stop() error {
	if s == nil || s.receiver == nil {
		return nil
	}
	return s.receiver.stop()
}

// makeSamples fills the sample organization from manifests, real scans, and a real webhook. After an error none of its
// processes keeps running.
func makeSamples(ctx context.Context, o options, p *plane) (_ *samples, err error) {
	made := &samples{}
	if made.token, err = applySamples(ctx, o, p); err != nil {
		return nil, err
	}
	if made.receiver, err = startReceiver(ctx, o, p); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, made.receiver.stop())
		}
	}()
	// Do this before the scans, whose deliveries would fail at the earlier run's port: the third attempt is minutes later.
	if err := made.receiver.moveEndpoint(ctx); err != nil {
		return nil, err
	}
	scanner, err := newScanner(ctx, o, p)
	if err != nil {
		return nil, err
	}
	if made.summary, err = scanner.scanProjects(ctx); err != nil {
		return nil, err
	}
	if err := scanner.reviewPullRequests(ctx); err != nil {
		return nil, err
	}
	if err := made.receiver.subscribe(ctx, o); err != nil {
		return nil, err
	}
	return made, nil
}

// earlierSamples returns the samples of an earlier run unchanged, or nil if there is no sample API key. Nothing
// receives their webhooks. It gives the key's controller time to renew the status of the earlier run; a key that is not
// ready then is no error, so that a user can act on it.
func earlierSamples(ctx context.Context, c client.Reader, timeout time.Duration) (*samples, error) {
	var earlier *samples
	// The reads take the outer context: the last one must not fail because the wait is over.
	err := wait.PollUntilContextTimeout(ctx, checkInterval, timeout, true, func(context.Context) (final bool, err error) {
		earlier, final, err = readSamples(ctx, c)
		return final, err
	})
	if earlier != nil && wait.Interrupted(err) && ctx.Err() == nil {
		return earlier, nil
	}
	return earlier, err
}

// readSamples returns the samples according to the key's current status, or nil if there is no key. It reports whether
// this is final, or the key's controller may still change it.
func readSamples(ctx context.Context, c client.Reader) (_ *samples, final bool, err error) {
	key := &v1alpha1.APIKey{}
	err = c.Get(ctx, client.ObjectKey{Namespace: sampleNamespace, Name: sampleAPIKey}, key)
	if apierrors.IsNotFound(err) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read the sample API key: %w", err)
	}
	ready := v1alpha1.FindCondition(key.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case !key.DeletionTimestamp.IsZero():
		return &samples{unready: "It is being deleted."}, false, nil
	case key.Spec.Disabled:
		return &samples{}, true, nil
	case ready == nil || ready.ObservedGeneration != key.Generation,
		ready.Status == metav1.ConditionTrue && hasExpired(key, time.Now()):
		return &samples{unready: "Its controller has not observed it yet."}, false, nil
	case ready.Status != metav1.ConditionTrue:
		final = v1alpha1.IsConditionTrue(key.Status.Conditions, v1alpha1.ConditionStalled)
		return &samples{unready: ready.Message}, final, nil
	}
	token, err := sampleToken(ctx, c, key)
	if apierrors.IsNotFound(err) {
		return &samples{unready: "Its Secret does not exist."}, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return &samples{token: token}, true, nil
}

// applySamples creates the sample organization from manifests, and returns its API key's token; "" if a user has
// disabled the key.
func applySamples(ctx context.Context, o options, p *plane) (string, error) {
	if err := apply(ctx, o, "--filename="+o.config("samples", "organization.yaml")); err != nil {
		return "", fmt.Errorf("make the sample organization: %w", err)
	}
	organization := &v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: sampleOrganization}}
	if err := waitForReady(ctx, o, p.client, organization, &organization.Status.Conditions); err != nil {
		return "", fmt.Errorf("wait for the sample organization: %w", err)
	}
	for _, file := range []string{
		"repository.yaml", "project.yaml", "project-billing.yaml", "review.yaml", "reviewissue.yaml", "apikey.yaml"} {
		if err := apply(ctx, o, "--filename="+o.config("samples", file)); err != nil {
			return "", fmt.Errorf("make the samples: %w", err)
		}
	}
	key := &v1alpha1.APIKey{}
	if err := p.client.Get(ctx, client.ObjectKey{Namespace: sampleNamespace, Name: sampleAPIKey}, key); err != nil {
		return "", fmt.Errorf("read the sample API key: %w", err)
	}
	if key.Spec.Disabled {
		return "", nil
	}
	if before := key.DeepCopy(); renew(key, time.Now()) {
		if err := p.client.Patch(ctx, key, client.MergeFrom(before)); err != nil {
			return "", fmt.Errorf("rotate the sample API key, which has expired: %w", err)
		}
	}
	if err := waitForReady(ctx, o, p.client, key, &key.Status.Conditions); err != nil {
		return "", fmt.Errorf("wait for the sample API key: %w", err)
	}
	return sampleToken(ctx, p.client, key)
}

// renew requests a new token for a key of an earlier run that has expired, and reports whether it has.
func renew(key *v1alpha1.APIKey, now time.Time) bool {
	if !hasExpired(key, now) {
		return false
	}
	if key.Spec.Rotation == nil {
		key.Spec.Rotation = &v1alpha1.APIKeyRotation{}
	}
	key.Spec.Rotation.Serial = max(key.Spec.Rotation.Serial, key.Status.RotationSerial) + 1
	return true
}

// hasExpired reports whether the end of the key's last token has passed.
func hasExpired(key *v1alpha1.APIKey, now time.Time) bool {
	expires := key.Status.ExpiresAt
	return expires != nil && !now.Before(expires.Time)
}

// waitForReady returns once the object, whose conditions are in the list, is ready. It fails at once if only a user
// can change that.
func waitForReady(ctx context.Context, o options, c client.Reader, object client.Object,
	list *[]v1alpha1.Condition) error {
	err := eventually(ctx, func(ctx context.Context) (bool, error) {
		*list = nil // decoding would keep what is not in the response
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return false, err
		}
		return isReady(object, *list)
	})
	if ready := v1alpha1.FindCondition(*list, v1alpha1.ConditionReady); wait.Interrupted(err) && ready != nil {
		err = fmt.Errorf("%w: %s", err, ready.Message)
	}
	if err != nil {
		return fmt.Errorf("see %s: %w", o.state("logs", "controller.log"), err)
	}
	return nil
}

// isReady reports whether the object with these conditions is ready, and why it will not be unless a user acts.
func isReady(object client.Object, list []v1alpha1.Condition) (bool, error) {
	ready := v1alpha1.FindCondition(list, v1alpha1.ConditionReady)
	switch {
	case !object.GetDeletionTimestamp().IsZero():
		message := "It is being deleted: complete that."
		if ready != nil {
			message += " " + ready.Message
		}
		return false, stuck(message)
	case ready == nil || ready.ObservedGeneration != object.GetGeneration():
		return false, nil
	case v1alpha1.IsConditionTrue(list, v1alpha1.ConditionStalled):
		return false, stuck(ready.Message)
	}
	return ready.Status == metav1.ConditionTrue, nil
}

// stuck returns the error of a start that cannot succeed until a user has followed the message.
func stuck(message string) error {
	return fmt.Errorf("%s Start with SAMPLES=false to do that", message)
}

// sampleToken reads the token from the Secret that the sample key's status names.
func sampleToken(ctx context.Context, c client.Reader, key *v1alpha1.APIKey) (string, error) {
	if key.Status.SecretRef == nil {
		return "", errors.New("the sample API key is ready and names no Secret")
	}
	secret := &corev1.Secret{}
	name := client.ObjectKey{Namespace: sampleNamespace, Name: string(key.Status.SecretRef.Name)}
	if err := c.Get(ctx, name, secret); err != nil {
		return "", fmt.Errorf("read the sample API key's token: %w", err)
	}
	return string(secret.Data[v1alpha1.APIKeyTokenKey]), nil
}
