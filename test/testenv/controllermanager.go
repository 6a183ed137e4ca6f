package testenv

import (
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// StartControllerManager runs kube-controller-manager with the named controllers until the test
// ends. Without it, namespaces are never removed and dependents outlive their owners.
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
