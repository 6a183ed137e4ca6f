package webhooks

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func scan() *v1alpha1.Scan {
	return &v1alpha1.Scan{
		ObjectMeta: metav1.ObjectMeta{Namespace: "org-acme", Name: "s-1", UID: "s-uid"},
		Spec: v1alpha1.ScanSpec{
			RepositoryRef: v1alpha1.RepositoryReference{Name: "shop"}, ProjectRef: v1alpha1.ProjectReference{Name: "api"},
		},
	}
}

func finding(name string) *v1alpha1.Finding {
	return &v1alpha1.Finding{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid of " + name)},
		Spec: v1alpha1.FindingSpec{
			RepositoryRef: v1alpha1.RepositoryReference{Name: "shop"}, ProjectRef: v1alpha1.ProjectReference{Name: "api"},
			Tool: "gosec", Details: v1alpha1.FindingDetails{
				Title: "a title", Severity: v1alpha1.LevelHigh, Code: "the code", Description: "a description",
			},
			Triage: v1alpha1.FindingTriage{Comments: "the comment"},
		},
	}
}

func entry(name string, seq int64) PageEntry {
	return PageEntryOf(finding(name), v1alpha1.Transition{
		Seq: seq, Type: v1alpha1.TransitionCreated, At: v1alpha1.NewTime(noon), To: "open", By: "scanner/gosec", Scan: "s-1",
	})
}

func entries(n int) []PageEntry {
	out := make([]PageEntry, n)
	for i := range out {
		out[i] = entry(fmt.Sprintf("f-%04d", i), 1)
	}
	return out
}

func entriesIn(t harness.T, page *v1alpha1.WebhookDelivery) []PageEntry {
	t.Helper()
	return harness.Decoded[struct{ Data pageData }](t, []byte(page.Spec.Payload)).Data.Findings
}

func TestTheDataOfAFinding(t *testing.T) {
	transition := func(kind v1alpha1.TransitionType, from, to string) v1alpha1.Transition {
		return v1alpha1.Transition{Seq: 4, Type: kind, From: from, To: to, By: "ann", Comment: "the comment", Scan: "s-1"}
	}
	const who = `{"finding_id":"f-1","uid":"uid of f-1","seq":4,"repository_id":"shop","project_id":"api","scan_id":"s-1","severity":"high","by":"ann",`
	expired := transition(v1alpha1.TransitionExpired, "muted", "open")
	expired.ExpiresAt, expired.Reason = endElsewhere(), v1alpha1.DecisionUsedInTests
	cases := []struct {
		reason     string
		transition v1alpha1.Transition
		want       string
	}{
		{"it was nothing before", transition(v1alpha1.TransitionCreated, "", "open"), `"state":{"to":"open"}}`},
		{"a state", transition(v1alpha1.TransitionClosed, "open", "closed"), `"state":{"from":"open","to":"closed"}}`},
		{"a suppression, and not its justification", transition(v1alpha1.TransitionSuppressed, "open", "open_muted"), `"state":{"from":"open","to":"open_muted"}}`},
		{"a decision that is stale, and not why", transition(v1alpha1.TransitionStale, "muted", "muted"), `"user_status":{"from":"muted","to":"muted"}}`},
		{"one that is no longer stale", transition(v1alpha1.TransitionFresh, "muted", "muted"), `"user_status":{"from":"muted","to":"muted"}}`},
		{"the end of a decision, in UTC with whole seconds", expired, `"reason":"used-in-tests","expires_at":"2026-12-31T00:00:00Z","user_status":{"from":"muted","to":"open"}}`},
		{"a decision, and not the comment", transition(v1alpha1.TransitionTriaged, "open", "muted"), `"user_status":{"from":"open","to":"muted"}}`},
	}
	for _, c := range cases {
		harness.Same(t, c.reason, who+c.want, string(harness.JSON(t, DataOfFinding(finding("f-1"), c.transition))))
	}
}

func TestThePayloadOfAPage(t *testing.T) {
	later := entry("f-2", 3)
	later.Timestamp = v1alpha1.NewTime(noon.Add(7 * time.Second))
	pages, err := Pages(CauseOfScan(scan()), endpoint(), []PageEntry{entry("f-1", 1), later})
	if err != nil || len(pages) != 1 {
		t.Fatal(pages, err)
	}
	const one = `"repository_id":"shop","project_id":"api","scan_id":"s-1","severity":"high","by":"scanner/gosec","state":{"to":"open"}}`
	const want = `{"type":"finding.batch","timestamp":"2026-03-01T12:00:07Z","data":{"scan_id":"s-1","repository_id":"shop","project_id":"api","findings":[` +
		`{"type":"finding.created","timestamp":"2026-03-01T12:00:00Z","finding_id":"f-1","uid":"uid of f-1","seq":1,` + one + `,` +
		`{"type":"finding.created","timestamp":"2026-03-01T12:00:07Z","finding_id":"f-2","uid":"uid of f-2","seq":3,` + one + `]}}`
	harness.Same(t, "pages", want, pages[0].Spec.Payload)
	subject := v1alpha1.WebhookEventSubject{Kind: "Scan", Name: "s-1"}
	harness.Same(t, "pages", subject, pages[0].Spec.Event.Subject)
}

func TestThePayloadOfAPolicysPage(t *testing.T) {
	verdict := PageEntryOf(finding("f-1"), v1alpha1.Transition{
		Seq: 2, Type: v1alpha1.TransitionJudged, At: v1alpha1.NewTime(noon), From: "open", To: "muted", By: "policy/mute", Author: "ann",
		Reason: v1alpha1.DecisionUsedInTests, Comment: "the comment",
	})
	pages, err := Pages(CauseOfPolicy("mute"), endpoint(), []PageEntry{verdict})
	if err != nil || len(pages) != 1 {
		t.Fatal(pages, err)
	}
	const want = `{"type":"finding.batch","timestamp":"2026-03-01T12:00:00Z","data":{"policy_id":"mute","findings":[` +
		`{"type":"finding.judged","timestamp":"2026-03-01T12:00:00Z","finding_id":"f-1","uid":"uid of f-1","seq":2,` +
		`"repository_id":"shop","project_id":"api","severity":"high","by":"policy/mute","author":"ann","reason":"used-in-tests",` +
		`"verdict":{"from":"open","to":"muted"}}]}}`
	harness.Same(t, "pages", want, pages[0].Spec.Payload)
	subject := v1alpha1.WebhookEventSubject{Kind: "TriagePolicy", Name: "mute"}
	harness.Same(t, "pages", subject, pages[0].Spec.Event.Subject)
}

func TestPagesAreFullAndNeverTooLarge(t *testing.T) {
	long := entries(300)
	for i := range long {
		// JSON encodes each of these characters as six bytes.
		long[i].By, long[i].ProjectID = strings.Repeat("<", 320), strings.Repeat("p", 253)
	}
	cases := []struct {
		reason  string
		entries []PageEntry
		want    []int
	}{
		{"none", nil, nil},
		{"one", entries(1), []int{1}},
		{"exactly one page", entries(128), []int{128}},
		{"one more", entries(129), []int{128, 1}},
		{"three hundred", entries(300), []int{128, 128, 44}},
		{"long names make fewer", long[:60], []int{27, 27, 6}},
	}
	for _, c := range cases {
		pages, err := Pages(CauseOfScan(scan()), endpoint(), c.entries)
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
		}
		var sizes []int
		var all []PageEntry
		for _, page := range pages {
			sizes = append(sizes, len(Covered(page)))
			all = append(all, entriesIn(t, page)...)
			if n := len(page.Spec.Payload); n > v1alpha1.MaxWebhookPayloadLength {
				t.Errorf("%s: %d bytes", c.reason, n)
			}
		}
		harness.Same(t, c.reason, c.want, sizes)
		harness.Same(t, fmt.Sprintf("%s: what is in the pages", c.reason), c.entries, all)
	}
}

// A page's name is never used again, whatever was made before; and an interrupted run is repeated
// with the same names.
func TestTheNameOfAPageIsNeverUsedAgain(t *testing.T) {
	names := func(pages []*v1alpha1.WebhookDelivery) []string {
		var out []string
		for _, page := range pages {
			out = append(out, page.Name)
		}
		return out
	}
	namesBy := func(cause Cause, e *v1alpha1.WebhookEndpoint, list []PageEntry) []string {
		pages, err := Pages(cause, e, list)
		harness.Must(t, err)
		return names(pages)
	}
	makeNames := func(s *v1alpha1.Scan, e *v1alpha1.WebhookEndpoint, list []PageEntry) []string {
		return namesBy(CauseOfScan(s), e, list)
	}
	all := entries(300)
	first := makeNames(scan(), endpoint(), all)
	harness.Same(t, "not the same twice", first, makeNames(scan(), endpoint(), all))
	harness.Same(t, "after the first page was made", first[1:], makeNames(scan(), endpoint(), all[128:]))
	otherScan, otherEndpoint := scan(), endpoint()
	otherScan.UID, otherEndpoint.UID = "another", "another"
	rest := makeNames(otherScan, endpoint(), all)
	rest = append(rest, makeNames(scan(), otherEndpoint, all)...)
	rest = append(rest, makeNames(scan(), endpoint(), []PageEntry{entry("f-0000", 2)})...)
	rest = append(rest, namesBy(CauseOfPolicy("a"), endpoint(), all)...)
	if other := namesBy(CauseOfPolicy("b"), endpoint(), all)[0]; slices.Contains(rest, other) {
		t.Errorf("%s is the name of pages of two policies", other)
	}
	rest = append(rest, DeliveryName("s-uid", 1, "e-uid"))
	for _, name := range rest {
		if slices.Contains(first, name) {
			t.Errorf("%s is the name of two", name)
		}
	}
}

func TestEveryEntryIsInOnePageAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := entries(rapid.IntRange(0, 400).Draw(t, "entries"))
		for i := range list {
			list[i].RepositoryID = strings.Repeat("é", rapid.IntRange(1, 253).Draw(t, "length"))
		}
		pages, err := Pages(CauseOfScan(scan()), endpoint(), list)
		harness.Must(t, err)
		var got []PageEntry
		seen := map[string]bool{}
		for _, page := range pages {
			got = append(got, entriesIn(t, page)...)
			if seen[page.Name] || len(page.Spec.Payload) > v1alpha1.MaxWebhookPayloadLength {
				t.Fatalf("%s: %d bytes", page.Name, len(page.Spec.Payload))
			}
			seen[page.Name] = true
		}
		if len(list) > 0 && !cmp.Equal(list, got) {
			t.Fatal(cmp.Diff(list, got))
		}
	})
}

func TestOnlyPagesCoverAnything(t *testing.T) {
	page, err := Pages(CauseOfScan(scan()), endpoint(), entries(2))
	harness.Must(t, err)
	ping, err := NewDelivery(Ping(endpoint(), noon.Add(time.Second)), endpoint())
	harness.Must(t, err)
	broken := page[0].DeepCopy()
	broken.Spec.Payload = "{"
	for _, d := range []*v1alpha1.WebhookDelivery{ping, broken} {
		if got := Covered(d); len(got) > 0 {
			t.Errorf("%s covers %v", d.Spec.Event.Type, got)
		}
	}
	page[0].Spec.Payload = strings.ReplaceAll(page[0].Spec.Payload, "2026", "a year")
	want := []EntryKey{{"f-0000", "uid of f-0000", 1}, {"f-0001", "uid of f-0001", 1}}
	harness.Same(t, "whatever its times are", want, Covered(page[0]))
}

// The examples in the docs equal the code's output, byte for byte.
func TestExamplesInTheDocs(t *testing.T) {
	page := harness.RepositoryFile(t, "docs", "webhooks.md")
	seen := map[string]bool{}
	for _, block := range strings.Split(page, "```json\n")[1:] {
		example, _, _ := strings.Cut(block, "\n```")
		var kind struct{ Type string }
		if err := json.Unmarshal([]byte(example), &kind); err != nil {
			t.Errorf("%v: %s", err, example)
			continue
		}
		var data any = &FindingData{}
		if kind.Type == EventFindingBatch {
			data = &pageData{}
		}
		content := envelope{Data: data}
		decoder := json.NewDecoder(strings.NewReader(example))
		decoder.DisallowUnknownFields()
		harness.NoError(t, kind.Type, decoder.Decode(&content))
		harness.Same(t, kind.Type, example, string(harness.JSON(t, content)))
		seen[kind.Type] = true
	}
	for _, kind := range []string{
		"finding.created", "finding.updated", "finding.triaged", "finding.closed", "finding.reopened", EventFindingBatch,
	} {
		if !seen[kind] {
			t.Errorf("there is no example of %s", kind)
		}
	}
}
