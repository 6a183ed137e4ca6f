package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// operator holds the controllers and the REST API that were started here.
type operator struct {
	// url of the REST API, without a path.
	url string

	components []*harness.Component
}

// startOperator starts both, each with a token of its own service account.
func startOperator(ctx context.Context, o options, children *supervisor, p *plane) (*operator, error) {
	programs := harness.Operator{
		Binary: o.binary("findings-operator"), Folder: o.state("kubeconfigs"), Namespace: testenv.SystemNamespace,
	}
	config, err := p.account(ctx, testenv.SystemNamespace, testenv.ControllerServiceAccount)
	if err != nil {
		return nil, err
	}
	// The sample's receiver listens on loopback, which no deployment would allow.
	controller, err := programs.Controller("controller", config,
		append([]string{"--webhook-allow-cidr=" + loopback + "/32"}, strings.Fields(o.controllerFlags)...)...)
	if err != nil {
		return nil, err
	}
	if config, err = p.account(ctx, testenv.SystemNamespace, testenv.APIServiceAccount); err != nil {
		return nil, err
	}
	api, err := programs.Facade("apiserver", config,
		"--bind-address="+address(o.port), "--cursor-keys-dir="+o.state("cursor-keys"), "--console")
	if err != nil {
		return nil, err
	}
	op := &operator{url: "http://" + address(o.port), components: []*harness.Component{controller, api}}
	for _, component := range op.components {
		component.Log = o.state("logs", component.Name+".log")
		if err := children.start(ctx, command{component.Name, component.Path, component.Arguments}); err != nil {
			return nil, err
		}
	}
	return op, nil
}

// waitReady returns when both report that they are ready.
func (op *operator) waitReady(ctx context.Context) error {
	for _, component := range op.components {
		if err := component.AwaitReady(ctx, "http://"+component.HealthAddress+"/readyz"); err != nil {
			return fmt.Errorf("see %s: %w", component.Log, err)
		}
	}
	return nil
}
