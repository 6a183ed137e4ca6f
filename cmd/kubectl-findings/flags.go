package main

import (
	"fmt"
	"time"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/internal/importer"
)

// connect returns the namespace that the flags and the kubeconfig name, and a client.
func connect(kubeconfig *genericclioptions.ConfigFlags) (string, client.Client, error) {
	namespace, _, err := kubeconfig.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", nil, err
	}
	config, err := kubeconfig.ToRESTConfig()
	if err != nil {
		return "", nil, err
	}
	c, err := importer.NewClient(config)
	return namespace, c, err
}

// timeFlag is the zero time where the flag is not given.
func timeFlag(flag, value string) (time.Time, error) {
	if value == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return t, fmt.Errorf("--%s is %q and must be a time in RFC 3339, as 2026-01-31T12:00:00Z: %w", flag, value, err)
	}
	return t, nil
}

func checkConcurrency(n int) error {
	if n < 1 || n > 256 {
		return fmt.Errorf("--concurrency is %d and must be from 1 to 256", n)
	}
	return nil
}

func checkOutput(output string) error {
	if output != "" && output != outputJSON && output != outputYAML {
		return fmt.Errorf("--output is %q and must be json or yaml", output)
	}
	return nil
}
