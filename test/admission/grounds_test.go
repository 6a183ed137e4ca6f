package admission_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestReasonAndEndAreSignedAndGoWithTheirDecision(t *testing.T) {
	const past, end, later = "2020-01-01T00:00:00.5Z", "2999-12-31T00:00:00Z", "3000-12-31T00:00:00+02:00"
	c := newCast(t, "grounds")
	live := applied(t, builder.Finding("f").In(c.namespace).Build())
	ends := func(at string) {
		harness.Must(t, sendMergePatch(t, c.as(controller), live, fragment{"status": map[string]any{"endedAt": at}}, "status"))
	}
	muted := map[string]any{"userStatus": "muted", "reason": "accepted-risk", "expiresAt": end}
	for _, step := range []struct {
		reason string
		by     who
		patch  map[string]any
		// after holds userStatus, reason and expiresAt afterwards; signed is set if the requester has
		// signed.
		after  map[string]any
		signed bool
	}{
		{"a decision with both", triager, muted, muted, true},
		{"another end is another decision", admin, map[string]any{"expiresAt": later}, map[string]any{"userStatus": "muted", "reason": "accepted-risk", "expiresAt": later}, true},
		{"and another reason", triager, map[string]any{"reason": "duplicate"}, map[string]any{"userStatus": "muted", "reason": "duplicate", "expiresAt": later}, true},
		{"the same again is none", admin, map[string]any{"reason": "duplicate"}, map[string]any{"userStatus": "muted", "reason": "duplicate", "expiresAt": later}, false},
		{"before its end another keeps what it does not name", triager, map[string]any{"userStatus": "active"}, map[string]any{"userStatus": "active", "reason": "duplicate", "expiresAt": later}, true},
		{"taken back", admin, map[string]any{"userStatus": "open"}, map[string]any{"userStatus": "open"}, true},
		{"an open finding has neither", triager, muted, muted, true},
		{"", triager, nil, nil, false},
		{"after its end another comes without both", admin, map[string]any{"userStatus": "active"}, map[string]any{"userStatus": "active"}, true},
		{"decided with both anew", triager, muted, muted, true},
		{"another that gives the same reason anew keeps it", admin, map[string]any{"userStatus": "active", "reason": "accepted-risk", "expiresAt": nil}, map[string]any{"userStatus": "active", "reason": "accepted-risk"}, true},
		{"decided with both again", triager, muted, muted, true},
		{"another that gives another end alone keeps the reason", admin, map[string]any{"userStatus": "active", "expiresAt": later}, map[string]any{"userStatus": "active", "reason": "accepted-risk", "expiresAt": later}, true},
		{"its end has come, and the status does not tell yet", triager, map[string]any{"reason": "duplicate", "expiresAt": past}, map[string]any{"userStatus": "active", "reason": "duplicate", "expiresAt": past}, true},
		{"the same decision keeps them", triager, map[string]any{"comments": "c"}, map[string]any{"userStatus": "active", "reason": "duplicate", "expiresAt": past, "comments": "c"}, true},
		{"another comes without both even so", admin, map[string]any{"userStatus": "muted", "comments": nil}, map[string]any{"userStatus": "muted"}, true},
	} {
		if step.patch == nil {
			ends(end)
			continue
		}
		signer, _ := env.Stored(t, live).Object["spec"].(map[string]any)["triage"].(map[string]any)["by"].(string)
		if step.signed {
			signer = c.members[step.by].username
		}
		if err := c.decide(t, step.by, live, step.patch); err != nil {
			t.Fatalf("%s: %v", step.reason, err)
		}
		now := env.Stored(t, live)
		want := maps.Clone(step.after)
		want["by"] = signer
		if step.after["userStatus"] != "open" {
			want["basis"] = "rated=low"
		}
		wantDecision(t, now, want)
		if t.Failed() {
			t.Fatal(step.reason)
		}
	}
}

func TestADecisionAfterTheEndOfAnotherComesIntoForceWhileNoControllerRuns(t *testing.T) {
	c := newCast(t, "grounds-late")
	live := applied(t, builder.Finding("f").In(c.namespace).Build())
	end := time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339)
	harness.Must(t, sendMergePatch(t, c.as(triager), live,
		triage(map[string]any{"userStatus": "muted", "reason": "accepted-risk", "expiresAt": end}), ""))
	confirm := client.RawPatch(types.MergePatchType, harness.JSON(t, triage(map[string]any{"userStatus": "active"})))
	harness.Eventually(t, func(g Gomega) {
		now := live.DeepCopy()
		g.Expect(c.as(admin).Patch(t.Context(), now, confirm, client.DryRunAll)).To(Succeed())
		triage, _, _ := unstructured.NestedMap(now.Object, "spec", "triage")
		g.Expect(triage).To(SatisfyAll(HaveKeyWithValue("userStatus", "active"), Not(HaveKey("reason")), Not(HaveKey("expiresAt"))))
	})
}

// The API server refuses a reason or an end without a decision, as every other door does: userStatus was forgotten. An
// object that was stored with them stays writable.
func TestAReasonAndAnEndRequireADecision(t *testing.T) {
	c := newCast(t, "grounds-undecided")
	const reason, end = "duplicate", "2999-12-31T00:00:00Z"
	for _, tc := range []struct {
		object client.Object
		fact   []string
	}{
		{builder.Finding("f").In(c.namespace).Build(), []string{"spec", "details", "title"}},
		{builder.ReviewIssue("i").In(c.namespace).SeenIn("abc").Build(), []string{"spec", "title"}},
	} {
		live, scanned := applied(t, tc.object), toUnstructured(t, tc.object)
		kind := live.GetKind()
		// A manifest that withdraws a decision and keeps its reason is applied once: the reason is then a new one.
		withdrawn := map[string]any{"userStatus": "open", "reason": reason}
		for _, given := range []map[string]any{{"userStatus": "muted", "reason": reason}, withdrawn} {
			harness.NoError(t, fmt.Sprintf("%s, %v", kind, given), c.decide(t, triager, live, given))
		}
		for _, given := range []map[string]any{withdrawn, {"reason": reason}, {"expiresAt": end, "comments": "c"}} {
			err := c.decide(t, triager, live, given)
			harness.ErrorContains(t, fmt.Sprintf("%s, %v", kind, given), err, "reason and expiresAt belong to a decision: userStatus must be")
		}
		set(t, live, reason, "spec", "triage", "reason")
		set(t, live, end, "spec", "triage", "expiresAt")
		harness.Must(t, env.PutIntoEtcd(t.Context(), kube.Resource(kind), c.namespace, live.GetName(), harness.JSON(t, live)))
		updated := fragment{"status": map[string]any{"updatedAt": end}}
		harness.NoError(t, kind+": a status", sendMergePatch(t, c.as(controller), live, updated, "status"))
		set(t, scanned, "another", tc.fact...)
		scan := client.ApplyConfigurationFromUnstructured(scanned)
		harness.NoError(t, kind+": a scan", c.as(scanner).Apply(t.Context(), scan, client.FieldOwner("scanner/gosec"), client.ForceOwnership))
		signed := triage(map[string]any{"comments": "c", "by": "apikey/ci"})
		harness.NoError(t, kind+": a comment over REST", sendMergePatch(t, c.as(facade), live, signed, ""))
		wantTriage(t, env.Stored(t, live), map[string]any{"userStatus": "open", "reason": reason, "expiresAt": end, "comments": "c", "by": "apikey/ci"})
		harness.NoError(t, kind+": a comment", c.decide(t, triager, live, map[string]any{"comments": "d"}))
		wantTriage(t, env.Stored(t, live), map[string]any{"userStatus": "open", "comments": "d", "by": c.members[triager].username})
	}
}

// Every writer of a finding may send times in managedFields.
func TestForgedTimesOfFieldsEndNoDecision(t *testing.T) {
	const end, later = "2999-12-31T00:00:00Z", "3000-12-31T00:00:00Z"
	c := newCast(t, "grounds-forged")
	live := applied(t, builder.Finding("f").In(c.namespace).Build())
	decide := func(change map[string]any) {
		t.Helper()
		harness.Must(t, c.decide(t, triager, live, change))
	}
	decide(map[string]any{"userStatus": "muted", "reason": "accepted-risk", "expiresAt": end})
	fields := append(env.Stored(t, live).GetManagedFields(), metav1.ManagedFieldsEntry{
		Manager: "forger", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: v1alpha1.GroupVersion.String(), FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:triage":{"f:userStatus":{},"f:expiresAt":{}}}}`),
	})
	for i := range fields {
		fields[i].Time = &metav1.Time{Time: time.Date(3001, 1, 1, 0, 0, 0, 0, time.UTC)}
	}
	harness.Must(t, sendMergePatch(t, c.as(scanner), live, fragment{
		"metadata": map[string]any{"managedFields": fields}, "spec": map[string]any{"details": map[string]any{"severity": "high"}},
	}, ""))
	want := map[string]any{"userStatus": "muted", "reason": "accepted-risk", "expiresAt": later, "basis": "rated=low", "by": c.members[triager].username}
	decide(map[string]any{"expiresAt": later})
	wantDecision(t, env.Stored(t, live), want)
	decide(map[string]any{"userStatus": "active"})
	want["userStatus"], want["basis"] = "active", "rated=high"
	wantDecision(t, env.Stored(t, live), want)
}

// The facade signs its own decisions, and no change of the reason or the expiry is left unsigned.
func TestTheFacadeSignsReasonsAndEnds(t *testing.T) {
	c := newCast(t, "grounds-facade")
	live := decided(t, c, "f")
	for _, change := range []map[string]any{{"reason": "duplicate"}, {"expiresAt": "2026-12-31T00:00:00Z"}} {
		wantRefusal(t, fmt.Sprintf("%v without a signature", change), c.decide(t, facade, live, change))
		change["by"] = "apikey/ci"
		harness.NoError(t, fmt.Sprintf("%v, signed", change), c.decide(t, facade, live, change))
		harness.Must(t, c.decide(t, triager, live, map[string]any{"comments": "mine"}))
		harness.Must(t, c.decide(t, triager, live, map[string]any{"comments": nil}))
	}
}

func TestAReasonIsRequiredWhereTheOrganizationSaysSo(t *testing.T) {
	c, other := newCast(t, "requires-reasons"), newCast(t, "requires-none")
	before := applied(t, builder.Finding("muted-before").In(c.namespace).Build())
	live := applied(t, builder.Finding("f").In(c.namespace).Build())
	elsewhere := applied(t, builder.Finding("f").In(other.namespace).Build())
	mute := triage(map[string]any{"userStatus": "muted"})
	harness.Must(t, sendMergePatch(t, c.as(triager), before, mute, ""))
	ended := applied(t, builder.Finding("ended-before").In(c.namespace).Build())
	const end = "2020-01-01T00:00:00Z"
	harness.Must(t, c.decide(t, triager, ended, map[string]any{"userStatus": "muted", "expiresAt": end}))
	harness.Must(t, sendMergePatch(t, c.as(controller), ended, fragment{"status": map[string]any{"endedAt": end}}, "status"))
	requireReasons(t, "requires-reasons")
	harness.Eventually(t, func(g Gomega) {
		err := c.as(triager).Patch(t.Context(), live.DeepCopy(), client.RawPatch("application/merge-patch+json", harness.JSON(t, mute)), client.DryRunAll)
		g.Expect(kube.IsReasonRequired(err)).To(BeTrue(), "%v", err)
		g.Expect(err).To(MatchError(ContainSubstring("requires a reason to mute a finding: set spec.triage.reason")))
	})
	for reason, tc := range map[string]struct {
		patch   map[string]any
		refused bool
	}{
		"with a reason":   {map[string]any{"userStatus": "muted", "reason": "duplicate"}, false},
		"confirmed":       {map[string]any{"userStatus": "active", "reason": nil}, false},
		"open, commented": {map[string]any{"userStatus": "open", "reason": nil, "comments": "c"}, false},
	} {
		if err := c.decide(t, triager, live, tc.patch); (err != nil) != tc.refused {
			t.Errorf("%s: %v", reason, err)
		}
	}
	harness.NoError(t, "another organization", sendMergePatch(t, other.as(triager), elsewhere, mute, ""))
	harness.NoError(t, "a scan changes what was muted before", sendMergePatch(t, c.as(scanner), before, fragment{"spec": map[string]any{"details": map[string]any{"title": "other"}}}, ""))
	if err := c.decide(t, triager, before, map[string]any{"comments": "c"}); !apierrors.IsInvalid(err) {
		t.Errorf("a comment on what was muted before: %v", err)
	}
	harness.NoError(t, "a comment on what is no longer muted", c.decide(t, triager, ended, map[string]any{"comments": "c"}))
	if err := c.decide(t, triager, ended, map[string]any{"expiresAt": nil}); !apierrors.IsInvalid(err) {
		t.Errorf("a decision that has ended, in force again: %v", err)
	}
	c.join(t, restorer, newRole(t, "test-reasons-restorer", "report", "triage", "restore"))
	c.join(t, decider, newRole(t, "test-reasons-decider", "report", "triage"))
	for _, backedUp := range []client.Object{
		builder.Finding("restored").In(c.namespace).Triage(v1alpha1.UserStatusMuted, "").Build(),
		builder.ReviewIssue("restored").In(c.namespace).Mutate(func(i *v1alpha1.ReviewIssue) {
			i.Spec.Triage.UserStatus = v1alpha1.UserStatusMuted
		}).Build(),
	} {
		object := toUnstructured(t, backedUp)
		set(t, object, "ann", "spec", "triage", "by")
		if err := c.as(decider).Create(t.Context(), object.DeepCopy()); !apierrors.IsInvalid(err) {
			t.Errorf("%T, created muted: %v", backedUp, err)
		}
		harness.NoError(t, "from a backup, muted before", c.as(restorer).Create(t.Context(), object))
	}
}

// requireReasons labels the namespace of an Organization as its controller does if it requires a reason for muting.
func requireReasons(t *testing.T, name string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.NamespacePrefix + name}}
	env.Patch(t, namespace, `{"metadata":{"labels":{"`+v1alpha1.RequireReasonLabel+`":"true"}}}`)
}
