package main

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// plane is etcd and kube-apiserver, with their data in the run folder.
type plane struct {
	// config is the administrator's, without a client-side rate limit.
	config *rest.Config
	// client of that administrator, which reads from the API server.
	client client.Client
}

// startPlane starts both and returns when the API server is ready. They are restarted if they die. They run until
// children is stopped, also after an error.
func startPlane(ctx context.Context, o options, keys *pki, children *supervisor) (*plane, error) {
	described, err := harness.NewControlPlane(harness.ControlPlaneOptions{Folder: o.runDir,
		Credentials: &keys.Credentials})
	if err != nil {
		return nil, err
	}
	for _, process := range []*harness.Process{described.Etcd, described.APIServer} {
		process.Log = o.state("logs", process.Name+".log")
		if err := children.start(ctx, command{process.Name, process.Path, process.Arguments}); err != nil {
			return nil, err
		}
	}
	if err := described.AwaitReady(ctx); err != nil {
		return nil, err
	}
	p := &plane{config: described.Admin}
	if p.client, err = client.New(p.config, client.Options{Scheme: testenv.NewScheme()}); err != nil {
		return nil, fmt.Errorf("make the administrator's client: %w", err)
	}
	return p, harness.WriteKubeconfig(o.state("kubeconfig"), p.config, "default")
}

// as returns a config that authenticates with the token.
func (p *plane) as(token string) *rest.Config {
	config := rest.CopyConfig(p.config)
	config.BearerToken = token
	return config
}
