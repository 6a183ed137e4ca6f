// Package bench_test measures what the controllers cost as the number of findings grows.
package bench_test

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/test/testenv"
)

var env *testenv.Environment

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	testenv.Main(m, &env)
}

// patience is how long a condition may take on a busy machine.
const patience = 2 * time.Minute

func create(t testing.TB, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := env.Client.Create(t.Context(), object); err != nil {
			t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
}
