package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

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
	retire := func() {
		t.Helper()
		s := newScope()
		s.Object = organization
		harness.Must(t, r.retireLeases(t.Context(), s))
	}
	held := map[string]*coordinationv1.Lease{}
	for _, name := range []string{"import-died", "import-ended", "import-held", "review-ended", "another"} {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
		if name == "import-died" || name == "import-held" {
			lease.Spec.HolderIdentity = new("runner-1")
		}
		// Its times are from another machine's clock, and must be ignored.
		lease.Spec.RenewTime = new(metav1.NewMicroTime(noon.Add(-24 * leaseIdle)))
		env.Create(t, lease)
		held[name] = lease
	}
	renew := func() {
		t.Helper()
		held["import-held"].Spec.RenewTime = new(metav1.NowMicro())
		harness.Must(t, env.Client.Update(t.Context(), held["import-held"]))
	}
	g := NewWithT(t)

	retire()
	g.Expect(left()).To(HaveLen(5), "after the first time")
	clock.SetTime(noon.Add(leaseIdle / 2))
	retire()
	g.Expect(left()).To(HaveLen(5), "half an hour later")
	renew()
	clock.SetTime(noon.Add(leaseIdle))
	retire()
	g.Expect(left()).To(ConsistOf("import-held", "another"), "an hour later")
	renew()
	clock.SetTime(noon.Add(2 * leaseIdle))
	retire()
	g.Expect(left()).To(ConsistOf("import-held", "another"), "while it is renewed")
	clock.SetTime(noon.Add(3 * leaseIdle))
	retire()
	g.Expect(left()).To(ConsistOf("another"), "once it is not renewed any more")
}

// A round of removals may take longer than the time between two checks.
func TestAllIdleLeasesAreRemovedBeforeTheNextCheck(t *testing.T) {
	ns := env.Organization(t, "many-leases")
	clock := clocktesting.NewFakePassiveClock(noon)
	r := newReconciler(env.AsController(t), nil, Settings{Rate: quick.Rate, Clock: clock})
	r.Live, r.batch = r.Client, 1
	var idle []client.Object
	for _, name := range []string{"import-a", "import-b", "review-c"} {
		idle = append(idle, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}})
	}
	env.Create(t, idle...)
	reconcile := func(again time.Duration) {
		t.Helper()
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "many-leases"}})
		harness.Must(t, err)
		harness.Same(t, "the wait until the next reconcile", again, result.RequeueAfter)
	}
	reconcile(leaseIdle)
	clock.SetTime(noon.Add(leaseIdle))
	reconcile(defaultInterval)
	reconcile(defaultInterval)
	reconcile(leaseIdle)
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
	seen := seenLease{name: lease.Name, uid: lease.UID, version: lease.ResourceVersion}
	lease.Spec.HolderIdentity = new("runner-1")
	harness.Must(t, env.Client.Update(t.Context(), lease))
	r := newReconciler(env.AsController(t), nil, quick)
	harness.Must(t, r.retireLease(t.Context(), ns, seen))
	harness.Same(t, "the Lease is gone", false, env.Gone(t, lease))
}

// store holds Leases, sorted by name, and returns them page by page.
type store struct {
	client.Reader
	leases []metav1.PartialObjectMetadata
	// expires is the position of a page that is refused once, because its token has expired.
	expires int
	limits  []int64
}

// storeOf returns a store of that many Leases, each with the annotation.
func storeOf(n int, annotation string) *store {
	s := &store{}
	for i := range n {
		s.leases = append(s.leases, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("import-%05d", i), UID: types.UID(fmt.Sprintf("uid-%d", i)), ResourceVersion: "1",
			Annotations: map[string]string{"note": annotation},
		}})
	}
	return s
}

func (s *store) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	page := client.ListOptions{}
	page.ApplyOptions(options)
	from := 0
	if page.Continue != "" {
		var err error
		if from, err = strconv.Atoi(page.Continue); err != nil {
			return err
		}
	}
	if from > 0 && from == s.expires {
		s.expires = 0
		expired := apierrors.NewResourceExpired("the list is too old")
		expired.ErrStatus.Continue = page.Continue
		return expired
	}
	s.limits = append(s.limits, page.Limit)
	to := len(s.leases)
	if page.Limit > 0 {
		to = min(to, from+int(page.Limit))
	}
	list := into.(*metav1.PartialObjectMetadataList)
	list.Items = slices.Clone(s.leases[from:to])
	if to < len(s.leases) {
		list.Continue = strconv.Itoa(to)
	}
	return nil
}

// twice returns what is seen in the second of two lists of the store.
func twice(t *testing.T, leases *store) snapshot {
	t.Helper()
	r := newReconciler(nil, nil, Settings{Clock: clocktesting.NewFakePassiveClock(noon)})
	r.Live = leases
	first, err := r.listLeases(t.Context(), "org-acme", snapshot{})
	harness.Must(t, err)
	second, err := r.listLeases(t.Context(), "org-acme", first)
	harness.Must(t, err)
	return second
}

// A scanner can create thousands of Leases with large metadata.
func TestLeasesAreReadInSmallPagesAndTheirAnnotationsAreNotKept(t *testing.T) {
	leases := storeOf(2*leasePage+1, "large")
	seen := twice(t, leases)
	harness.Same(t, "due Leases", len(leases.leases), len(seen.due))
	harness.Same(t, "limits of the requests of both lists", slices.Repeat([]int64{leasePage}, 6), leases.limits)
	harness.Lacks(t, "what is kept, without the annotations", fmt.Sprintf("%+v", seen), "large")
}

func TestAListOfLeasesOutlastsAnExpiredToken(t *testing.T) {
	leases := storeOf(2*leasePage, "")
	leases.expires = leasePage
	harness.Same(t, "due Leases", len(leases.leases), len(twice(t, leases).due))
	harness.Same(t, "the page that has expired", 0, leases.expires)
}

func TestTheLeasesOfOneCheckAreBounded(t *testing.T) {
	leases := storeOf(maxLeases+1, "")
	seen := twice(t, leases)
	harness.Same(t, "due Leases", maxLeases, len(seen.due))
	leases.leases = leases.leases[maxLeases:]
	harness.Same(t, "due Leases once these are gone", 1, len(twice(t, leases).due))
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
	r.leases.Store("refused-lease", snapshot{versions: map[types.UID]string{
		kept.UID: kept.ResourceVersion, other.UID: other.ResourceVersion,
	}})
	harness.Must(t, r.retireLeases(t.Context(), s))
	g := NewWithT(t)
	g.Expect(env.Gone(t, kept)).To(BeFalse())
	g.Expect(env.Gone(t, other)).To(BeTrue())
}

func TestALeaseWhoseRemovalFailsStopsNoOther(t *testing.T) {
	var tried []string
	r := newReconciler(interceptor.NewClient(nil, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("no finding can be removed")
		},
		Delete: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.DeleteOption) error {
			if tried = append(tried, object.GetName()); object.GetName() == "import-b" {
				return apierrors.NewInternalError(errors.New("failed calling webhook"))
			}
			return nil
		},
	}), nil, Settings{Rate: quick.Rate, Clock: clocktesting.NewFakePassiveClock(noon)})
	r.agenda.change(nil, finding(func(*v1alpha1.Finding) {}))
	s := newScope()
	s.Object.Name, s.Object.Status.Namespace = "x", "org-x"
	s.Object.Spec.Retention = &v1alpha1.Retention{ClosedFindings: duration(0)}
	r.leases.Store("x", snapshot{at: noon, due: []seenLease{{name: "import-a"}, {name: "import-b"}, {name: "import-c"}}})
	err := r.retireAll(t.Context(), s)
	harness.ErrorContains(t, "the turn, which is tried again with growing pauses", err, "no finding can be removed")
	if !apierrors.IsInternalError(err) {
		t.Errorf("the turn with the Lease ends with %v, want its error too", err)
	}
	harness.Must(t, r.retireLeases(t.Context(), s))
	harness.Same(t, "the removals", []string{"import-a", "import-b", "import-c"}, tried)
}
