package faults

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/triageoperation"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/faults/internal/rig"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// decidedBy returns a state of the finding f.
func decidedBy(by string, status v1alpha1.UserStatus, verdict *v1alpha1.FindingVerdict) rig.Stored {
	f := v1alpha1.Finding{ObjectMeta: metav1.ObjectMeta{Name: "f", UID: "uid"}}
	f.Spec.Triage = v1alpha1.FindingTriage{UserStatus: status, By: by}
	f.Status.Verdict = verdict
	return stored("findings", "f", f)
}

// TestTheAuditSeesWhatOperationsAndPoliciesMayNotDo plants the effects of bugs.
func TestTheAuditSeesWhatOperationsAndPoliciesMayNotDo(t *testing.T) {
	t.Parallel()
	operation := func(commit bool, changed int32) rig.Stored {
		o := builder.TriageOperation("o", "R1").Build()
		o.Spec.Commit = commit
		o.Status.Matched, o.Status.Changed, o.Status.Phase = changed, changed, v1alpha1.OperationCompleted
		return stored("triageoperations", "o", o)
	}
	part := func(change func(*triageoperation.Entry)) rig.Stored {
		f := &v1alpha1.Finding{ObjectMeta: metav1.ObjectMeta{Name: "f"}}
		f.Spec.Triage.UserStatus = v1alpha1.UserStatusOpen
		entry := triageoperation.NewEntry(f)
		change(&entry)
		parts, _, err := triageoperation.Parts(builder.TriageOperation("o", "R1").Build(), []triageoperation.Entry{entry})
		harness.Must(t, err)
		return stored("triageoperationparts", "o-000", parts[0])
	}
	asIs := func(*triageoperation.Entry) {}
	open, muted := decidedBy("", v1alpha1.UserStatusOpen, nil), decidedBy("operation/o", v1alpha1.UserStatusMuted, nil)
	ann := decidedBy("ann", v1alpha1.UserStatusActive, nil)
	verdict := &v1alpha1.FindingVerdict{Policy: "p"}
	for _, c := range []struct {
		reason  string
		history []rig.Stored
		want    string
	}{
		{"all is well", []rig.Stored{open, part(asIs), operation(true, 1), muted}, ""},
		{"a person overrules it", []rig.Stored{open, part(asIs), operation(true, 1), muted, ann}, ""},
		{"it was not committed", []rig.Stored{open, part(asIs), operation(false, 1), muted}, "nobody has committed it"},
		{"another finding", []rig.Stored{open, part(func(e *triageoperation.Entry) { e.Finding = "g" }), operation(true, 0), muted}, "not in its set"},
		{"a person was faster", []rig.Stored{open, part(asIs), ann, operation(true, 1), muted}, "overwrote"},
		{"twice", []rig.Stored{open, part(asIs), operation(true, 1), muted, ann, muted}, "decided 2 times"},
		{"it says less than it did", []rig.Stored{open, part(asIs), operation(true, 0), muted}, "says that it changed 0"},
		{"it says more", []rig.Stored{open, part(asIs), operation(true, 1)}, "says that it changed 1"},
		{"an undo gives back something else", []rig.Stored{open, part(func(e *triageoperation.Entry) {
			e.Set = &v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusActive}
		}), operation(true, 1), muted}, "gave back"},
		{"a set is removed", []rig.Stored{part(asIs), {Namespace: namespace, Resource: "triageoperationparts", Name: "o-000", Deleted: true}}, "was deleted"},
		{"a policy decides where nobody has", []rig.Stored{decidedBy("", v1alpha1.UserStatusOpen, verdict)}, ""},
		{"a policy decides where a person has", []rig.Stored{decidedBy("ann", v1alpha1.UserStatusActive, verdict)}, "a policy decides about f"},
	} {
		wantsSaid(t, c.reason, c.want, audited(t, c.history, func(a *audit) { a.many.check() }))
	}
}
