package findingstate

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// AsCreated reports whether the finding has not changed since its creation, open and undecided. Its status follows from
// that and need not be stored.
func AsCreated(finding *v1alpha1.Finding) bool {
	return finding.Generation <= 1 && undecidedAndOpen(&finding.Spec)
}

// IsRecorded reports whether the status describes the current spec: the stored one, or the one that follows from the
// creation.
func IsRecorded(finding *v1alpha1.Finding) bool {
	return finding.Status.ObservedGeneration == finding.Generation || !isStored(&finding.Status) && AsCreated(finding)
}

// isStored reports whether the controllers have stored the status; the schema's default does not count.
func isStored(status *v1alpha1.FindingStatus) bool {
	return status.UpdatedAt != nil || len(status.Transitions) > 0
}

// Recorded returns the finding with a status: the stored one, or the one that follows from its creation. A finding that
// was created closed, suppressed or decided has none until the controllers store it. Any other finding without a stored
// status counts as created open and undecided, even if it has changed since.
func Recorded(finding *v1alpha1.Finding) *v1alpha1.Finding { return recorded(finding, nil) }

// recorded is Recorded for a finding whose creation may have been observed.
func recorded(finding *v1alpha1.Finding, seen *Creation) *v1alpha1.Finding {
	if isStored(&finding.Status) || finding.Generation <= 1 && !AsCreated(finding) {
		return finding
	}
	asCreated := *finding
	asCreated.Status = statusAtCreation(finding, seen)
	return &asCreated
}

// Creation keeps what a finding without a stored status no longer shows once its scanner has rewritten its facts.
type Creation struct{ factsDigest, scan string }

// CreationOf returns the Creation in a status that was observed before the facts were rewritten.
func CreationOf(status *v1alpha1.FindingStatus) *Creation {
	seen := &Creation{factsDigest: status.FactsDigest}
	if len(status.Transitions) > 0 {
		seen.scan = status.Transitions[0].Scan
	}
	return seen
}

// firstObservation is how long after its creation a finding without a status may be observed for the first time. After
// that, it counts as observed before and left without a status.
const firstObservation = time.Minute

// ObservedBefore returns the finding as the previous reconcile left it, to pass to Observe. A finding without a status
// that has changed since its creation, or was created a while ago, gets the status of Recorded. seen is the observed
// creation; may be nil.
func ObservedBefore(finding *v1alpha1.Finding, seen *Creation, now time.Time) *v1alpha1.Finding {
	if finding.Generation > 1 || now.Sub(finding.CreationTimestamp.Time) > firstObservation {
		return recorded(finding, seen)
	}
	return finding
}

// withoutDefault removes the state that only the schema's default has set: there is none before the first observation.
func withoutDefault(finding *v1alpha1.Finding) *v1alpha1.Finding {
	if isStored(&finding.Status) {
		return finding
	}
	first := *finding
	first.Status.State, first.Status.UserStatus = "", ""
	return &first
}

func undecidedAndOpen(spec *v1alpha1.FindingSpec) bool {
	return spec.Closed == nil && spec.Suppression == nil && !isTriaged(spec) &&
		spec.Triage.Reason == "" && spec.Triage.ExpiresAt == nil
}

// statusAtCreation is the status that a reconcile right after the creation would have recorded. Its transition is not
// emitted yet. If the scanner has rewritten the facts before anybody observed them, their first digest and scan are
// unknown.
func statusAtCreation(finding *v1alpha1.Finding, seen *Creation) v1alpha1.FindingStatus {
	at := v1alpha1.NewTime(finding.CreationTimestamp.UTC())
	status := v1alpha1.FindingStatus{
		ObservedGeneration: 1, UpdatedAt: &at,
		State: v1alpha1.FindingStateOpen, UserStatus: v1alpha1.UserStatusOpen,
		TriageDigest: TriageDigest(&v1alpha1.FindingSpec{}),
		Conditions:   finding.Status.Conditions,
	}
	created := v1alpha1.Transition{
		Type: v1alpha1.TransitionCreated, To: string(v1alpha1.FindingStateOpen),
		By: v1alpha1.ScannerFieldManagerPrefix + finding.Spec.Tool,
	}
	switch {
	case seen != nil:
		status.FactsDigest, created.Scan = seen.factsDigest, seen.scan
	case !factsRewritten(finding):
		status.FactsDigest = factsDigest(&finding.Spec)
		created.Scan = scanOf(&finding.Spec, v1alpha1.TransitionCreated)
	}
	status.Transitions = History(&status).Record(at, created)
	return status
}

// factsRewritten reports whether the scanner has rewritten the facts of a finding without a stored status. Each write
// of the spec counts in the generation. A decision, a closure, a suppression and a doubt are visible in the spec and
// account for one write each. Any further write changed the facts, unless the scanner's last write was the creation.
func factsRewritten(finding *v1alpha1.Finding) bool {
	spec, explained := &finding.Spec, int64(1)
	for _, shows := range []bool{isTriaged(spec), spec.Closed != nil, spec.Suppression != nil, spec.Doubt != nil} {
		if shows {
			explained++
		}
	}
	return finding.Generation > explained && !scannedOnlyOnce(finding)
}

// scannedOnlyOnce reports whether managedFields prove that no scanner has written the finding since its creation.
func scannedOnlyOnce(finding *v1alpha1.Finding) bool {
	proved := false
	for _, entry := range finding.ManagedFields {
		if entry.Operation != metav1.ManagedFieldsOperationApply ||
			!strings.HasPrefix(entry.Manager, v1alpha1.ScannerFieldManagerPrefix) {
			continue
		}
		if entry.Time == nil || entry.Time.After(finding.CreationTimestamp.Time) {
			return false
		}
		proved = true
	}
	return proved
}
