package webhooks

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// FindingEventPrefix begins the types of the events of findings.
const FindingEventPrefix = "finding"

// FindingEvent returns the event type for a finding's transition.
func FindingEvent(t v1alpha1.TransitionType) string { return FindingEventPrefix + "." + string(t) }

// creationSeq is the number of the transition that records a finding's creation.
const creationSeq = 1

// RecordsCreation reports whether this delivery is the only record that the finding's creation was delivered, because
// the finding has no stored status.
func RecordsCreation(delivery *v1alpha1.WebhookDelivery, finding *v1alpha1.Finding) bool {
	return finding.Status.UpdatedAt == nil &&
		delivery.Name == DeliveryName(finding.UID, creationSeq, types.UID(delivery.Spec.EndpointRef.UID))
}

// FindingData is the data of a finding's event. It holds ids and what changed, without the scanner's texts and users'
// comments, which the REST API returns.
type FindingData struct {
	FindingID string `json:"finding_id"`
	// UID distinguishes the finding from a later one with the same id. With Seq it
	// identifies the transition.
	UID          string         `json:"uid"`
	Seq          int64          `json:"seq"`
	RepositoryID string         `json:"repository_id"`
	ProjectID    string         `json:"project_id"`
	ScanID       string         `json:"scan_id,omitempty"`
	Severity     v1alpha1.Level `json:"severity"`
	By           string         `json:"by,omitempty"`
	// Author of the policy that By names, or whoever committed the operation that By names.
	Author string `json:"author,omitempty"`
	// Reason and ExpiresAt of the decision that was made, or has ended.
	Reason    v1alpha1.DecisionReason `json:"reason,omitempty"`
	ExpiresAt *v1alpha1.Time          `json:"expires_at,omitempty"`
	// Exactly one of these is set: UserStatus for a decision in spec.triage, its end, or its staleness; Verdict for a
	// verdict, open if there is none; else State.
	State      *Change `json:"state,omitempty"`
	UserStatus *Change `json:"user_status,omitempty"`
	Verdict    *Change `json:"verdict,omitempty"`
}

// Change holds a value's old and new state; From is empty if the value is new.
type Change struct {
	From string `json:"from,omitempty"`
	To   string `json:"to"`
}

// DataOfFinding returns the event data for the finding's transition.
func DataOfFinding(finding *v1alpha1.Finding, t v1alpha1.Transition) FindingData {
	data := FindingData{
		FindingID:    finding.Name,
		UID:          string(finding.UID),
		Seq:          t.Seq,
		RepositoryID: string(finding.Spec.RepositoryRef.Name),
		ProjectID:    string(finding.Spec.ProjectRef.Name),
		ScanID:       t.Scan,
		Severity:     finding.Spec.Details.Severity,
		By:           t.By,
		Author:       t.Author,
		Reason:       t.Reason,
		ExpiresAt:    t.ExpiresAt,
	}
	change := &Change{From: t.From, To: t.To}
	switch t.Type {
	case v1alpha1.TransitionTriaged, v1alpha1.TransitionExpired, v1alpha1.TransitionStale, v1alpha1.TransitionFresh:
		data.UserStatus = change
	case v1alpha1.TransitionJudged:
		data.Verdict = change
	default:
		data.State = change
	}
	return data
}
