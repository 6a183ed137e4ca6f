package findingstate_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestOnlyAnOperationThatCanHaveMadeADecisionNamesItsCommitter(t *testing.T) {
	created := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	selected := v1alpha1.NewTime(created.Add(10 * time.Second))
	for _, c := range []struct {
		reason string
		after  time.Duration
		change func(*v1alpha1.TriageOperation)
		want   string
	}{
		{"it decided in the second of its selection", 10 * time.Second, nil, "ann"},
		{"it decided later", time.Hour, nil, "ann"},
		{"an earlier operation of its name decided", -time.Second, nil, ""},
		{"an earlier one decided in the second of its creation", 0, nil, ""},
		{"an earlier one decided shortly before its selection", 9 * time.Second, nil, ""},
		{"an earlier one decided, and the clock of the selection was behind", -time.Second,
			func(o *v1alpha1.TriageOperation) {
				o.Status.SelectedAt = new(v1alpha1.NewTime(created.Add(-time.Minute)))
			}, ""},
		{"it has not selected its findings", time.Hour, func(o *v1alpha1.TriageOperation) { o.Status.SelectedAt = nil }, ""},
		{"it is not committed", time.Hour, func(o *v1alpha1.TriageOperation) { o.Spec.Commit = false }, ""},
		{"the name is long", time.Hour, func(o *v1alpha1.TriageOperation) {
			o.Spec.CommittedBy = "arn:aws:sts::111122223333:assumed-role/AWSReservedSSO_Triage_0123456789abcdef/ünal@example.com"
		}, "[cut] ... servedSSO_Triage_0123456789abcdef/ünal@example.com"},
		{"the name just fits", time.Hour, func(o *v1alpha1.TriageOperation) {
			o.Spec.CommittedBy = strings.Repeat("ü", v1alpha1.MaxTransitionAuthor)
		}, strings.Repeat("ü", v1alpha1.MaxTransitionAuthor)},
	} {
		operation := builder.TriageOperation("mute", "G1").Committed().Build()
		operation.CreationTimestamp, operation.Spec.CommittedBy, operation.Status.SelectedAt = created, "ann", &selected
		if c.change != nil {
			c.change(operation)
		}
		finding := builder.Finding("f-1").Build()
		finding.ManagedFields = []metav1.ManagedFieldsEntry{
			{Manager: v1alpha1.ControllerFieldManager, Subresource: "status", Time: new(metav1.NewTime(created.Add(2 * time.Hour)))},
			{Manager: v1alpha1.ControllerFieldManager, Time: new(metav1.NewTime(created.Add(c.after)))},
			{Manager: "scanner/gosec", Time: new(metav1.NewTime(created.Add(time.Hour)))},
		}
		harness.Same(t, c.reason, c.want, findingstate.Committer(operation, finding))
	}
}
