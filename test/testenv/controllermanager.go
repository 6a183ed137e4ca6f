package testenv

import (
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// StartControllerManager runs kube-controller-manager with the named controllers until the
// test ends: without it no namespace ever goes and nothing follows its owner.
func (e *Environment) StartControllerManager(t testing.TB, controllers ...string) {
	t.Helper()
	process := harness.NewProcess(t.TempDir(), "kube-controller-manager", Binary(t, "kube-controller-manager"),
		"--kubeconfig="+WriteKubeconfig(t, e.Config, "default"),
		"--controllers="+strings.Join(controllers, ","),
		"--leader-elect=false",
		"--bind-address=127.0.0.1", "--secure-port=0",
	)
	process.Run(t)
}
