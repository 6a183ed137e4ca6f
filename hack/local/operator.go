package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// startOperator starts the controllers and the REST API, each with a token of its own service account. It returns the
// address of the REST API, without a path, when both report that they are ready.
func startOperator(ctx context.Context, o options, children *supervisor, p *plane) (url string, err error) {
	programs := harness.Operator{
		Binary: o.binary("findings-operator"), Folder: o.state("kubeconfigs"), Namespace: testenv.SystemNamespace,
	}
	config, err := p.account(ctx, testenv.SystemNamespace, testenv.ControllerServiceAccount)
	if err != nil {
		return "", err
	}
	// The sample's receiver listens on loopback, which no deployment would allow.
	controller, err := programs.Controller("controller", config,
		append([]string{"--webhook-allow-cidr=" + loopback + "/32"}, strings.Fields(o.controllerFlags)...)...)
	if err != nil {
		return "", err
	}
	if config, err = p.account(ctx, testenv.SystemNamespace, testenv.APIServiceAccount); err != nil {
		return "", err
	}
	api, err := programs.Facade("apiserver", config,
		"--bind-address="+address(o.port), "--cursor-keys-dir="+o.state("cursor-keys"), "--console")
	if err != nil {
		return "", err
	}
	components := []*harness.Component{controller, api}
	for _, component := range components {
		component.Log = o.state("logs", component.Name+".log")
		if err := children.start(ctx, command{component.Name, component.Path, component.Arguments}); err != nil {
			return "", err
		}
	}
	for _, component := range components {
		if err := component.AwaitReady(ctx, "http://"+component.HealthAddress+"/readyz"); err != nil {
			return "", fmt.Errorf("see %s: %w", component.Log, err)
		}
	}
	return "http://" + address(o.port), nil
}
