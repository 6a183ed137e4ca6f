package harness

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// Operator starts the operator's processes on addresses of this machine.
type Operator struct {
	// Binary is the path of findings-operator.
	Binary string
	// Folder holds kubeconfigs and logs.
	Folder string
	// Namespace is the value of --namespace: where the operator runs.
	Namespace string
	// Flags come first on the command line: the flags for credentials and addresses override them.
	Flags []string
}

// Component is one of the operator's processes.
type Component struct {
	*Process
	// Address serves the REST API, as host:port. It is empty for the controllers.
	Address string
	// HealthAddress serves /readyz, and MetricsAddress /metrics.
	HealthAddress, MetricsAddress string
	// Readied is the time from the start until the process was ready.
	Readied time.Duration
}

// Controller describes `findings-operator controller` with the credentials of config. The given
// flags come last and override the others, for example to allow webhook receivers on this machine.
func (o Operator) Controller(name string, config *rest.Config, flags ...string) (*Component, error) {
	addresses, err := FreeAddresses(2)
	if err != nil {
		return nil, err
	}
	c := &Component{HealthAddress: addresses[0], MetricsAddress: addresses[1]}
	return c, o.describe(c, name, config, append([]string{
		"controller", "--health-probe-bind-address=" + c.HealthAddress, "--metrics-bind-address=" + c.MetricsAddress,
	}, flags...))
}

// Facade describes `findings-operator apiserver` with the credentials of config.
func (o Operator) Facade(name string, config *rest.Config, flags ...string) (*Component, error) {
	addresses, err := FreeAddresses(2)
	if err != nil {
		return nil, err
	}
	c := &Component{Address: addresses[0], HealthAddress: addresses[1], MetricsAddress: addresses[1]}
	return c, o.describe(c, name, config, append([]string{
		"apiserver", "--bind-address=" + c.Address, "--health-bind-address=" + c.HealthAddress,
	}, flags...))
}

func (o Operator) describe(c *Component, name string, config *rest.Config, arguments []string) error {
	kubeconfig := filepath.Join(o.Folder, name+".kubeconfig")
	if err := WriteKubeconfig(kubeconfig, config, o.Namespace); err != nil {
		return err
	}
	given := append(slices.Clone(o.Flags), "--kubeconfig="+kubeconfig, "--namespace="+o.Namespace)
	arguments = slices.Insert(arguments, 1, given...) // after the subcommand
	c.Process = NewProcess(o.Folder, name, o.Binary, arguments...)
	return nil
}

// Run starts the process, returns when it is ready, and stops it when the test ends. The test fails if
// the process fails.
func (c *Component) Run(t testing.TB) {
	t.Helper()
	c.Process.Run(t)
	Must(t, c.AwaitReady(t.Context(), c.ready()))
}

func (c *Component) ready() string { return "http://" + c.HealthAddress + "/readyz" }

// Metrics returns the metrics of the process in Prometheus' text format.
func (c *Component) Metrics(ctx context.Context) (string, error) {
	return Get(ctx, nil, "http://"+c.MetricsAddress+"/metrics")
}

// StartReady starts the process and returns when it is ready. It kills a process that does not become
// ready.
func (c *Component) StartReady(ctx context.Context) error {
	began := time.Now()
	if err := c.Start(); err != nil {
		return err
	}
	if err := c.AwaitReady(ctx, c.ready()); err != nil {
		c.Kill()
		return err
	}
	c.Readied = time.Since(began)
	return nil
}

// CursorKeys creates a folder with a key that signs cursors and returns the facade's flag for it.
func (o Operator) CursorKeys() (flag string, err error) {
	folder := filepath.Join(o.Folder, "cursor-keys")
	return "--cursor-keys-dir=" + folder, errors.Join(
		os.MkdirAll(folder, 0o700),
		os.WriteFile(filepath.Join(folder, "1"), []byte(rand.Text()+rand.Text()), 0o600),
	)
}
