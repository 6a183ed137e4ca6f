package triagepolicy

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/finding"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// counting sets up the controller with that much time for a count.
func counting(longest time.Duration) controllertest.Setup {
	return func(_ context.Context, mgr ctrl.Manager, options controller.Options) error {
		r := newReconciler(reconcile.NewBase(mgr))
		r.longestCount = longest
		return r.setUp(mgr, options)
	}
}

func TestAPolicyThatTakesTooLongToCountDoesNotComeIntoForceAndWhatDecidesGoesOn(t *testing.T) {
	stop := controllertest.Start(t, env, finding.Settings{}.SetupWithManager, counting(time.Minute))
	g, r := NewWithT(t), newRoom(t)
	f := r.finds("f-1", "G1")
	decides := r.declares("decides", "finding.ruleID == 'G1'", nil)
	r.is(f, v1alpha1.FindingStateOpenMuted, "decides")
	r.counts(decides, 1, 1, 0, 0, 0, 0)
	stop()

	controllertest.Start(t, env, finding.Settings{}.SetupWithManager, counting(-1))
	other := r.declares("costly", "true", nil)
	r.says(other, v1alpha1.ReasonTooCostly, v1alpha1.ReasonTooCostly)
	g.Expect(testenv.Get(t, g, env, other).Status.InForce).To(BeNil())
	r.counts(decides, 1, 1, 0, 0, 0, 0)
	r.says(decides, v1alpha1.ReasonInForce, v1alpha1.ReasonTooCostly)

	look := r.declares("look", "true", func(s *v1alpha1.TriagePolicySpec) { s.Mode = v1alpha1.PolicyPreview })
	r.says(look, v1alpha1.ReasonPreview, v1alpha1.ReasonTooCostly)

	r.patch(decides, `{"spec":{"match":"finding.ruleID == 'G2'"}}`)
	r.says(decides, v1alpha1.ReasonEarlierGeneration, v1alpha1.ReasonTooCostly)
	r.patch(decides, `{"spec":{"match":"finding.ruleID == 'G1'","set":{"userStatus":"active"}}}`)
	r.says(decides, v1alpha1.ReasonEarlierGeneration, v1alpha1.ReasonTooCostly)
	r.is(f, v1alpha1.FindingStateOpenMuted, "decides")
	r.patch(decides, `{"spec":{"mode":"Preview"}}`)
	r.is(f, v1alpha1.FindingStateOpen, "")
	r.says(decides, v1alpha1.ReasonPreview, v1alpha1.ReasonTooCostly)
}
