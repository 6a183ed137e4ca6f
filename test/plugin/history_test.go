package plugin_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var historyStart = time.Date(2026, 3, 1, 8, 30, 0, 0, time.UTC)

// decided returns the transitions of a finding that a scanner reported and people decided about.
func decided() []v1alpha1.Transition {
	at := func(hours int) time.Time { return historyStart.Add(time.Duration(hours) * time.Hour) }
	return []v1alpha1.Transition{
		{Seq: 1, Type: v1alpha1.TransitionCreated, At: v1alpha1.NewTime(at(0)), To: "open", By: "gosec", Scan: "scan-1"},
		{Seq: 2, Type: v1alpha1.TransitionTriaged, At: v1alpha1.NewTime(at(1)), From: "open", To: "muted", By: "rosa@example.com", Comment: "Only tests\x1b[2J"},
		{Seq: 3, Type: v1alpha1.TransitionTriaged, At: v1alpha1.NewTime(at(2)), From: "muted", To: "active", By: "apikey/ci"},
	}
}

func TestHistoryTellsWhoDecidedWhat(t *testing.T) {
	o := newOrganization(t, "history")
	o.has(builder.Finding("f-1"), builder.Finding("f-fresh"), builder.Finding("f-muted").Triage(v1alpha1.UserStatusMuted, ""))
	o.observed("f-1", func(s *v1alpha1.FindingStatus) { s.Transitions, s.ObservedGeneration = decided(), 1 })
	viewer := o.member(testenv.Viewer)

	a := viewer.findings("history", "f-1").Wants("WHEN", "WHO", "2026-03-01T09:30:00Z", "rosa@example.com", "open", "muted", `Only tests\x1b[2J`, "apikey/ci")
	if strings.Contains(a.Stdout, "gosec") || strings.Contains(a.Stdout, "\x1b") || a.Stderr != "" {
		t.Errorf("it shows a scanner's change, an escape sequence, or a needless note:\n%s%s", a.Stdout, a.Stderr)
	}
	viewer.findings("history", "f-1", "--all").Wants("SEQ", "created", "gosec", "scan-1", "triaged")
	env.Create(o, builder.Scan("scan-1", historyStart).In(o.namespace).Mutate(func(s *v1alpha1.Scan) {
		s.Spec.ImportedBy = "apikey/nightly"
	}).Build())
	viewer.findings("history", "f-1", "--all").Wants("IMPORTED BY", "scan-1", "apikey/nightly")
	var transitions []v1alpha1.Transition
	a = viewer.findings("history", "f-1", "-o", "json").Wants()
	if err := json.Unmarshal([]byte(a.Stdout), &transitions); err != nil || len(transitions) != 2 || transitions[1].By != "apikey/ci" {
		t.Errorf("-o json: %v:\n%s", err, a.Stdout)
	}
	viewer.findings("history", "f-muted").Wants("yet to be recorded")
	viewer.findings("history", "f-fresh").Wants("nobody has decided anything")
	viewer.findings("history", "f-fresh", "--all").Wants("created", "scanner/")
	viewer.findings("history", "f-2").Fails("Did you mean f-1?")
	viewer.findings("history").Fails("give the name of one finding")
}

func TestHistoryNamesThePolicyThatDecides(t *testing.T) {
	o := newOrganization(t, "history-policy")
	o.has(builder.Finding("f-1"))
	o.observed("f-1", func(s *v1alpha1.FindingStatus) {
		s.Transitions, s.ObservedGeneration = decided()[:1], 1
		s.Verdict = &v1alpha1.FindingVerdict{Policy: "secrets-count", UserStatus: "active", Since: v1alpha1.NewTime(historyStart)}
	})
	o.member(testenv.Viewer).findings("history", "f-1").
		Wants("no person's decision is in force; the policy secrets-count set the finding to active at 2026-03-01T08:30:00Z")
}

func TestHistorySaysWhatItNoLongerHas(t *testing.T) {
	o := newOrganization(t, "history-old")
	o.has(builder.Finding("f-1"))
	o.observed("f-1", func(s *v1alpha1.FindingStatus) { s.Transitions, s.ObservedGeneration = decided()[1:], 1 })
	a := o.member(testenv.Viewer).findings("history", "f-1").Wants("changes 1 to 1 are older", "audit log has the decisions among them, and their ends", "the others are not kept")
	gomega.NewWithT(t).Expect(strings.Count(a.Stdout, "\n")).To(gomega.Equal(3), a.Stdout)
}
