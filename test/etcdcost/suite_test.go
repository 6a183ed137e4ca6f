// Package etcdcost counts what a finding's life costs etcd: how often it is written in each step
// and by whom, by the API server's metrics, and how many bytes are written, by etcd's metrics.
// docs/performance-etcd.md holds the latest results:
//
//	go test ./test/etcdcost -count=1 -findings 50 -report "$PWD/docs/performance-etcd.md"
package etcdcost

import (
	"flag"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var (
	findings = flag.Int("findings", 10, "how many findings to take through each step")
	built    = flag.String("operator", "", "whole path of a findings-operator that is built already; without it one is built")
	report   = flag.String("report", "", "whole path of a Markdown file to write what was counted into")
)

var env *testenv.Environment

func TestMain(m *testing.M) { testenv.Main(m, &env) }

const (
	// interval is between two looks at what is stored.
	interval = 100 * time.Millisecond
	// calm is how long there must be no writes before the requests are counted.
	calm = 500 * time.Millisecond
	// quiet is how long there must be no writes at the end of a step, and after calm no requests either. Controllers
	// delay writes by at most two seconds to gather changes.
	quiet = 2500 * time.Millisecond
)

// operator describes the real program's processes.
func operator(t *testing.T) (controller, facade *harness.Component) {
	t.Helper()
	controller, facade, err := env.Operator(t.Context(), harness.Operator{Binary: *built, Folder: t.TempDir()})
	harness.Must(t, err)
	return controller, facade
}
