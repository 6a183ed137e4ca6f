package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// What config/samples declares.
const (
	sampleOrganization = "sample"
	sampleNamespace    = v1alpha1.NamespacePrefix + sampleOrganization
	sampleAPIKey       = "sample"
	sampleRepository   = "vulnerable-service"
	sampleProject      = "vulnerable-service"
	// sampleScanner is the service account that every organization gets from its controller.
	sampleScanner = "scanner"
)

// makeSamples makes the sample organization with a repository, a project and an API key, and
// returns the key's token.
func makeSamples(ctx context.Context, o options, p *plane) (string, error) {
	if err := apply(ctx, o, "--filename="+o.config("samples", "organization.yaml")); err != nil {
		return "", fmt.Errorf("make the sample organization: %w", err)
	}
	if err := waitForReady(ctx, o, "organization/"+sampleOrganization); err != nil {
		return "", err
	}
	for _, file := range []string{"repository.yaml", "project.yaml", "apikey.yaml"} {
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
