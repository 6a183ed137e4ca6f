// Package attack tries to break into and to disrupt the running service: the facade in a separate
// process and the controllers, on a real kube-apiserver. It counts all attempts, and at the end
// none may have succeeded. The short form is part of `make test`; the full one has the build tag
// "attack".
package attack

import (
	"context"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// target is the attacked deployment.
var target *deployment

func TestMain(m *testing.M) {
	harness.AtATime(6) // all that are parallel: they wait for timeouts and retries
	harness.Main(m, start)
}

func start(ctx context.Context, stops *harness.Stops) error {
	klog.SetLogger(logr.Discard())
	useOwnNames()
	target = &deployment{stops: stops}
	if err := target.start(ctx); err != nil {
		return err
	}
	stops.Add(func() error {
		attacks.print(os.Stdout)
		return nil
	})
	return nil
}

// inForm returns short, or whole if the tests are built with the tag attack.
func inForm(short, whole int) int {
	if full {
		return whole
	}
	return short
}
