package retention

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestLeasesThatNobodyRenewsGoAndNoOthers(t *testing.T) {
	ns := env.Organization(t, "leases")
	organization := &v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: "leases"}}
	organization.Status.Namespace = ns
	clock := clocktesting.NewFakePassiveClock(noon)
	r := newReconciler(env.AsController(t), nil, Settings{Clock: clock})
	r.Live = r.Client

	left := func() []string { return env.Names(t, &coordinationv1.LeaseList{}, ns) }
	look := func() {
		t.Helper()
		s := newScope()
		s.Object = organization
		harness.Must(t, r.retireLeases(t.Context(), s))
	}
	held := map[string]*coordinationv1.Lease{}
	for _, name := range []string{"import-died", "import-ended", "import-held", "review-ended", "another"} {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
		if name == "import-died" || name == "import-held" {
			lease.Spec.HolderIdentity = ptr.To("runner-1")
		}
		// Its times are from another machine's clock, and must be ignored.
		lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(noon.Add(-24 * leaseIdle)))
		env.Create(t, lease)
		held[name] = lease
	}
	renew := func() {
		t.Helper()
		held["import-held"].Spec.RenewTime = ptr.To(metav1.NowMicro())
		harness.Must(t, env.Client.Update(t.Context(), held["import-held"]))
	}
	g := NewWithT(t)

	look()
	g.Expect(left()).To(HaveLen(5), "at the first look")
	clock.SetTime(noon.Add(leaseIdle / 2))
	look()
	g.Expect(left()).To(HaveLen(5), "half an hour later")
	renew()
	clock.SetTime(noon.Add(leaseIdle))
	look()
	g.Expect(left()).To(ConsistOf("import-held", "another"), "an hour later")
	renew()
	clock.SetTime(noon.Add(2 * leaseIdle))
	look()
	g.Expect(left()).To(ConsistOf("import-held", "another"), "while it is renewed")
	clock.SetTime(noon.Add(3 * leaseIdle))
	look()
	g.Expect(left()).To(ConsistOf("another"), "once it is not renewed any more")
}

// A round of removals may take longer than the time between two looks.
func TestAllIdleLeasesGoBeforeTheNextLook(t *testing.T) {
	ns := env.Organization(t, "many-leases")
	clock := clocktesting.NewFakePassiveClock(noon)
	r := newReconciler(env.AsController(t), nil, Settings{Rate: quick.Rate, Clock: clock})
	r.Live, r.batch = r.Client, 1
	var idle []client.Object
	for _, name := range []string{"import-a", "import-b", "review-c"} {
		idle = append(idle, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}})
	}
	env.Create(t, idle...)
	turn := func(again time.Duration) {
		t.Helper()
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "many-leases"}})
		harness.Must(t, err)
		harness.Same(t, "the next turn", again, result.RequeueAfter)
	}
	turn(leaseIdle)
	clock.SetTime(noon.Add(leaseIdle))
	turn(defaultInterval)
	turn(defaultInterval)
	turn(leaseIdle)
	for _, lease := range idle {
		if !env.Gone(t, lease) {
			t.Errorf("%s is left", lease.GetName())
		}
	}
}

// An import acquires the Lease between the check and the removal.
func TestALeaseThatIsTakenAtThatMomentStays(t *testing.T) {
	ns := env.Organization(t, "taken")
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "import-taken"}}
	env.Create(t, lease)
	seen := &metav1.PartialObjectMetadata{ObjectMeta: *lease.ObjectMeta.DeepCopy()}
	lease.Spec.HolderIdentity = ptr.To("runner-1")
	harness.Must(t, env.Client.Update(t.Context(), lease))
	r := newReconciler(env.AsController(t), nil, quick)
	harness.Must(t, r.retireLease(t.Context(), seen))
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(lease), lease); err != nil {
		t.Errorf("the Lease is gone: %v", err)
	}
}

func TestALeaseWhoseRemovalIsRefusedStopsNoOther(t *testing.T) {
	ns := env.Organization(t, "refused-lease")
	controllertest.RefuseRemovals(t, env, ns)
	r := newReconciler(env.AsController(t), nil, quick)
	r.Live = r.Client
	kept := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "import-a", Labels: controllertest.LegalHold}}
	other := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "import-b"}}
	env.Create(t, kept, other)
	s := newScope()
	s.Object = &v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: "refused-lease"}}
	s.Object.Status.Namespace = ns
	r.leases.Store("refused-lease", sighting{versions: map[types.UID]string{
		kept.UID: kept.ResourceVersion, other.UID: other.ResourceVersion,
	}})
	harness.Must(t, r.retireLeases(t.Context(), s))
	g := NewWithT(t)
	g.Expect(env.Gone(t, kept)).To(BeFalse())
	g.Expect(env.Gone(t, other)).To(BeTrue())
}
