// Package conformance checks a deployment of the REST API against its contract, from outside: it
// has an address and a key, and creates what it needs only through the Kubernetes API.
// docs/conformance.md explains how to run it.
package conformance

import (
	"context"
	"flag"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// The flags. Without an address the suite starts its own deployment.
var (
	baseURL         = flag.String("base-url", "", "address of the deployment to test, for example http://127.0.0.1:8080; without it one is started")
	apiKey          = flag.String("api-key", "", "API key of an organization of the deployment, for what can be seen with any key")
	fixturesPath    = flag.String("fixtures", "", "YAML or JSON file that names what the API key's organization holds, where there is no -kubeconfig")
	requireAll      = flag.Bool("require-all", false, "fail where a test cannot run for want of input")
	receiverAddress = flag.String("receiver-address", "127.0.0.1", "address of this machine that the deployment can send webhooks to, and allows")
)

// kubeconfigPath is the value of -kubeconfig: a kubeconfig of an administrator of the deployment's
// cluster, for creating the suite's organizations. controller-runtime defines the flag.
var kubeconfigPath string

// toolsRequired means that a test must not be skipped because a tool, such as node, is missing.
var toolsRequired bool

func TestMain(m *testing.M) {
	harness.AtATime(6) // all that are parallel: they wait for times to come, or for npm
	harness.Main(m, start)
}

func start(ctx context.Context, stops *harness.Stops) (err error) {
	kubeconfigPath = flag.Lookup("kubeconfig").Value.String()
	toolsRequired = *requireAll || os.Getenv("REQUIRE_ALL") == "1"
	klog.SetLogger(logr.Discard())
	if *baseURL == "" {
		if err := startDeployment(ctx, stops); err != nil {
			return err
		}
	}
	if theDeployment, err = newDeployment(); err != nil {
		return err
	}
	stops.Add(func() error {
		ledger.print(os.Stdout, *baseURL)
		return nil
	})
	stops.Add(theDeployment.close)
	return nil
}
