package scan

import (
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/apitime"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/handlertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// leaseOf returns a Lease with that holder, resource version and duration in seconds.
func leaseOf(holder, version string, seconds int32) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "import-1", ResourceVersion: version},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new(holder), LeaseDurationSeconds: new(seconds)},
	}
}

func TestAnImportIsDeadOnceItsLeaseIsSeenUnchangedForItsDuration(t *testing.T) {
	type look struct {
		lease *coordinationv1.Lease
		at    time.Duration
		// dead is the expected verdict; empty for an import that is alive.
		dead    string
		checkIn time.Duration
	}
	const me = "runner-1"
	silent := `The import has died: it no longer renews its Lease "import-1". Run the same import again to finish it.`
	for _, c := range []struct {
		reason string
		looks  []look
	}{
		{"the first look judges nothing, whatever the Lease's own times say", []look{{leaseOf(me, "1", 15), 0, "", 16 * time.Second}}},
		{"unchanged for less than its duration", []look{{leaseOf(me, "1", 15), 0, "", 16 * time.Second}, {leaseOf(me, "1", 15), 15 * time.Second, "", time.Second}}},
		{"unchanged for longer", []look{{leaseOf(me, "1", 15), 0, "", 16 * time.Second}, {leaseOf(me, "1", 15), 16 * time.Second, silent, 0}}},
		{"renewed in time, again and again", []look{
			{leaseOf(me, "1", 15), 0, "", 16 * time.Second}, {leaseOf(me, "2", 15), 16 * time.Second, "", 16 * time.Second},
			{leaseOf(me, "3", 15), 32 * time.Second, "", 16 * time.Second},
		}},
		{"renewed late, and nobody looked meanwhile", []look{{leaseOf(me, "1", 15), 0, "", 16 * time.Second}, {leaseOf(me, "2", 15), time.Hour, "", 16 * time.Second}}},
		{"a Lease of no duration has the usual one", []look{{leaseOf(me, "1", 0), 0, "", 16 * time.Second}}},
		{"a shorter duration counts as the usual one", []look{
			{leaseOf(me, "1", 1), 0, "", 16 * time.Second}, {leaseOf(me, "1", 1), 15 * time.Second, "", time.Second},
			{leaseOf(me, "2", 1), 16 * time.Second, "", 16 * time.Second}, {leaseOf(me, "2", 1), 32 * time.Second, silent, 0},
		}},
		{"a longer duration counts", []look{{leaseOf(me, "1", 30), 0, "", 31 * time.Second}}},
		{"held by another", []look{{leaseOf("runner-2", "1", 15), 0, `"runner-2" holds its Lease`, 0}}},
		{"held by what is too long for a message", []look{{leaseOf(strings.Repeat("\x00", 1000), "1", 15), 0, `…" holds its Lease`, 0}}},
		{"held by the longest name", []look{{leaseOf(strings.Repeat("a", 253), "1", 15), 0, strings.Repeat("a", 253) + `" holds its Lease`, 0}}},
		{"held by nobody", []look{{leaseOf("", "1", 15), 0, "released its Lease", 0}}},
		{"gone", []look{{leaseOf(me, "1", 15), 0, "", 16 * time.Second}, {nil, time.Second, "does not exist", 0}}},
	} {
		h, named := heartbeat{}, &v1alpha1.ScanLease{Name: "import-1", Holder: me}
		for i, l := range c.looks {
			var got liveness
			now := made.Add(l.at)
			h, got = h.observe(l.lease, named, now, now)
			said := ptr.Deref(got.dead, conditions.Verdict{}).Message
			if !strings.Contains(said, l.dead) || (said == "") != (l.dead == "") || len(said) > 1024 || got.checkIn != l.checkIn {
				t.Errorf("%s: look %d: got %q and another look in %s, want %q and %s", c.reason, i, said, got.checkIn, l.dead, l.checkIn)
			}
		}
	}
}

// importing returns a scan whose import holds a Lease of 15 seconds.
func importing(t *testing.T) (*v1alpha1.Scan, *coordinationv1.Lease) {
	t.Helper()
	ns := env.Namespace(t)
	lease := leaseOf("runner-1", "", 15)
	lease.Namespace = ns
	scan := builder.Scan("s-1", time.Now().Add(-9*time.Hour)).In(ns).Mutate(func(scan *v1alpha1.Scan) {
		scan.Spec.Lease = &v1alpha1.ScanLease{Name: lease.Name, Holder: "runner-1"}
	}).Build()
	env.Create(t, lease, scan)
	return scan, lease
}

// An import records its end before it releases its Lease, but a cache may show the release first.
func TestAScanThatHasEndedIsNotGivenUpThoughTheCacheIsBehind(t *testing.T) {
	scan, lease := importing(t)
	behind := scan.DeepCopy()
	env.Patch(t, scan, `{"spec":{"completedAt":"2026-03-01T12:00:00Z","outcome":"Succeeded"}}`)
	harness.Must(t, env.Client.Delete(t.Context(), lease))
	r := &Reconciler{Base: reconcile.Base{Live: env.Client}}
	if got, err := r.checkHeartbeat(t.Context(), behind); err != nil || got.dead != nil {
		t.Errorf("%+v, error %v; want that it is not dead", got, err)
	}
}

// An error would leave the scan running for good: its age says nothing, as it names a Lease.
func TestALeaseOfANameThatNoObjectCanHaveDoesNotExist(t *testing.T) {
	scan := builder.Scan("s-1", time.Now()).Mutate(func(scan *v1alpha1.Scan) {
		scan.UID, scan.Spec.Lease = "s-1", &v1alpha1.ScanLease{Name: "CI-1234", Holder: "runner-1"}
	}).Build()
	r := &Reconciler{Base: reconcile.Base{Live: handlertest.Gets(func(key client.ObjectKey, into client.Object) error {
		if key.Name != scan.Name {
			t.Errorf("%s was read", key)
		}
		into.SetUID(scan.UID)
		return nil
	})}}
	if got, err := r.checkHeartbeat(t.Context(), scan); err != nil || got.dead == nil {
		t.Errorf("%+v, error %v; want that the Lease is missed", got, err)
	}
}

// The verdict is for good, and without an error nothing would enqueue the scan again.
func TestA404OfAProxyIsNoAnswerAboutAnImport(t *testing.T) {
	scan := builder.Scan("s-1", time.Now()).Mutate(func(scan *v1alpha1.Scan) {
		scan.UID, scan.Spec.Lease = "s-1", &v1alpha1.ScanLease{Name: "import-1", Holder: "runner-1"}
	}).Build()
	for reason, hidden := range map[string]string{"its Lease": "import-1", "the scan whose Lease is free": scan.Name} {
		r := &Reconciler{Base: reconcile.Base{Live: handlertest.Gets(func(key client.ObjectKey, into client.Object) error {
			if key.Name == hidden {
				return harness.ProxyRefusal(http.StatusNotFound, http.MethodGet)
			}
			into.SetUID(scan.UID)
			return nil
		})}}
		if got, err := r.checkHeartbeat(t.Context(), scan); err == nil || got.dead != nil {
			t.Errorf("%s: %+v, error %v; want an error, and that it is not dead", reason, got, err)
		}
	}
}

// A Scan is reconciled for each finding that its import writes.
func TestALeaseIsReadOncePerDuration(t *testing.T) {
	scan, lease := importing(t)
	r := &Reconciler{Base: reconcile.Base{Live: env.Client}}
	first, err := r.checkHeartbeat(t.Context(), scan)
	harness.Must(t, err)
	harness.Must(t, env.Client.Delete(t.Context(), lease))
	second, err := r.checkHeartbeat(t.Context(), scan)
	if err != nil || second.dead != nil || second.checkIn > first.checkIn {
		t.Errorf("%+v and then %+v, error %v; want no second look yet", first, second, err)
	}
	r.heartbeats.Delete(client.ObjectKeyFromObject(scan))
	if third, err := r.checkHeartbeat(t.Context(), scan); err != nil || third.dead == nil {
		t.Errorf("%+v, error %v; want that the Lease is missed", third, err)
	}
}

// Else an import that dies meanwhile would be found days later.
func TestAHeartbeatIsMeasuredByTheLocalClock(t *testing.T) {
	scan, _ := importing(t)
	r := &Reconciler{Base: reconcile.Base{Live: env.Client, Clock: apitime.Clock{}}}
	first, err := r.checkHeartbeat(t.Context(), scan)
	harness.Must(t, err)
	testenv.SetServerTime(t, time.Now().Add(-48*time.Hour))
	if second, err := r.checkHeartbeat(t.Context(), scan); err != nil || second.checkIn > first.checkIn {
		t.Errorf("%+v and then %+v, error %v; want another look as soon", first, second, err)
	}
}
