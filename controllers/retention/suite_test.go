package retention

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var env *testenv.Environment

func TestMain(m *testing.M) { controllertest.Main(m, &env) }

// quick are settings with which tests need not wait.
var quick = Settings{Rate: 1000, Interval: 100 * time.Millisecond}

// start runs the controller, and others, as the service account that they have in a cluster.
func start(t *testing.T, settings Settings, others ...controllertest.Setup) (stop func()) {
	t.Helper()
	return controllertest.Start(t, env, append(others, settings.SetupWithManager)...)
}

// setRetention sets the organization's retention.
func setRetention(t *testing.T, name string, figures v1alpha1.Retention) {
	t.Helper()
	testenv.Change(t, env, builder.Organization(name).Build(), func(o *v1alpha1.Organization) { o.Spec.Retention = &figures })
}

// markObserved sets the status as the object's own controller does once all its events are emitted.
func markObserved(t *testing.T, objects ...client.Object) {
	t.Helper()
	c := env.AsController(t)
	for _, object := range objects {
		switch o := object.(type) {
		case *v1alpha1.Finding:
			o.Status.ObservedGeneration = o.Generation
		case *v1alpha1.Scan:
			o.Status.ObservedGeneration = o.Generation
		case *v1alpha1.Review:
			o.Status.ObservedGeneration = o.Generation
		case *v1alpha1.ReviewIssue:
			o.Status.ObservedGeneration = o.Generation
		}
		if err := c.Status().Update(t.Context(), object); err != nil {
			t.Fatalf("set the status of %T %s: %v", object, object.GetName(), err)
		}
	}
}
