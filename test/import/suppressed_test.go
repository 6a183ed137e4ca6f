package import_test

import (
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestSuppressedInTheSourceIsNotFixed(t *testing.T) {
	p := newProject(t)
	r := builder.Result{Rule: "R1", Path: "a.go", Message: "suppressed", Line: 1}
	never := builder.Result{Rule: "R2", Path: "b.go", Message: "never seen", Line: 2, Suppressed: "an example"}
	p.imports(document(r), commitA)
	p.triage(p.titled("suppressed").Name, `{"spec":{"triage":{"userStatus":"active","comments":"real"}}}`)
	decision := p.titled("suppressed").Spec.Triage

	r.Suppressed = "the table name is a constant"
	for i := range 2 {
		s := p.imports(document(r, never), commitB)
		if s.Closed != 0 || s.Updated+s.Unchanged != 1 || (i == 1) != (s.Unchanged == 1) || s.Suppressed != 1 ||
			s.SkippedBecause["suppressed in the source"] != 1 {
			t.Errorf("import %d with the suppression: %+v", i+1, *s)
		}
	}
	finding := p.titled("suppressed")
	want := &v1alpha1.FindingSuppression{Kind: v1alpha1.SuppressionInSource, Justification: r.Suppressed}
	harness.Same(t, "suppression", want, finding.Spec.Suppression)
	harness.Same(t, "state", v1alpha1.FindingStateOpenMuted, findingstate.State(&finding))
	harness.Same(t, "the person's decision", decision, finding.Spec.Triage)
	harness.Same(t, "findings without the one that was never seen", 1, len(p.findings()))

	p.imports(document(), commitB)
	p.did("what was closed and is back, suppressed", p.imports(document(r), commitB), counts{Reopened: 1})
	r.Suppressed = ""
	p.did("without the suppression", p.imports(document(r), commitB), counts{Updated: 1})
	finding = p.titled("suppressed")
	if state := findingstate.State(&finding); state != v1alpha1.FindingStateOpen || finding.Spec.Suppression != nil {
		t.Errorf("the state is %s, the suppression %+v", state, finding.Spec.Suppression)
	}
	harness.Same(t, "the person's decision", decision, finding.Spec.Triage)
}

func TestAnImportMakesADecisionStaleAndKeepsIt(t *testing.T) {
	p := newProject(t)
	changes := map[string]struct {
		apply func(*builder.Result)
		want  string
	}{
		"severity": {func(r *builder.Result) { r.Level = "note" }, "severity high, now low"},
		"code":     {func(r *builder.Result) { r.Snippet = "query(b)" }, "other code at the place"},
		"line":     {func(r *builder.Result) { r.Line = 90 }, ""},
		"words":    {func(r *builder.Result) { r.Message = "reworded" }, ""},
		"nothing":  {func(*builder.Result) {}, ""},
	}
	const undecided = "undecided"
	var before, after []builder.Result
	for name, change := range changes { // each in a file of its own, beside one that nobody decides about
		for _, r := range []builder.Result{
			{Rule: "R1", Path: name + ".go", Message: name, Line: 1, Snippet: "query(a)"},
			{Rule: "R2", Path: name + ".go", Message: undecided, Line: 2, Snippet: "exec(a)"},
		} {
			before = append(before, r)
			change.apply(&r)
			if r.Rule == "R2" {
				r.Message = undecided
			}
			after = append(after, r)
		}
	}
	p.imports(document(before...), commitA)
	decided := map[string]string{} // the names of the findings
	for name, f := range p.findings() {
		if title := f.Spec.Details.Title; title != undecided {
			decided[title] = name
			p.triage(name, `{"spec":{"triage":{"userStatus":"muted"}}}`)
		}
	}
	p.imports(document(after...), commitB)
	findings := p.findings()
	for name, change := range changes {
		f := findings[decided[name]]
		if f.Spec.Triage.UserStatus != v1alpha1.UserStatusMuted || f.Spec.Closed != nil {
			t.Fatalf("%s: the decision is %+v, closed %v", name, f.Spec.Triage, f.Spec.Closed)
		}
		if got := findingstate.WhyStale(&f); name == "code" && f.Spec.Doubt != nil && got != "" {
			t.Logf("in doubt as well: %s", got)
		} else if got != change.want {
			t.Errorf("%s: stale because of %q, want %q", name, got, change.want)
		}
		p.triage(f.Name, `{"spec":{"triage":{"basis":"now"}}}`)
	}
	p.imports(document(after...), commitB)
	for name, f := range p.findings() {
		if findingstate.Stale(&f) {
			t.Errorf("nobody has decided about %s (%s), or the decision was repeated, and it is stale: %s",
				name, f.Spec.Details.Title, findingstate.WhyStale(&f))
		}
	}
	for _, f := range findings {
		if f.Spec.Details.Title == undecided && findingstate.Stale(&f) {
			t.Error("nobody has decided about the other one")
		}
	}
}
