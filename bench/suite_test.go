// Package bench_test measures what the controllers cost as the number of findings grows.
package bench_test

import (
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/appsec-dev/findings-operator/test/testenv"
)

var env *testenv.Environment

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	testenv.Main(m, &env)
}
