package plugin_test

import (
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func rateHigh(f *v1alpha1.Finding) { f.Spec.Details.Severity = v1alpha1.LevelHigh }

func TestAStaleDecisionIsListedAndRepeated(t *testing.T) {
	o := newOrganization(t, "stale").withMany(3)
	triager := o.member(testenv.Triager)
	triager.findings("triage", "f-0000", "f-0001", "--mute").Wants("2 muted")
	triager.findings("list", "--stale").Wants("no findings match")
	o.changed("f-0001", rateHigh)
	o.changed("f-0002", rateHigh)

	triager.findings("list", "--stale", "--no-headers").Wants("f-0001", "muted", "SeverityChanged")
	triager.findings("list", "--stale", "-o", "name").Wants("finding.appsec.dev/f-0001\n")
	triager.findings("history", "f-0001").Wants("severity low, now high")

	before := o.versions()
	triager.findings("triage", "f-0001", "--comment", "looked at").Wants("1 commented")
	triager.findings("list", "--stale", "-o", "name").Wants("f-0001")
	triager.findings("triage", "--user-status", "muted", "--mute", "--yes").Wants("muted, stale", "muted again", "1 muted, 1 unchanged, 0 failed")
	triager.findings("list", "--stale").Wants("no findings match")
	got := o.finding("f-0001").Spec.Triage
	harness.Same(t, "triage", v1alpha1.FindingTriage{UserStatus: "muted", Comments: "looked at", By: got.By, Basis: "rated=high"}, got)
	triager.findings("triage", "f-0001", "--mute").Wants("0 muted, 1 unchanged")
	harness.Same(t, "a decision about the same facts was written again", before["f-0000"], o.versions()["f-0000"])
}

// The person has decided about the facts in the preview: if a scan changes them afterwards, the decision is
// stale.
func TestADecisionAboutWhatAScanChangesMeanwhileIsStale(t *testing.T) {
	o := newOrganization(t, "stale-meantime").withMany(2)
	g := beforeCommit(func() { o.changed("f-0001", rateHigh) })
	triager := g.through(o, o.token(testenv.Triager))
	triager.findings("triage", "--user-status", "open", "--mute", "--yes").Wants("2 muted")
	triager.findings("list", "--stale", "-o", "name").Wants("finding.appsec.dev/f-0001\n")
	triager.findings("triage", "--stale", "--mute", "--yes").Wants("muted again", "1 muted")
	if f := o.finding("f-0001"); findingstate.Stale(f) {
		t.Errorf("stale: %s", findingstate.WhyStale(f))
	}
}

func TestWhatTheSourceSuppressesIsListed(t *testing.T) {
	o := newOrganization(t, "suppressed")
	o.has(builder.Finding("f-1").Suppressed("inSource", "the name is a constant"), builder.Finding("f-2"))
	viewer := o.member(testenv.Viewer)
	viewer.findings("list", "--suppressed", "-o", "wide", "--no-headers").Wants("f-1", "open_muted", "inSource", "the name is a constant")
	viewer.findings("list", "--suppressed", "-o", "name").Wants("finding.appsec.dev/f-1\n")
	viewer.findings("list", "--state", "open", "-o", "name").Wants("finding.appsec.dev/f-2\n")
	viewer.findings("history", "f-1").Wants("its source suppresses it (inSource): the name is a constant")
}
