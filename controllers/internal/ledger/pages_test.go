package ledger

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestWhatCausesATransition(t *testing.T) {
	const (
		created, triaged = v1alpha1.TransitionCreated, v1alpha1.TransitionTriaged
		judged, expired  = v1alpha1.TransitionJudged, v1alpha1.TransitionExpired
	)
	transition := func(kind v1alpha1.TransitionType, scan, by string) v1alpha1.Transition {
		return v1alpha1.Transition{Type: kind, Scan: scan, By: by}
	}
	for _, c := range []struct {
		reason     string
		transition v1alpha1.Transition
		want       string
	}{
		{"a scan reports it", transition(created, "s-1", "scanner/gosec"), "Scan/s-1"},
		{"somebody made it by hand", transition(created, "", "scanner/gosec"), ""},
		{"a person decides after a scan", transition(triaged, "s-1", "ann"), ""},
		{"an operation decides", transition(triaged, "", "operation/mute"), "TriageOperation/mute"},
		{"a policy decides", transition(judged, "", "policy/mute"), "TriagePolicy/mute"},
		{"a policy decides about what a scan brought", transition(judged, "s-1", "policy/mute"), "Scan/s-1"},
		{"somebody decided in a pull request", transition(judged, "", "review-issue/i-1"), ""},
		{"the decision of a person of such a name ends", transition(expired, "", "policy/mute"), ""},
	} {
		got, is := causeOf(c.transition)
		if is != (c.want != "") || is && got.String() != c.want {
			t.Errorf("%s: got %s, %t, want %q", c.reason, got, is, c.want)
		}
	}
}

// What waits for a finding that a finalizer holds would wait for as long.
func TestWhoseChangesAreStillToBeObserved(t *testing.T) {
	finding := builder.Finding("f").Mutate(func(f *v1alpha1.Finding) {
		f.Generation, f.Status.ObservedGeneration = 3, 2
		f.Spec.Scan = &v1alpha1.FindingScan{ScanID: "s-2"}
		f.Spec.Closed = &v1alpha1.FindingClosure{ScanID: "s-3"}
		f.Spec.Triage.By = "operation/mute"
	}).Build()
	observed, deleted := finding.DeepCopy(), finding.DeepCopy()
	observed.Status.ObservedGeneration = 3
	deleted.DeletionTimestamp = new(metav1.Now())
	for _, c := range []struct {
		reason            string
		finding           *v1alpha1.Finding
		scans, operations []string
	}{
		{"it has changed", finding, []string{"s-2", "s-3"}, []string{"mute"}},
		{"its status has followed", observed, nil, nil},
		{"it is being deleted", deleted, nil, nil},
	} {
		harness.Same(t, c.reason, c.scans, scansToCome(c.finding))
		harness.Same(t, c.reason, c.operations, operationsToCome(c.finding))
	}
}

func TestHowLongChangesWaitForMore(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		reason string
		ages   []time.Duration
		want   bool
	}{
		{"none", nil, false},
		{"one of just now", []time.Duration{time.Second}, true},
		{"one of before", []time.Duration{PageDelay}, false},
		{"an older one with one of just now", []time.Duration{50 * time.Second, time.Second}, true},
		{"the same, the other way about", []time.Duration{time.Second, 50 * time.Second}, true},
		{"one that has waited long enough", []time.Duration{time.Second, quietPatience, time.Second}, false},
		{"by a clock that is ahead", []time.Duration{-time.Hour}, false},
		{"by a clock that is ahead by less than a second or two", []time.Duration{-time.Second}, true},
	} {
		var entries []webhooks.PageEntry
		for _, age := range c.ages {
			entries = append(entries, webhooks.PageEntry{Timestamp: now.Add(-age).Format(time.RFC3339)})
		}
		if got, err := changing(entries, now); got != c.want || err != nil {
			t.Errorf("%s: %t, %v", c.reason, got, err)
		}
	}
}
