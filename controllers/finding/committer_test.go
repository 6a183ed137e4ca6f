package finding

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/audit"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// attributed is a reconcile of a muted finding, whose decision the operation "mute" may have made.
type attributed struct {
	*Reconciler
	finding *v1alpha1.Finding
	// failing is returned when the operation is read.
	failing error
	// lines has what matters of each line of the audit log.
	lines []string
}

var auditedAs = regexp.MustCompile(`"msg":("[^"]*").*("by":"[^"]*","author":"[^"]*")`)

// attributing returns the reconcile of a finding with the decision, made by the controllers. An operation "mute", which
// ann committed, exists if it is found.
func attributing(decision v1alpha1.FindingTriage, found bool) *attributed {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(clock.Now().Add(-d).Truncate(time.Second)) }
	finding := builder.Finding("f-1").In("org-acme").Build()
	finding.Generation, finding.CreationTimestamp, finding.Spec.Triage = 1, ago(time.Hour), decision
	operation := builder.TriageOperation("mute", "G1").In("org-acme").Committed().Build()
	operation.CreationTimestamp, operation.Spec.CommittedBy = ago(time.Hour), "ann"
	operation.Status.SelectedAt = &v1alpha1.Time{Time: ago(time.Hour).Time}
	objects := []client.Object{finding}
	if found {
		objects = append(objects, operation)
	}
	a := &attributed{finding: finding}
	c := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).WithObjects(objects...).WithStatusSubresource(finding).
		WithInterceptorFuncs(interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey,
			into client.Object, options ...client.GetOption) error {
			if _, is := into.(*v1alpha1.TriageOperation); is && a.failing != nil {
				return a.failing
			}
			err := c.Get(ctx, key, into, options...)
			into.SetManagedFields([]metav1.ManagedFieldsEntry{
				{Manager: v1alpha1.ControllerFieldManager, Time: new(ago(time.Minute))},
			})
			return err
		}}).Build()
	log := funcr.NewJSON(func(line string) {
		for _, part := range auditedAs.FindAllStringSubmatch(line, -1) {
			a.lines = append(a.lines, part[1]+" "+part[2])
		}
	}, funcr.Options{})
	a.Reconciler = &Reconciler{
		Base:  reconcile.Base{Client: c, Clock: clock},
		audit: audit.Log{To: log, Kind: "finding", Subject: "A finding"},
	}
	return a
}

// recorded reconciles the finding once, and returns who decided according to its stored transitions.
func (a *attributed) recorded(t *testing.T) (who []string, err error) {
	t.Helper()
	key := client.ObjectKeyFromObject(a.finding)
	_, err = a.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	harness.Must(t, a.Client.Get(t.Context(), key, a.finding))
	for _, s := range a.finding.Status.Transitions {
		if s.Type != v1alpha1.TransitionCreated {
			who = append(who, fmt.Sprintf("%s by %s of %s", s.Type, s.By, s.Author))
		}
	}
	return who, err
}

func TestTheHistoryAndTheAuditLogNameWhoCommittedTheOperation(t *testing.T) {
	const triaged, ended = `"A finding was triaged." `, `"A decision has ended." `
	muted := func(by string) v1alpha1.FindingTriage {
		return v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusMuted, By: by}
	}
	expired := muted("operation/mute")
	expired.ExpiresAt = new(v1alpha1.NewTime(time.Now().Add(-time.Second)))
	for _, c := range []struct {
		reason   string
		decision v1alpha1.FindingTriage
		found    bool
		history  []string
		lines    []string
	}{
		{"an operation decided", muted("operation/mute"), true,
			[]string{"triaged by operation/mute of ann"}, []string{triaged + `"by":"operation/mute","author":"ann"`}},
		{"an operation that no longer exists decided", muted("operation/mute"), false,
			[]string{"triaged by operation/mute of "}, []string{triaged + `"by":"operation/mute","author":""`}},
		{"a person decided, whose name is that of an operation", muted("mute"), true,
			[]string{"triaged by mute of "}, []string{triaged + `"by":"mute","author":""`}},
		{"its decision has ended: nobody did that", expired, true,
			[]string{"triaged by operation/mute of ann", "expired by operation/mute of "},
			[]string{triaged + `"by":"operation/mute","author":"ann"`, ended + `"by":"operation/mute","author":""`}},
	} {
		a := attributing(c.decision, c.found)
		history, err := a.recorded(t)
		harness.Must(t, err)
		harness.Same(t, c.reason+": history", c.history, history)
		harness.Same(t, c.reason+": audit log", c.lines, a.lines)
	}
}

// Once the status were stored, no later reconcile would write the line.
func TestADecisionIsRecordedOnlyOnceItIsKnownWhoCommittedIt(t *testing.T) {
	a := attributing(v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusMuted, By: "operation/mute"}, true)
	a.failing = errors.New("the cache has stopped")
	history, err := a.recorded(t)
	harness.ErrorContains(t, "a reconcile that cannot read the operation", err, "the cache has stopped")
	harness.Same(t, "transitions after it", 0, len(history))
	harness.Same(t, "lines of the audit log after it", 0, len(a.lines))

	a.failing = nil
	history, err = a.recorded(t)
	harness.Must(t, err)
	harness.Same(t, "history", []string{"triaged by operation/mute of ann"}, history)
	harness.Same(t, "audit log", []string{`"A finding was triaged." "by":"operation/mute","author":"ann"`}, a.lines)
}
