package webhooks

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// EventFindingBatch is the type of an event that holds many findings changed by one scan: a page.
const EventFindingBatch = "finding.batch"

// MaxPageEntries is the maximum number of transitions per page; long names reduce it.
const MaxPageEntries = 128

// PageEntry is one transition of one finding in a page.
type PageEntry struct {
	Type      string `json:"type"`
	Timestamp string `json:"timestamp"`
	FindingData
}

// pageData is the data of a page.
type pageData struct {
	ScanID       string      `json:"scan_id"`
	RepositoryID string      `json:"repository_id"`
	ProjectID    string      `json:"project_id"`
	Findings     []PageEntry `json:"findings"`
}

// PageEntryOf returns the entry for the finding's transition.
func PageEntryOf(finding *v1alpha1.Finding, t v1alpha1.Transition) PageEntry {
	return PageEntry{Type: FindingEvent(t.Type), Timestamp: timestamp(t.At.Time), FindingData: DataOfFinding(finding, t)}
}

// Pages puts the entries into deliveries to the endpoint, in their order, as many in each as it
// may hold.
//
// A page's name follows from the scan, the endpoint and its first entry. An entry is in exactly one page, so
// no two pages share a name, even after the first was removed by retention. Making the same pages
// again yields the same names.
func Pages(scan *v1alpha1.Scan, endpoint *v1alpha1.WebhookEndpoint,
	entries []PageEntry) ([]*v1alpha1.WebhookDelivery, error) {
	var out []*v1alpha1.WebhookDelivery
	for len(entries) > 0 {
		n, err := fitting(scan, entries)
		if err != nil {
			return nil, err
		}
		page, err := newPage(scan, endpoint, entries[:n])
		if err != nil {
			return nil, err
		}
		out, entries = append(out, page), entries[n:]
	}
	return out, nil
}

// fitting returns how many of the entries, from the first, fit into a page.
func fitting(scan *v1alpha1.Scan, entries []PageEntry) (int, error) {
	size, err := encodedSize(envelope{Type: EventFindingBatch, Timestamp: timestamp(time.Time{}),
		Data: dataOfPage(scan, nil)})
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
		// With the comma before it. The first is in the page whatever its size: its own delivery
		// would be as large.
		if size += one + 1; size > v1alpha1.MaxWebhookPayloadLength && i > 0 {
			return i, nil
		}
	}
	return len(entries), nil
}

func encodedSize(value any) (int, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return 0, fmt.Errorf("encode a page of a scan: %w", err)
	}
	return len(text), nil
}

func newPage(scan *v1alpha1.Scan, endpoint *v1alpha1.WebhookEndpoint,
	entries []PageEntry) (*v1alpha1.WebhookDelivery, error) {
	at, err := newest(entries)
	if err != nil {
		return nil, err
	}
	return namedDelivery(pageName(scan.UID, entries[0], endpoint.UID), Event{
		Type:    EventFindingBatch,
		Time:    at,
		Subject: v1alpha1.WebhookEventSubject{Kind: "Scan", Name: v1alpha1.ResourceName(scan.Name)},
		Data:    dataOfPage(scan, entries),
	}, endpoint)
}

func dataOfPage(scan *v1alpha1.Scan, entries []PageEntry) pageData {
	return pageData{
		ScanID:       scan.Name,
		RepositoryID: string(scan.Spec.RepositoryRef.Name),
		ProjectID:    string(scan.Spec.ProjectRef.Name),
		Findings:     append([]PageEntry{}, entries...),
	}
}

// newest returns the time of the newest entry.
func newest(entries []PageEntry) (time.Time, error) {
	var last time.Time
	for i := range entries {
		at, err := time.Parse(time.RFC3339, entries[i].Timestamp)
		if err != nil {
			return last, fmt.Errorf("read the time of an entry: %w", err)
		}
		if at.After(last) {
			last = at
		}
	}
	return last, nil
}

// pageName cannot be that of a transition's own delivery: that is made of three parts.
func pageName(scan types.UID, first PageEntry, endpoint types.UID) string {
	return hashName(string(scan), "page", first.UID, strconv.FormatInt(first.Seq, 10), string(endpoint))
}

// Covered returns the transitions that the delivery contains, if it is a page.
func Covered(delivery *v1alpha1.WebhookDelivery) []PageEntry {
	if delivery.Spec.Event.Type != EventFindingBatch {
		return nil
	}
	var content struct {
		Data pageData `json:"data"`
	}
	if err := json.Unmarshal([]byte(delivery.Spec.Payload), &content); err != nil {
		return nil // No page of ours: what we make is JSON.
	}
	return content.Data.Findings
}
