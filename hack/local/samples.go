package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
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

// samples holds the sample organization's data.
type samples struct {
	// token of the sample API key.
	token string
	// summary of the imports.
	summary  string
	receiver *receiver
}

// key returns the sample API key's token, or "" without samples.
func (s *samples) key() string {
	if s == nil {
		return ""
	}
	return s.token
}

// stop ends the processes of the samples, if there are any.
func (s *samples) stop() error {
	if s == nil {
		return nil
	}
	return s.receiver.stop()
}

// makeSamples fills the sample organization by manifests, real scans, and a real webhook. After an error nothing of it
// keeps running.
func makeSamples(ctx context.Context, o options, p *plane) (_ *samples, err error) {
	made := &samples{}
	if made.token, err = applySamples(ctx, o, p); err != nil {
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
	if made.receiver, err = startReceiver(ctx, o, p); err != nil {
		return nil, err
	}
	if err := made.receiver.subscribe(ctx, o); err != nil {
		return nil, errors.Join(err, made.receiver.stop())
	}
	return made, nil
}

// applySamples creates the sample organization from manifests, and returns its API key's token.
func applySamples(ctx context.Context, o options, p *plane) (string, error) {
	if err := apply(ctx, o, "--filename="+o.config("samples", "organization.yaml")); err != nil {
		return "", fmt.Errorf("make the sample organization: %w", err)
	}
	if err := waitForReady(ctx, o, "organization/"+sampleOrganization); err != nil {
		return "", err
	}
	for _, file := range []string{
		"repository.yaml", "project.yaml", "project-billing.yaml", "review.yaml", "reviewissue.yaml", "apikey.yaml"} {
		if err := apply(ctx, o, "--filename="+o.config("samples", file)); err != nil {
			return "", fmt.Errorf("make the samples: %w", err)
		}
	}
	if err := waitForReady(ctx, o, "--namespace="+sampleNamespace, "apikey/"+sampleAPIKey); err != nil {
		return "", err
	}
	return sampleToken(ctx, p.client)
}

func waitForReady(ctx context.Context, o options, arguments ...string) error {
	_, err := kubectl(ctx, o, append([]string{
		"wait", "--for=condition=Ready", "--timeout=" + settleTimeout.String()}, arguments...)...)
	if err != nil {
		return fmt.Errorf("wait for the controllers (log: %s): %w", o.state("logs", "controller.log"), err)
	}
	return nil
}

// sampleToken reads the token from the Secret that the sample key's status names.
func sampleToken(ctx context.Context, c client.Client) (string, error) {
	key := &v1alpha1.APIKey{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: sampleNamespace, Name: sampleAPIKey}, key); err != nil {
		return "", fmt.Errorf("read the sample API key: %w", err)
	}
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
