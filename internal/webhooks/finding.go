package webhooks

import (
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// FindingEventPrefix begins the types of the events of findings.
const FindingEventPrefix = "finding"

// FindingEvent is the type of the event that tells of a finding's transition.
func FindingEvent(t v1alpha1.TransitionType) string { return FindingEventPrefix + "." + string(t) }

// FindingData is the data of an event of a finding. It names things and says what has changed;
// what a scanner found in the code and what people wrote of it is left to the REST API.
type FindingData struct {
	FindingID string `json:"finding_id"`
	// UID tells the finding from another of its id, made after this one was removed. With Seq it
	// names the transition.
	UID          string         `json:"uid"`
	Seq          int64          `json:"seq"`
	RepositoryID string         `json:"repository_id"`
	ProjectID    string         `json:"project_id"`
	ScanID       string         `json:"scan_id,omitempty"`
	Severity     v1alpha1.Level `json:"severity"`
	By           string         `json:"by,omitempty"`
	// One of the two: the user status of a triage, else the state.
	State      *Change `json:"state,omitempty"`
	UserStatus *Change `json:"user_status,omitempty"`
}

// Change is what a value was and what it is; it was nothing where it is new.
type Change struct {
	From string `json:"from,omitempty"`
	To   string `json:"to"`
}

// DataOfFinding is the data of the event that tells of the finding's transition.
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
	}
	change := &Change{From: t.From, To: t.To}
	if t.Type == v1alpha1.TransitionTriaged {
		data.UserStatus = change
	} else {
		data.State = change
	}
	return data
}

// timestamp is a time as payloads give it.
func timestamp(at time.Time) string { return at.UTC().Truncate(time.Second).Format(time.RFC3339) }
