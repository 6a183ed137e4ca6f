package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/test/testenv"
)

const (
	// settleTimeout bounds each wait for the control plane or the operator to act.
	settleTimeout = time.Minute
	// checkInterval is the polling interval of a wait.
	checkInterval = 100 * time.Millisecond
)

// install applies the CRDs, roles and admission policies and returns when all are in force.
func install(ctx context.Context, o options, config *rest.Config) error {
	if err := apply(ctx, o, "--kustomize", o.config("plane")); err != nil {
		return fmt.Errorf("install config/plane: %w", err)
	}
	if _, err := kubectl(ctx, o, "wait", "--for=condition=Established", "--timeout="+settleTimeout.String(),
		"customresourcedefinitions", "--all"); err != nil {
		return fmt.Errorf("wait for the custom resources to be served: %w", err)
	}
	return testenv.AwaitPolicies(ctx, config)
}

// eventually polls until the condition holds, it returns an error, or settleTimeout is over.
func eventually(ctx context.Context, condition wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextTimeout(ctx, checkInterval, settleTimeout, true, condition)
}
