package finding

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestADecisionEndsAtItsSecondAndNothingIsWrittenBeside(t *testing.T) {
	g, ns := NewWithT(t), controllertest.Places(t, env)
	begin := time.Now().Truncate(time.Second)
	end := begin.Add(90 * time.Minute)
	finding := builder.Finding("f-1").In(ns).Mutate(func(f *v1alpha1.Finding) {
		f.Spec.Triage = v1alpha1.FindingTriage{
			UserStatus: v1alpha1.UserStatusMuted, Reason: v1alpha1.DecisionAcceptedRisk, ExpiresAt: new(v1alpha1.NewTime(end)),
		}
	}).Build()
	env.Create(t, finding)
	clock, c := clocktesting.NewFakePassiveClock(begin), env.AsController(t)
	r := &Reconciler{Base: reconcile.Base{Client: c, Live: c, Clock: clock}}
	at := func(now time.Time) (again time.Duration) {
		t.Helper()
		clock.SetTime(now)
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(finding)})
		g.Expect(err).NotTo(HaveOccurred())
		testenv.Get(t, g, env, finding)
		if result.RequeueAfter > 0 {
			g.Expect(result.Priority).To(HaveValue(Equal(watch.Due)), "it comes ahead of what an import changes")
		}
		return result.RequeueAfter
	}
	g.Expect(at(begin)).To(Equal(reconcile.MaxWait), "it reads the clock again, in case that was put forward")
	g.Expect(finding.Status.State).To(Equal(v1alpha1.FindingStateOpenMuted))
	declared, version := finding.Spec.Triage, finding.ResourceVersion
	g.Expect(at(end.Add(-time.Minute))).To(Equal(time.Minute))
	g.Expect(at(end.Add(-time.Millisecond))).To(Equal(time.Millisecond))
	g.Expect(finding.ResourceVersion).To(Equal(version), "it wrote before the end")

	g.Expect(at(end)).To(BeZero())
	g.Expect(finding.Status.State).To(Equal(v1alpha1.FindingStateOpen))
	g.Expect(finding.Status.UserStatus).To(Equal(v1alpha1.UserStatusOpen))
	g.Expect(finding.Status.UpdatedAt.Time).To(BeTemporally("==", end))
	g.Expect(finding.Spec.Triage).To(Equal(declared), "the spec stays as the person wrote it")
	last := finding.Status.Transitions[len(finding.Status.Transitions)-1]
	g.Expect(last.Type).To(Equal(v1alpha1.TransitionExpired))
	g.Expect([]string{last.From, last.To, last.By, string(last.Reason)}).To(Equal([]string{"muted", "open", declared.By, "accepted-risk"}))
	g.Expect(last.At.Time).To(BeTemporally("==", end))
	g.Expect(last.ExpiresAt.Time).To(BeTemporally("==", end))

	version = finding.ResourceVersion
	g.Expect(at(end.Add(time.Hour))).To(BeZero())
	g.Expect(at(begin)).To(BeZero(), "a clock that goes back puts nothing in force again")
	g.Expect(finding.ResourceVersion).To(Equal(version), "it wrote after the end")

	again := end.Add(2 * time.Hour)
	env.Patch(t, finding, `{"spec":{"triage":{"expiresAt":"`+again.UTC().Format(time.RFC3339)+`"}}}`)
	g.Expect(at(end.Add(time.Hour))).To(Equal(time.Hour))
	g.Expect(finding.Status.State).To(Equal(v1alpha1.FindingStateOpenMuted), "the same decision with a new end")
	g.Expect(finding.Status.EndedAt).To(BeNil())
	at(again)
	env.Patch(t, finding, `{"spec":{"triage":{"userStatus":"active"}}}`)
	g.Expect(at(again)).To(BeZero())
	g.Expect(finding.Status.UserStatus).To(Equal(v1alpha1.UserStatusActive), "another decision")
	g.Expect(finding.Spec.Triage.ExpiresAt).To(BeNil())
}
