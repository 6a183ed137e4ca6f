package finding

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestAStaleDecisionIsKeptAndMarkedUntilItIsRepeated(t *testing.T) {
	ns := beside(t, storing)
	finding := testenv.Create(t, env, builder.Finding("f-1").In(ns).Tool("gosec", v1alpha1.CategoryCode).Build())
	testenv.AwaitObserved(t, env, finding)
	g := NewWithT(t)

	env.Patch(t, finding, `{"spec":{"triage":{"userStatus":"muted"}}}`)
	env.Patch(t, finding, `{"spec":{"details":{"severity":"high"}}}`)
	testenv.AwaitObserved(t, env, finding)
	stale := v1alpha1.FindCondition(finding.Status.Conditions, v1alpha1.ConditionDecisionStale)
	g.Expect(stale).NotTo(BeNil(), "whether or not the controllers saw the decision before the change")
	g.Expect(stale.Reason).To(Equal(v1alpha1.ReasonSeverityChanged))
	g.Expect(stale.Message).To(ContainSubstring("severity low, now high"))
	g.Expect(finding.Spec.Triage.UserStatus).To(Equal(v1alpha1.UserStatusMuted))
	g.Expect(finding.Status.State).To(Equal(v1alpha1.FindingStateOpenMuted))

	env.Patch(t, finding, `{"spec":{"triage":{"basis":"now"}}}`)
	testenv.AwaitObserved(t, env, finding)
	g.Expect(v1alpha1.FindCondition(finding.Status.Conditions, v1alpha1.ConditionDecisionStale)).To(BeNil())
	g.Expect(v1alpha1.IsConditionTrue(finding.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())
	last := finding.Status.Transitions[len(finding.Status.Transitions)-1]
	g.Expect(strings.Join([]string{string(last.Type), last.From, last.To}, " ")).To(Equal("triaged muted muted"))
	g.Expect(last.By).To(Equal(finding.Spec.Triage.By), "it is signed")
}
