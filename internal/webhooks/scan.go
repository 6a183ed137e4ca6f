package webhooks

import "github.com/appsec-dev/findings-operator/api/v1alpha1"

// ScanEventPrefix begins the types of the events of scans.
const ScanEventPrefix = "scan"

// ScanData is the data of an event of a scan.
type ScanData struct {
	ScanID string `json:"scan_id"`
	// UID distinguishes the scan from a later one with the same id. With Seq it
	// identifies the transition.
	UID          string                   `json:"uid"`
	Seq          int64                    `json:"seq"`
	RepositoryID string                   `json:"repository_id"`
	ProjectID    string                   `json:"project_id"`
	Tool         string                   `json:"tool"`
	Category     v1alpha1.FindingCategory `json:"category"`
	Outcome      Change                   `json:"outcome"`
	// Abandoned means that no end was recorded, so that the outcome is the operator's guess. An end
	// that is recorded later causes another event.
	Abandoned bool `json:"abandoned"`
	// Counts of what the import did; absent if it recorded none.
	Counts *v1alpha1.ScanCounts `json:"counts,omitempty"`
}

// DataOfScan returns the event data for the scan's transition.
func DataOfScan(scan *v1alpha1.Scan, t v1alpha1.Transition) ScanData {
	data := ScanData{
		ScanID:       scan.Name,
		UID:          string(scan.UID),
		Seq:          t.Seq,
		RepositoryID: string(scan.Spec.RepositoryRef.Name),
		ProjectID:    string(scan.Spec.ProjectRef.Name),
		Tool:         scan.Spec.Tool,
		Category:     scan.Spec.Category,
		Outcome:      Change{From: t.From, To: t.To},
		Abandoned:    t.By == v1alpha1.ControllerFieldManager,
	}
	// The current values may belong to an end that was recorded after this one.
	if !data.Abandoned {
		data.Counts = scan.Spec.Counts
	}
	return data
}
