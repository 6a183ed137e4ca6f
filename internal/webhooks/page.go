package webhooks

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// EventFindingBatch is the type of an event that holds many findings changed by one scan, operation or policy: a page.
const EventFindingBatch = "finding.batch"

// MaxPageEntries is the maximum number of transitions per page; long names reduce it.
const MaxPageEntries = 128

// PageEntry is one transition of one finding in a page.
type PageEntry struct {
	Type      string        `json:"type"`
	Timestamp v1alpha1.Time `json:"timestamp"`
	FindingData
}

// pageData is the data of a page. Only scans have a repository and a project.
type pageData struct {
	ScanID       string      `json:"scan_id,omitempty"`
	OperationID  string      `json:"operation_id,omitempty"`
	PolicyID     string      `json:"policy_id,omitempty"`
	RepositoryID string      `json:"repository_id,omitempty"`
	ProjectID    string      `json:"project_id,omitempty"`
	Findings     []PageEntry `json:"findings"`
}

// Cause is the object that changed the findings of a page: a scan, an operation or a policy.
type Cause struct {
	kind, name string
	// key is part of the pages' names, and unique to the cause.
	key  string
	data pageData
}

// Name returns the object's name.
func (c Cause) Name() string { return c.name }

// CauseOfScan returns the cause of a scan's pages.
func CauseOfScan(scan *v1alpha1.Scan) Cause {
	return Cause{kind: "Scan", name: scan.Name, key: string(scan.UID), data: pageData{
		ScanID: scan.Name, RepositoryID: string(scan.Spec.RepositoryRef.Name),
		ProjectID: string(scan.Spec.ProjectRef.Name),
	}}
}

// CauseOfOperation returns the cause of an operation's pages.
func CauseOfOperation(operation *v1alpha1.TriageOperation) Cause {
	return Cause{
		kind: "TriageOperation", name: operation.Name, key: string(operation.UID),
		data: pageData{OperationID: operation.Name},
	}
}

// CauseOfPolicy returns the cause of the named policy's pages. It uses only the name: deleting a policy changes its
// findings, which hold nothing else of it.
func CauseOfPolicy(name string) Cause {
	const kind = "TriagePolicy"
	return Cause{kind: kind, name: name, key: kind + "/" + name, data: pageData{PolicyID: name}}
}

func (c Cause) dataOf(entries []PageEntry) pageData {
	data := c.data
	data.Findings = append([]PageEntry{}, entries...)
	return data
}

// PageEntryOf returns the entry for the finding's transition.
func PageEntryOf(finding *v1alpha1.Finding, t v1alpha1.Transition) PageEntry {
	return PageEntry{Type: FindingEvent(t.Type), Timestamp: t.At, FindingData: DataOfFinding(finding, t)}
}

// Pages puts the entries in order into deliveries to the endpoint, as many in each as fit.
//
// A page's name follows from the cause, the endpoint and its first entry. An entry is in exactly one page, so no two
// pages share a name, even after the first was removed by retention. Making the same pages again yields the same names.
func Pages(cause Cause, endpoint *v1alpha1.WebhookEndpoint,
	entries []PageEntry) ([]*v1alpha1.WebhookDelivery, error) {
	var out []*v1alpha1.WebhookDelivery
	for len(entries) > 0 {
		n, err := fitting(cause, entries)
		if err != nil {
			return nil, err
		}
		page, err := newPage(cause, endpoint, entries[:n])
		if err != nil {
			return nil, err
		}
		out, entries = append(out, page), entries[n:]
	}
	return out, nil
}

// fitting returns how many of the entries, from the first, fit into a page.
func fitting(cause Cause, entries []PageEntry) (int, error) {
	size, err := encodedSize(envelope{Type: EventFindingBatch, Data: cause.dataOf(nil)})
	if err != nil {
		return 0, err
	}
	for i := range entries {
		if i == MaxPageEntries {
			return i, nil
		}
		one, err := encodedSize(entries[i])
		if err != nil {
			return 0, err
		}
		// The comma before it counts. The first entry is always in the page, because its own delivery would be as large.
		if size += one + 1; size > v1alpha1.MaxWebhookPayloadLength && i > 0 {
			return i, nil
		}
	}
	return len(entries), nil
}

func encodedSize(value any) (int, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return 0, fmt.Errorf("encode a page: %w", err)
	}
	return len(text), nil
}

func newPage(cause Cause, endpoint *v1alpha1.WebhookEndpoint,
	entries []PageEntry) (*v1alpha1.WebhookDelivery, error) {
	_, at := Span(entries)
	return namedDelivery(pageName(cause.key, entries[0], endpoint.UID), Event{
		Type:    EventFindingBatch,
		Time:    at,
		Subject: v1alpha1.WebhookEventSubject{Kind: cause.kind, Name: v1alpha1.ResourceName(cause.name)},
		Data:    cause.dataOf(entries),
	}, endpoint)
}

// Span returns the times of the oldest and of the newest entry; zero if there are none.
func Span(entries []PageEntry) (oldest, newest time.Time) {
	for i := range entries {
		at := entries[i].Timestamp.Time
		if i == 0 || at.Before(oldest) {
			oldest = at
		}
		if at.After(newest) {
			newest = at
		}
	}
	return oldest, newest
}

// pageName never equals the name of a transition's own delivery, which is made of three parts.
func pageName(cause string, first PageEntry, endpoint types.UID) string {
	return hashName(cause, "page", first.UID, strconv.FormatInt(first.Seq, 10), string(endpoint))
}

// EntryKey identifies the transition of a page's entry.
type EntryKey struct {
	FindingID string `json:"finding_id"`
	UID       string `json:"uid"`
	Seq       int64  `json:"seq"`
}

// Covered returns the transitions that the delivery contains, if it is a page. It reads nothing else, because every
// page in the cache is read again whenever it changes.
func Covered(delivery *v1alpha1.WebhookDelivery) []EntryKey {
	if delivery.Spec.Event.Type != EventFindingBatch {
		return nil
	}
	var content struct {
		Data struct {
			Findings []EntryKey `json:"findings"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(delivery.Spec.Payload), &content); err != nil {
		return nil // not one of our pages, which are JSON
	}
	return content.Data.Findings
}
