package render_test

import (
	"encoding/json"
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/console/decision"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/test/corpus"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// The console digests facts by rules of its own, because it sees only what the REST API shows. It refuses a decision
// exactly if a fact has changed that the decision is based on. Two facts reach it in another form: the evidence as the
// code, and the doubt as decision_stale.
func TestTheConsoleSeesWhatADecisionIsBasedOn(t *testing.T) {
	for _, version := range []string{"4.17.15", ""} {
		finding := wholeFinding()
		finding.Spec.Package.Version, finding.Spec.Evidence, finding.Spec.Doubt = version, "", nil
		finding.Spec.Triage = v1alpha1.FindingTriage{}
		before, seen := finding.DeepCopy(), seenOf(t, finding)
		spec := harness.Decoded[any](t, harness.JSON(t, finding.Spec))
		based := 0
		corpus.ChangeEach(spec, "spec", func(path string) {
			encoded := harness.JSON(t, spec)
			finding.Spec = v1alpha1.FindingSpec{}
			if json.Unmarshal(encoded, &finding.Spec) != nil {
				return // a text instead of a time
			}
			changed := findingstate.Basis(&finding.Spec) != findingstate.Basis(&before.Spec)
			if changed {
				based++
			}
			if told := seenOf(t, finding) != seen; told != changed {
				t.Errorf("with the version %q: another %s changes what a decision is based on: %t; the console refuses: %t: "+
					"see Facts in apiserver/console/decision/seen.go", version, path, changed, told)
			}
		})
		if based < 4 {
			t.Errorf("with the version %q: %d changes of facts matter; does the test still change any?", version, based)
		}
	}
}

// seenOf returns what the console makes of the finding.
func seenOf(t *testing.T, finding *v1alpha1.Finding) string {
	t.Helper()
	_, _, full, err := renderFinding("acme", finding, at(5).Time, nil, nil)
	harness.Must(t, err)
	var shown struct {
		Details struct {
			Severity, Code, Title, Description string
			Location                           struct {
				FilePath   string `json:"file_path"`
				LineNumber int    `json:"line_number"`
			}
		}
		Facts struct {
			Score        float32
			ToolSeverity string `json:"tool_severity"`
			Package      struct{ Version string }
		}
	}
	harness.Must(t, json.Unmarshal(full, &shown))
	return decision.Standing{Facts: decision.Facts{
		Severity: shown.Details.Severity, ToolSeverity: shown.Facts.ToolSeverity, Score: shown.Facts.Score,
		Version: shown.Facts.Package.Version, Code: shown.Details.Code, Title: shown.Details.Title,
		Description: shown.Details.Description, Path: shown.Details.Location.FilePath, Line: shown.Details.Location.LineNumber,
	}}.Seen()
}
