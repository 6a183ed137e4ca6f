package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
)

// operator is the controllers and the REST API as started here.
type operator struct {
	// url of the REST API, without a path.
	url string
	// readiness maps a child's name to the address that answers 200 once it is ready.
	readiness map[string]string
}

// startOperator starts both, each with a token of its own service account.
func startOperator(ctx context.Context, o options, children *supervisor, p *plane) (*operator, error) {
	ports, err := freePorts(ctx, 3)
	if err != nil {
		return nil, err
	}
	controllerHealth, controllerMetrics, apiHealth := address(ports[0]), address(ports[1]), address(ports[2])
	kubeconfig, err := accountKubeconfig(ctx, o, p, systemNamespace, controllerAccount)
	if err != nil {
		return nil, err
	}
	if err := children.start(ctx, command{name: "controller", path: o.binary("findings-operator"), arguments: []string{
		"controller",
		"--kubeconfig=" + kubeconfig,
		"--health-probe-bind-address=" + controllerHealth,
		"--metrics-bind-address=" + controllerMetrics,
		"--namespace=" + systemNamespace,
		// The sample's receiver listens there, which no deployment would allow.
		"--webhook-allow-cidr=" + loopback + "/32",
	}}); err != nil {
		return nil, err
	}
	if kubeconfig, err = accountKubeconfig(ctx, o, p, systemNamespace, apiAccount); err != nil {
		return nil, err
	}
	if err := children.start(ctx, command{name: "apiserver", path: o.binary("findings-operator"), arguments: []string{
		"apiserver",
		"--kubeconfig=" + kubeconfig,
		"--bind-address=" + address(o.port),
		"--health-bind-address=" + apiHealth,
		"--namespace=" + systemNamespace,
		"--cursor-keys-dir=" + o.state("cursor-keys"),
	}}); err != nil {
		return nil, err
	}
	return &operator{
		url: "http://" + address(o.port),
		readiness: map[string]string{
			"controller": "http://" + controllerHealth + "/readyz",
			"apiserver":  "http://" + apiHealth + "/readyz",
		},
	}, nil
}

// waitReady returns when both say that they are ready.
func (op *operator) waitReady(ctx context.Context, o options) error {
	httpClient := &http.Client{Timeout: 5 * time.Second}
	for name, url := range op.readiness {
		last := errors.New("no answer")
		err := eventually(ctx, func(ctx context.Context) (bool, error) {
			last = checkReady(ctx, httpClient, url)
			return last == nil, nil
		})
		if err != nil {
			return fmt.Errorf("%s did not become ready (%w, last: %w); its log %s ends:\n%s",
				name, err, last, o.state("logs", name+".log"), tail(o.state("logs", name+".log"), 10))
		}
	}
	return nil
}

func checkReady(ctx context.Context, httpClient *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := httpClient.Do(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}

// tail returns the last lines of a file, as far as they can be read.
func tail(path string, count int) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}
