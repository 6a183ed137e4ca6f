package importer

import (
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestJustifications(t *testing.T) {
	long := strings.Repeat("é", maxJustification)
	code, secret := v1alpha1.CategoryCode, v1alpha1.CategorySecret
	for name, tc := range map[string]struct {
		reason    string
		category  v1alpha1.FindingCategory
		why, want string
	}{
		"plain":     {"as the source gives it", code, "a test", "a test"},
		"just fits": {"in characters, not in bytes", code, long, long},
		"too long":  {"cut with a mark", code, long + "é", strings.Repeat("é", maxJustification-len(cutMark)) + cutMark},
		"control":   {"what the API server refuses", code, "a\x00b", "a\uFFFDb"},
		"secret":    {"it may quote the secret", secret, `"hunter2hunter2" is a sample`, `"[not kept]" is a sample`},
	} {
		t.Run(name, func(t *testing.T) {
			r := &sarif.Result{
				Rule: &sarif.Rule{}, Suppression: &sarif.Suppression{InSource: true, Justification: tc.why},
				Location: sarif.Location{Snippet: `password = "hunter2hunter2"`},
			}
			want := &v1alpha1.FindingSuppression{Kind: v1alpha1.SuppressionInSource, Justification: tc.want}
			harness.Same(t, tc.reason, want, suppression(r, tc.category))
		})
	}
}

// found returns a result of a rule at a line, with the code there.
func found(line int32, code string, suppressed bool) sarif.Result {
	r := sarif.Result{
		RuleID: "R", Rule: &sarif.Rule{}, Severity: v1alpha1.LevelLow, Message: "m",
		Location: sarif.Location{Path: "a.go", Line: line, Snippet: code},
	}
	if suppressed {
		r.Suppression = &sarif.Suppression{InSource: true}
	}
	return r
}

// suppressing returns a batch, which holds suppressed results apart from the others.
func suppressing(results ...sarif.Result) *Batch {
	b := &Batch{Tool: "lint", Category: v1alpha1.CategoryCode}
	for _, r := range results {
		r.Index = len(b.Results) + len(b.Suppressed)
		if r.Suppression == nil {
			b.Results = append(b.Results, r)
		} else {
			b.Suppressed = append(b.Suppressed, r)
		}
	}
	return b
}

func TestSuppressedResults(t *testing.T) {
	for name, tc := range map[string]struct {
		reason        string
		first, second *Batch
		// open, suppressed and closed findings afterwards; unseen results are skipped.
		open, suppressed, closed, unseen int
	}{
		"of a finding":                       {"it is not fixed", suppressing(found(5, "x", false)), suppressing(found(5, "x", true)), 0, 1, 0, 0},
		"of a finding that moved meanwhile":  {"recognised as any other", suppressing(found(5, "x", false)), suppressing(found(90, "x", true)), 0, 1, 0, 0},
		"of no finding":                      {"nobody asked for it", suppressing(), suppressing(found(5, "x", true)), 0, 0, 0, 1},
		"twice, and again":                   {"it stays so", suppressing(found(5, "x", true)), suppressing(found(5, "x", true)), 0, 0, 0, 1},
		"and another goes":                   {"that one is fixed", suppressing(found(5, "x", false), found(9, "y", false)), suppressing(found(5, "x", true)), 0, 1, 1, 0},
		"and another like it comes":          {"the newcomer has a finding of its own", suppressing(found(5, "x", false)), suppressing(found(5, "x", true), found(9, "x", false)), 1, 1, 0, 0},
		"one of two alike":                   {"the lines tell which", suppressing(found(5, "x", false), found(9, "x", false)), suppressing(found(8, "x", true), found(12, "x", false)), 1, 1, 0, 0},
		"beside one, and all move":           {"those without a finding stay so", suppressing(found(10, "x", true), found(20, "x", true), found(30, "x", false)), suppressing(found(16, "x", true), found(26, "x", true), found(36, "x", false)), 1, 0, 0, 2},
		"one comes to the line of a finding": {"that one has moved, too", suppressing(found(64, "", true), found(66, "", true), found(68, "", false)), suppressing(found(66, "", true), found(68, "", true), found(70, "", false)), 1, 0, 0, 2},
		"and the same once more without":     {"the same in everything: what is not suppressed counts", suppressing(found(5, "x", false)), suppressing(found(5, "x", true), found(5, "x", false)), 1, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory(t)
			m.scan(tc.first, func(int, string) {})
			m.scan(tc.second, func(int, string) {})
			if again := m.scan(tc.second, func(int, string) {}); len(again) > 0 {
				t.Errorf("the same scan once more changes %+v", again)
			}
			var open, suppressed, closed int
			for _, f := range m.findings {
				switch {
				case f.Spec.Closed != nil:
					closed++
				case f.Spec.Suppression != nil:
					suppressed++
				default:
					open++
				}
			}
			c := testContext(v1alpha1.CategoryCode)
			results, _, _ := report(t.Context(), c, tc.second)
			unseen := len(diff(c, tc.second, results, &known{candidates: candidates{findings: m.there()}}).unseen)
			want := [4]int{tc.open, tc.suppressed, tc.closed, tc.unseen}
			harness.Same(t, "open, suppressed, closed, unseen: "+tc.reason, want, [4]int{open, suppressed, closed, unseen})
		})
	}
}

// A dry run reports for each finding how its suppression changed.
func TestADryRunSaysWhatIsSuppressed(t *testing.T) {
	why := func(text string) sarif.Result {
		r := found(5, "x", true)
		r.Suppression.Justification = text
		return r
	}
	m := newMemory(t)
	m.scan(suppressing(found(5, "x", false)), func(int, string) {})
	for _, step := range []struct {
		result sarif.Result
		want   string
	}{
		{found(5, "x", true), "suppressed in the source"},
		{why("a test"), "suppressed in the source: a test"},
		{found(9, "x", false), "recognised by code: line 5 before; no longer suppressed in the source"},
	} {
		changes := m.scan(suppressing(step.result), func(int, string) {})
		if len(changes) != 1 || changes[0].action != ActionUpdate || changes[0].because != step.want {
			t.Errorf("got %+v, want one update because of %q", changes, step.want)
		}
	}
}
