package testenv_test

import (
	"encoding/json"
	"testing"

	"github.com/appsec-dev/findings-operator/test/testenv"
)

var env *testenv.Environment

func TestMain(m *testing.M) { testenv.Main(m, &env) }

// kubectl cannot parse the version of a server that was built without version stamps.
func TestKubectlReadsTheServersVersion(t *testing.T) {
	out := env.Kubectl(t, "default", "version", "-o", "json")
	var version struct {
		ClientVersion, ServerVersion struct{ GitVersion string }
	}
	if err := json.Unmarshal([]byte(out), &version); err != nil {
		t.Fatalf("kubectl version printed no JSON: %v\n%s", err, out)
	}
	if got := version.ServerVersion.GitVersion; got != version.ClientVersion.GitVersion || got == "" {
		t.Errorf("server says %q, kubectl says %q; want the same version", got, version.ClientVersion.GitVersion)
	}
}
