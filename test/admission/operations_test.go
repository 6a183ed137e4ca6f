package admission_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var commit = testenv.MergePatch(`{"spec":{"commit":true}}`)

// An editor and a reporter have every standard verb on operations, so only the admission policy stops them.
func TestWhoMayNotDecideMayNotDecideThroughAnOperation(t *testing.T) {
	c := newCast(t, "operations")
	for _, name := range everyone {
		check := decides(t, name)
		check("make", c.as(name).Create(t.Context(), builder.TriageOperation("o-"+string(name), "G1").In(c.namespace).Build()))
		live := applied(t, builder.TriageOperation("q-"+string(name), "G1").In(c.namespace).Build())
		check("commit", c.as(name).Patch(t.Context(), live.DeepCopy(), commit))
		if name != controller { // retention deletes operations
			check("delete", c.as(name).Delete(t.Context(), live))
		}
	}
}

func TestAnOperationIsSignedByWhoMadeAndWhoCommittedIt(t *testing.T) {
	g, c := NewWithT(t), newCast(t, "operations-signed")
	operation := builder.TriageOperation("o", "G1").In(c.namespace).Build()
	operation.Spec.By, operation.Spec.CommittedBy = "mallory", "mallory"
	harness.Must(t, c.as(triager).Create(t.Context(), operation))
	g.Expect(operation.Spec.By).To(Equal(c.members[triager].username))
	g.Expect(operation.Spec.CommittedBy).To(BeEmpty(), "nobody has committed it")
	for _, step := range []struct {
		reason, spec string
		want         string
	}{
		{"nobody commits without committing", `{"by": "mallory", "committedBy": "mallory"}`, ""},
		{"who commits signs", `{"commit": true, "committedBy": "mallory"}`, c.members[admin].username},
		{"nor can it be taken off", `{"committedBy": null, "by": null}`, c.members[admin].username},
	} {
		harness.Must(t, c.as(admin).Patch(t.Context(), operation, testenv.MergePatch(`{"spec":`+step.spec+`}`)))
		g.Expect(operation.Spec.CommittedBy).To(Equal(step.want), step.reason)
		g.Expect(operation.Spec.By).To(Equal(c.members[triager].username), step.reason)
	}
}

// A backup holds operations that were carried out. Carried out again, they would replace what people have decided since.
func TestAnOperationThatWasCommittedBeforeIsNotCarriedOutAgain(t *testing.T) {
	g, c := NewWithT(t), newCast(t, "operations-restored")
	stored := builder.TriageOperation("o", "G1").In(c.namespace).Spec(func(s *v1alpha1.TriageOperationSpec) { s.Commit = true }).Build()
	harness.Must(t, c.as(admin).Create(t.Context(), stored))
	g.Expect(stored.Spec.CommittedBy).To(Equal(c.members[admin].username))
	harness.Must(t, c.as(admin).Delete(t.Context(), stored.DeepCopy()))
	stored.ResourceVersion, stored.UID = "", ""
	for _, name := range []who{admin, triager} {
		err := c.as(name).Create(t.Context(), stored.DeepCopy())
		g.Expect(err).To(MatchError(ContainSubstring("as from a backup")), "restored by %s", name)
	}
	stored.Spec.CommittedBy = ""
	g.Expect(c.as(triager).Create(t.Context(), stored)).To(Succeed(), "somebody asked for it")
	g.Expect(stored.Spec.CommittedBy).To(Equal(c.members[triager].username))
}

// almightyFacade is the facade with all rights, so that only the policies can refuse.
func almightyFacade(t *testing.T) client.Client {
	t.Helper()
	return env.As(t, env.Impersonate(testenv.ServiceAccountUsername(testenv.SystemNamespace, testenv.APIServiceAccount), user.SystemPrivilegedGroup))
}

func TestTheFacadeSignsOperationsForKeysAlone(t *testing.T) {
	g, c, as := NewWithT(t), newCast(t, "operations-facade"), almightyFacade(t)
	for by, taken := range map[string]bool{"apikey/ci": true, "ann": false, "": false, "operation/x": false} {
		operation := builder.TriageOperation("o", "G1").In(c.namespace).Spec(func(s *v1alpha1.TriageOperationSpec) { s.By = by }).Build()
		err := as.Create(t.Context(), operation, client.DryRunAll)
		if taken {
			g.Expect(err).NotTo(HaveOccurred(), by)
			continue
		}
		wantRefusal(t, by, err, "spec.by must be")
	}
}

func TestAnOperationThatMutesNeedsAReasonWhereTheOrganizationSaysSo(t *testing.T) {
	g, c := NewWithT(t), newCast(t, "operations-reasons")
	unexplained := builder.TriageOperation("o", "G1").In(c.namespace).Spec(func(s *v1alpha1.TriageOperationSpec) { s.Set.Reason = "" }).Build()
	preview := unexplained.DeepCopy()
	preview.Name = "before"
	env.Create(t, preview)
	requireReasons(t, "operations-reasons")
	harness.Eventually(t, func(g Gomega) {
		g.Expect(env.Client.Create(t.Context(), unexplained.DeepCopy(), client.DryRunAll)).
			To(MatchError(ContainSubstring("requires a reason to mute a finding: set spec.set.reason")))
	})
	g.Expect(env.Client.Create(t.Context(), builder.TriageOperation("o", "G1").In(c.namespace).Build(), client.DryRunAll)).To(Succeed())
	err := env.Client.Patch(t.Context(), preview, commit)
	g.Expect(err).To(MatchError(ContainSubstring("set spec.set.reason of a new operation")), "a preview of before")
	undo := builder.TriageOperation("u", "").Undoes("o").In(c.namespace).Build()
	g.Expect(env.Client.Create(t.Context(), undo, client.DryRunAll)).To(Succeed(), "what comes back was decided before")
}
