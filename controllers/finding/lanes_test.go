package finding

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// The decided finding came last, so all others would be reconciled before it.
func TestADecisionIsRecordedBeforeTheBacklogOfAnImport(t *testing.T) {
	const backlog = 800
	var cached client.Client
	ns, stop := started(t, func(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
		cached = mgr.GetClient()
		return Settings{}.SetupWithManager(ctx, mgr, options)
	})
	t.Cleanup(func() { // later tests would reconcile the leftovers
		harness.Must(t, env.Client.DeleteAllOf(context.Background(), &v1alpha1.Finding{}, client.InNamespace(ns)))
	})
	putBacklog(t, backlog, func(name string) *v1alpha1.Finding { return builder.Finding(name).In(ns).Build() })
	list := &v1alpha1.FindingList{}
	harness.Eventually(t, func(g Gomega) { // the API server sends the decision after all that came before
		g.Expect(cached.List(t.Context(), list, client.InNamespace(ns))).To(Succeed())
		g.Expect(list.Items).To(HaveLen(backlog))
	})
	decided := testenv.Create(t, env, builder.Finding("decided").In(ns).Build())
	env.Patch(t, decided, `{"spec":{"triage":{"userStatus":"muted"}}}`)
	checkAhead(t, decided, ns, backlog, stop)
}

// The decided findings came first, and a decision is otherwise ahead of a new finding.
func TestDecisionsOfANamespaceDelayNoOther(t *testing.T) {
	const backlog = 800
	stop := storing.Alone(t, env)
	busy := controllertest.Places(t, env)
	other := controllertest.Places(t, env)
	t.Cleanup(func() { // later tests would reconcile the leftovers
		harness.Must(t, env.Client.DeleteAllOf(context.Background(), &v1alpha1.Finding{}, client.InNamespace(busy)))
	})
	putBacklog(t, backlog, func(name string) *v1alpha1.Finding {
		return builder.Finding(name).In(busy).Triage(v1alpha1.UserStatusMuted, "").Build()
	})
	imported := testenv.Create(t, env, builder.Finding("imported").In(other).Build())
	checkAhead(t, imported, busy, backlog, stop)
}

// checkAhead waits until the written finding is recorded, stops the controllers, and fails the test unless most of the
// backlog in the namespace still waits. Some is reconciled while a busy machine delivers the finding.
func checkAhead(t *testing.T, written *v1alpha1.Finding, namespace string, backlog int, stop func()) {
	t.Helper()
	began := revision(t, written)
	testenv.AwaitObserved(t, env, written)
	stop()
	before, waiting := reconciledBetween(t, namespace, began, revision(t, written))
	t.Logf("%d of %d findings were reconciled before %s was recorded, %d waited", before, backlog, written.Name, waiting)
	if before > backlog/3 || waiting == 0 {
		t.Errorf("%d of %d findings were reconciled before %s was recorded, and %d waited: it was not ahead",
			before, backlog, written.Name, waiting)
	}
}

// putBacklog stores findings faster than the API server would, and than the controllers reconcile.
func putBacklog(t *testing.T, findings int, build func(name string) *v1alpha1.Finding) {
	t.Helper()
	const atATime = 8
	var group errgroup.Group
	group.SetLimit(atATime)
	for i := range findings {
		group.Go(func() error { return putFinding(t, build(fmt.Sprintf("f-%d", i)), time.Now()) })
	}
	harness.Must(t, group.Wait())
}

// reconciledBetween counts the namespace's findings that were last written between those revisions, and those that wait
// for their first reconcile.
func reconciledBetween(t *testing.T, ns string, began, ended int64) (reconciled, waiting int) {
	t.Helper()
	list := testenv.List(t, NewWithT(t), env, &v1alpha1.FindingList{}, client.InNamespace(ns))
	for i := range list.Items {
		switch f := &list.Items[i]; {
		case f.Status.ObservedGeneration == 0:
			waiting++
		case revision(t, f) > began && revision(t, f) < ended:
			reconciled++
		}
	}
	return reconciled, waiting
}

func revision(t *testing.T, finding *v1alpha1.Finding) int64 {
	t.Helper()
	number, err := strconv.ParseInt(finding.ResourceVersion, 10, 64)
	harness.Must(t, err)
	return number
}

// putFinding stores a finding past the API server, with that time of creation.
func putFinding(t *testing.T, finding *v1alpha1.Finding, created time.Time) error {
	finding.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Finding"}
	finding.UID, finding.Generation, finding.CreationTimestamp = types.UID(finding.Name), 1, metav1.NewTime(created)
	content, err := json.Marshal(finding)
	if err != nil {
		return err
	}
	return env.PutIntoEtcd(t.Context(), "findings", finding.Namespace, finding.Name, content)
}

func TestWhatAnOperationDecidesKeepsNobodyWaiting(t *testing.T) {
	for by, first := range map[string]bool{"ann": true, "apikey/ci": true, "operation/mute": false} {
		f := builder.Finding("f").Triage(v1alpha1.UserStatusMuted, "").Mutate(func(f *v1alpha1.Finding) { f.Spec.Triage.By = by }).Build()
		harness.Same(t, "a decision of "+by+" is ahead of others", first, decisionWaits(f))
	}
}
