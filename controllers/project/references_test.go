package project

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestWorthReconciling(t *testing.T) {
	project := func(generation int64, reason string, finalizers ...string) *v1alpha1.Project {
		p := builder.Project("p").Build()
		p.Generation, p.Finalizers = generation, finalizers
		if reason != "" {
			p.Status.Conditions = []v1alpha1.Condition{{Type: v1alpha1.ConditionReady, Reason: reason}}
		}
		return p
	}
	const waiting, ready = v1alpha1.ReasonRepositoryNotFound, v1alpha1.ReasonReconciled
	cases := []struct {
		reason        string
		before, after *v1alpha1.Project
		want          bool
	}{
		{"the spec has changed", project(1, ready), project(2, ready), true},
		{"our own write would bring the next one at once", project(1, ready), project(1, ready), false},
		{"it begins to wait: the repository may have come meanwhile", project(1, ""), project(1, waiting), true},
		{"it waits on", project(1, waiting), project(1, waiting), false},
		{"somebody has taken the finalizer off", project(1, ready, v1alpha1.CleanupFinalizer), project(1, ready), true},
	}
	for _, c := range cases {
		harness.Same(t, c.reason, c.want, worthReconciling.Update(event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after}))
	}
}
