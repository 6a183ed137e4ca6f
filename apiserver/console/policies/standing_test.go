package policies

import (
	"strings"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
	"github.com/appsec-dev/findings-operator/client"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestAPolicyThatWasStoppedIsToldFromAPreview(t *testing.T) {
	made := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		reason, want      string
		inForce, compiled client.ResourceCondition
	}{
		{"never in force", "preview", client.ResourceCondition{Reason: "Preview", ChangedAt: made},
			client.ResourceCondition{Status: "True", ChangedAt: made}},
		{"in force before", "stopped", client.ResourceCondition{Reason: "Preview", ChangedAt: made.Add(time.Second)},
			client.ResourceCondition{Status: "True", ChangedAt: made}},
		{"mended since", "preview", client.ResourceCondition{Reason: "Preview", ChangedAt: made},
			client.ResourceCondition{Status: "True", ChangedAt: made.Add(time.Second)}},
		{"nobody says since when it compiles", "preview", client.ResourceCondition{Reason: "Preview", ChangedAt: made},
			client.ResourceCondition{}},
		{"ended, and not stopped", "expired", client.ResourceCondition{Reason: "Expired", ChangedAt: made.Add(time.Second)},
			client.ResourceCondition{Status: "True", ChangedAt: made}},
	} {
		c.inForce.Type, c.compiled.Type = "InForce", "Compiled"
		policy := client.TriagePolicy{Observed: true, Failed: 2, Conditions: []client.ResourceCondition{c.inForce, c.compiled}}
		got := standingOf(policy)
		harness.Same(t, c.reason, c.want, got.word)
		if before, failures, _ := strings.Cut(got.next, " The expression "); before == "" || !strings.HasPrefix(failures, "cannot be evaluated") {
			t.Errorf("%s: it says %q", c.reason, got.next)
		}
	}
}

func TestTheEarlierVersionOfAPolicySaysWhatItDecides(t *testing.T) {
	for message, want := range map[string]string{
		`The generation in status.inForce remains in force and decides "muted, duplicate, priority 10, without an end". More match.`: "The " +
			"earlier version decides (muted, duplicate, priority 10, without an end), because the latest one ",
		"The generation in status.inForce remains in force. More match.": "The earlier version decides, because the latest one ",
	} {
		p := client.TriagePolicy{Observed: true, Conditions: []client.ResourceCondition{
			{Type: "Ready", Reason: "TooMany"}, {Type: "InForce", Reason: "EarlierGeneration", Message: message},
		}}
		if got := standingOf(p).next; !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q", message, got)
		}
	}
}

func TestAPolicyThatCannotDecideSaysWhy(t *testing.T) {
	for _, c := range []struct {
		inForce, ready  string
		matched, failed int32
		want            string
		message         string
	}{
		{"EarlierGeneration", "NotCompiled", 0, 0, "does not compile. See the error", ""},
		{"EarlierGeneration", "TooMany", 0, 0, "raise the limit", ""},
		{"EarlierGeneration", "TooCostly", 0, 0, "short comparison", ""},
		{"NeverMatched", "Succeeded", 0, 0, "findings of later scans", ""},
		{"NeverMatched", "Succeeded", 0, 1, "cannot be evaluated for 1 finding: see", ""},
		{"InForce", "Succeeded", 2, 0, "There is nothing to do", ""},
		{"InForce", "Succeeded", 2, 2, "It is in force. The expression cannot be evaluated for 2 findings: see", ""},
		{"Shadowed", "Succeeded", 2, 2, "or delete it. The expression cannot be evaluated for 2 findings: see", ""},
		{"Preview", "Succeeded", 2, 2, "then apply it. The expression cannot be evaluated for 2 findings: see", ""},
		{"Preview", "Succeeded", 3, 2, "before you apply it. The expression cannot be evaluated for 2 findings: see", ""},
		{"Preview", "Succeeded", 2, 0, "then apply it", ""},
		{"Preview", "Succeeded", 3, 0, "would be stopped at once", ""},
		{"Preview", "TooCostly", 3, 0, "so it cannot be applied", ""},
		{"Preview", "TooCostly", 2, 2, "so it cannot be applied", ""},
		{"NotYetValid", "Succeeded", 2, 0, "There is nothing to do", ""},
		{"NotYetValid", "Succeeded", 3, 0, "It begins later, but it would be stopped at once", ""},
		{"NotYetValid", "TooCostly", 2, 0, "It begins later, but it would not come into force", ""},
		{"Preview", "Succeeded", 3, 0, "until one of them is deleted or ends. Delete one", "The mode is Preview. A hundred other policies are in force in"},
		{"NotYetValid", "Succeeded", 2, 0, "It begins later, but it would decide nothing", "In the future. A hundred other policies are in force in"},
		{"TooMany", "TooMany", 3, 0, "It matches more findings than it may", ""},
		{"TooMany", "TooMany", 2, 0, "once no more than nine tenths of the limit match", ""},
		{"TooMany", "TooMany", 0, 0, "so a higher limit alone may not help", ""},
		{"TooMany", "TooCostly", 0, 0, "so a higher limit alone may not help", ""},
		{"TooMany", "TooCostly", 2, 0, "so a higher limit alone may not help", ""},
		{"TooMany", "TooCostly", 3, 0, "so a higher limit alone may not help", ""},
	} {
		p := client.TriagePolicy{Observed: true, Matched: c.matched, MaxFindings: 2, Failed: c.failed, Conditions: []client.ResourceCondition{
			{Type: "Ready", Reason: c.ready}, {Type: "InForce", Reason: c.inForce, Message: c.message},
		}}
		if got := standingOf(p).next; !strings.Contains(got, c.want) {
			t.Errorf("%s, %s, %d failed: %q", c.inForce, c.ready, c.failed, got)
		} else if strings.Contains(got, "cannot be evaluated") != (c.failed > 0 && c.ready != "TooCostly") {
			t.Errorf("%s, %s, %d failed: of the failures it says %q", c.inForce, c.ready, c.failed, got)
		}
		if good := standingOf(p).tone == ui.Good; good != (c.inForce == "InForce" && c.failed == 0) {
			t.Errorf("%s, %d failed: shown as good: %v", c.inForce, c.failed, good)
		}
	}
}

func TestEachReasonSaysWhatToDo(t *testing.T) {
	for reason, s := range standings {
		p := client.TriagePolicy{Observed: true, Conditions: []client.ResourceCondition{{Type: "Ready"}, {Type: "InForce", Reason: reason}}}
		if reason == "TooMany" {
			p.Matched = 1 // more than none
		}
		if got := standingOf(p); got != s || s.word == "" || s.next == "" {
			t.Errorf("%s: %+v", reason, got)
		}
		p.Observed = false
		if got := standingOf(p); got == s {
			t.Errorf("%s is shown of an earlier state", reason)
		}
	}
}
