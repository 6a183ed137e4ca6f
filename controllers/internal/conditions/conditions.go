// Package conditions sets the conditions that every kind has.
package conditions

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/truncate"
)

// Verdict is a reconcile's result as the conditions show it.
type Verdict struct {
	// Ready means that nothing is left to do.
	Ready bool
	// Stalled means that nothing will change until a user acts. Ready must be false then.
	Stalled bool
	// Reason and Message are as in a condition: the message states what to do, if there is anything
	// to do.
	Reason, Message string
}

// Ready returns the verdict on a fully reconciled object.
func Ready(message string) Verdict {
	return Verdict{Ready: true, Reason: v1alpha1.ReasonReconciled, Message: message}
}

// NotReady returns the verdict on an object that is not fully reconciled yet.
func NotReady(reason, message string) Verdict { return Verdict{Reason: reason, Message: message} }

// Stalled returns the verdict on an object for which nothing will change until a user acts.
func Stalled(reason, message string) Verdict {
	return Verdict{Stalled: true, Reason: reason, Message: message}
}

// NotFound returns the verdict on a dependent, such as "finding", that names an object which does not
// exist.
func NotFound(reason, kind string, name v1alpha1.ResourceName, dependent string) Verdict {
	return NotReady(reason, fmt.Sprintf(
		"There is no %s %q in this namespace: create it, or delete the %s.", kind, name, dependent))
}

// maxQuoted is how many characters %q prints at most of what Shortened returns, between the quotes.
const maxQuoted = 256

// Shortened returns an error's text for a message, which is bounded.
func Shortened(text string) string { return truncate.Quotable(text, maxQuoted, "…") }

// ReadyReason returns the reason of the Ready condition; "" if there is no such condition yet.
func ReadyReason(list []v1alpha1.Condition) string {
	ready := v1alpha1.FindCondition(list, v1alpha1.ConditionReady)
	if ready == nil {
		return ""
	}
	return ready.Reason
}

// Set puts the verdict into the list. An unchanged condition keeps its time.
func Set(list *[]v1alpha1.Condition, verdict Verdict, generation int64, now time.Time) {
	reason, message := verdict.Reason, verdict.Message
	SetOne(list, v1alpha1.ConditionReady, verdict.Ready, reason, message, generation, now)
	if verdict.Stalled {
		SetOne(list, v1alpha1.ConditionStalled, true, reason, message, generation, now)
	} else {
		v1alpha1.RemoveCondition(list, v1alpha1.ConditionStalled)
	}
}

// SetOne puts one condition into the list. An unchanged condition keeps its time.
func SetOne(list *[]v1alpha1.Condition, kind string, is bool, reason, message string, generation int64, now time.Time) {
	status := metav1.ConditionFalse
	if is {
		status = metav1.ConditionTrue
	}
	v1alpha1.SetCondition(list, v1alpha1.Condition{
		Type: kind, Status: status, ObservedGeneration: generation,
		LastTransitionTime: v1alpha1.NewTime(now), Reason: reason, Message: message,
	})
}
