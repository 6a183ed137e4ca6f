package findingstate

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Stale reports whether the facts that the decision is based on have changed.
func Stale(finding *v1alpha1.Finding) bool { return len(differences(finding)) > 0 }

// WhyStale describes how the facts differ from those that the decision is based on, for example "severity
// medium, now high"; "" if the decision is not stale.
func WhyStale(finding *v1alpha1.Finding) string { return describe(differences(finding)) }

// StaleReason returns the reason of the condition DecisionStale; "" if the decision is not stale.
func StaleReason(finding *v1alpha1.Finding) string { return reasonOf(differences(finding)) }

// difference is a fact that has changed since the decision.
type difference struct{ reason, text string }

// differences compares the facts with the basis of the decision. Facts that are unknown on one side
// do not count, nor does a doubt that no longer exists.
func differences(finding *v1alpha1.Finding) []difference {
	if !Decided(finding) {
		return nil
	}
	return restsOn(finding).differences(&finding.Spec)
}

// MayBeAnother reports whether the facts could belong to another problem without making a decision with that basis
// stale: neither version nor code is known on both sides, and nothing else differs. Another rule or vulnerability with
// the same version or code is not noticed, because a basis has neither.
func MayBeAnother(basis string, facts *v1alpha1.FindingSpec) bool {
	was, is := parseBasis(basis), basisOf(facts)
	version := was.version != "" && is.version != ""
	code := was.plain == is.plain && was.code != "" && is.code != ""
	return !version && !code && len(was.differences(facts)) == 0
}

// OtherCode reports whether the facts have other code than the decision about the finding is based on. Unknown code
// does not count, nor does the code of a package whose version is known.
func OtherCode(finding *v1alpha1.Finding, facts *v1alpha1.FindingSpec) bool {
	return restsOn(finding).otherCode(basisOf(facts))
}

func (b basis) otherCode(is basis) bool { return b.plain == is.plain && differ(b.code, is.code) }

// differ reports whether both facts are known, and not the same.
func differ(was, now string) bool { return was != "" && now != "" && was != now }

// differences returns how the facts differ from the basis.
func (b basis) differences(facts *v1alpha1.FindingSpec) (out []difference) {
	is := basisOf(facts)
	if is.doubt != "" && is.doubt != b.doubt {
		out = append(out, difference{v1alpha1.ReasonInDoubt, "in doubt: " + facts.Doubt.Reason})
	}
	if b.otherCode(is) {
		out = append(out, difference{v1alpha1.ReasonCodeChanged, "other code at the place"})
	}
	if differ(b.version, is.version) {
		out = append(out, difference{v1alpha1.ReasonVersionChanged, fmt.Sprintf("version %q, now %q", b.version,
			is.version)})
	}
	if b.plain == is.plain && differ(b.severity, is.severity) {
		out = append(out, difference{v1alpha1.ReasonSeverityChanged, fmt.Sprintf("severity %s, now %s", b.severity,
			is.severity)})
	}
	return out
}

// restsOn returns the basis of the decision: the recorded one if it agrees with the declared one, else the declared
// one. Without either it returns the current facts, because the original ones are unknown.
func restsOn(finding *v1alpha1.Finding) basis {
	spec, status := &finding.Spec, &finding.Status
	facts, declared, recorded := basisOf(spec), parseBasis(spec.Triage.Basis), parseBasis(status.Basis)
	observed := status.UserStatus == UserStatus(finding)
	switch {
	case status.Basis != "" && observed && (spec.Triage.Basis == "" || declared.within(recorded)):
		return recorded.filled(facts)
	case spec.Triage.Basis != "":
		return declared.filled(facts)
	}
	if observed {
		// The decision is older than bases, and a doubt may have arisen since.
		facts.doubt = ""
	}
	return facts
}

// RestsOn returns the basis of the decision in force, completed with the facts that spec.triage.basis leaves out, and
// in the same format; "" without a decision.
func RestsOn(finding *v1alpha1.Finding) string {
	if !Decided(finding) {
		return ""
	}
	return restsOn(finding).String()
}

func describe(differences []difference) string {
	texts := make([]string, len(differences))
	for i, d := range differences {
		texts[i] = d.text
	}
	return strings.Join(texts, "; ")
}

// observeDecision records the basis of the decision and whether it is stale, and returns the resulting transition. A
// new decision that ends the staleness needs none, because it has its own transition.
func observeDecision(finding *v1alpha1.Finding, next *v1alpha1.FindingStatus, now time.Time) []v1alpha1.Transition {
	if next.EndedAt != nil {
		next.Basis = ""
		v1alpha1.RemoveCondition(&next.Conditions, v1alpha1.ConditionDecisionStale)
		return nil
	}
	next.Basis = RestsOn(finding)
	before := v1alpha1.FindCondition(next.Conditions, v1alpha1.ConditionDecisionStale)
	differences := differences(finding)
	if len(differences) == 0 {
		v1alpha1.RemoveCondition(&next.Conditions, v1alpha1.ConditionDecisionStale)
		if before == nil || finding.Status.TriageDigest != next.TriageDigest {
			return nil
		}
		return []v1alpha1.Transition{aboutDecision(finding, v1alpha1.TransitionFresh, "")}
	}
	condition := staleCondition(differences, finding.Generation, now)
	known := before != nil && before.Message == condition.Message
	v1alpha1.SetCondition(&next.Conditions, condition)
	if known {
		return nil
	}
	return []v1alpha1.Transition{aboutDecision(finding, v1alpha1.TransitionStale, describe(differences))}
}

func reasonOf(differences []difference) string {
	switch len(differences) {
	case 0:
		return ""
	case 1:
		return differences[0].reason
	default:
		return v1alpha1.ReasonSeveralChanged
	}
}

// maxDifferences leaves room for the rest of a condition's message. A character of a version may
// take six when quoted.
const maxDifferences = 800

func staleCondition(differences []difference, generation int64, now time.Time) v1alpha1.Condition {
	return v1alpha1.Condition{
		Type: v1alpha1.ConditionDecisionStale, Status: metav1.ConditionTrue,
		ObservedGeneration: generation, LastTransitionTime: v1alpha1.NewTime(now), Reason: reasonOf(differences),
		Message: fmt.Sprintf("The decision was made about other facts (%s). Repeat it if it still holds, or decide anew.",
			cut(describe(differences), maxDifferences)),
	}
}

// aboutDecision returns a transition of a decision that is caused by the scanner's facts.
func aboutDecision(finding *v1alpha1.Finding, kind v1alpha1.TransitionType, what string) v1alpha1.Transition {
	status := string(UserStatus(finding))
	return v1alpha1.Transition{
		Type: kind, From: status, To: status, Comment: cut(what, v1alpha1.MaxTransitionComment),
		By: v1alpha1.ScannerFieldManagerPrefix + finding.Spec.Tool, Scan: scanOf(&finding.Spec, kind),
	}
}
