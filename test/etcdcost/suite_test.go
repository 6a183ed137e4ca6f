// Package etcdcost counts what a finding's life costs etcd: how often it is written in each
// step and by whom, by the API server's own metrics, and how many bytes that is, by etcd's own.
// docs/performance-etcd.md is what it measured last:
//
//	go test ./test/etcdcost -count=1 -findings 50 -report "$PWD/docs/performance-etcd.md"
package etcdcost

import (
	"flag"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var (
	findings = flag.Int("findings", 10, "how many findings to take through each step")
	built    = flag.String("operator", "", "whole path of a findings-operator that is built already; without it one is built")
	report   = flag.String("report", "", "whole path of a Markdown file to write what was counted into")
)

var env *testenv.Environment

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	testenv.Main(m, &env)
}

const (
	// interval is not short: each look reads all metrics of the API server, megabytes.
	interval = 500 * time.Millisecond
	// quiet is how long nothing is written once all is done. The longest that a controller waits
	// before it writes, to gather what else happens, is two seconds.
	quiet = 2500 * time.Millisecond
)

// operator describes the real program's processes.
func operator(t *testing.T) (controller, facade *harness.Component) {
	t.Helper()
	binary := *built
	if binary == "" {
		programs, err := harness.Build(t.Context())
		harness.Must(t, err)
		binary = filepath.Join(programs, "findings-operator")
	}
	controller, facade, err := env.Operator(t.Context(), harness.Operator{Binary: binary, Folder: t.TempDir(), Namespace: testenv.SystemNamespace})
	harness.Must(t, err)
	return controller, facade
}
