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
	"github.com/appsec-dev/findings-operator/test/harness"
)

// The decided finding came last, so all others would be reconciled before it.
func TestADecisionIsRecordedBeforeTheBacklogOfAnImport(t *testing.T) {
	const backlog, putAtATime = 1500, 8
	var cached client.Client
	ns, _ := started(t, func(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
		cached = mgr.GetClient()
		return Settings{}.SetupWithManager(ctx, mgr, options)
	})
	t.Cleanup(func() { // later tests would reconcile the leftovers
		harness.Must(t, env.Client.DeleteAllOf(context.Background(), &v1alpha1.Finding{}, client.InNamespace(ns)))
	})
	var group errgroup.Group
	group.SetLimit(putAtATime)
	for i := range backlog { // faster than through the API server, and than the controllers reconcile
		group.Go(func() error {
			return putFinding(t, builder.Finding(fmt.Sprintf("f-%d", i)).In(ns).Build(), time.Now())
		})
	}
	harness.Must(t, group.Wait())
	list := &v1alpha1.FindingList{}
	harness.Eventually(t, func(g Gomega) { // the API server sends the decision after all that came before
		g.Expect(cached.List(t.Context(), list, client.InNamespace(ns))).To(Succeed())
		g.Expect(list.Items).To(HaveLen(backlog))
	})
	decided := builder.Finding("decided").In(ns).Build()
	env.Create(t, decided)
	env.Patch(t, decided, `{"spec":{"triage":{"userStatus":"muted"}}}`)
	began := revision(t, decided)
	observed(t, decided)

	harness.Must(t, env.Client.List(t.Context(), list, client.InNamespace(ns)))
	before, waiting := 0, 0
	for i := range list.Items {
		switch f := &list.Items[i]; {
		case f.Status.ObservedGeneration == 0:
			waiting++
		case revision(t, f) > began && revision(t, f) < revision(t, decided):
			before++
		}
	}
	t.Logf("%d findings were reconciled between the decision and its record, %d waited", before, waiting)
	// Without lanes it is most of them; some are reconciled while a busy machine delivers the
	// decision.
	if before > backlog/3 || waiting == 0 {
		t.Errorf("%d of %d findings were reconciled before the decision was recorded, and %d waited: it was not ahead",
			before, backlog, waiting)
	}
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
		if decisionWaits(f) != first {
			t.Errorf("a decision of %s is ahead of others: %v", by, !first)
		}
	}
}
