package console_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/console/decision"
	"github.com/appsec-dev/findings-operator/apiserver/console/deliveries"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/findingtrend"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// The console only knows the REST API, which has no critical severity, so it decides by itself what is critical.
func TestTheConsoleAndTheServiceAgreeOnWhatIsCritical(t *testing.T) {
	for _, severity := range []string{"high", "medium", "low", ""} {
		for _, score := range []string{"", "0.0", "8.9", "9.0", "9.8", "10.0"} {
			for _, word := range []string{"", "CRITICAL", "critical", "high"} {
				f := v1alpha1.Finding{Spec: v1alpha1.FindingSpec{Details: v1alpha1.FindingDetails{
					Severity: v1alpha1.Level(severity), Score: score, ToolSeverity: word,
				}}}
				number, _ := strconv.ParseFloat(score, 32) // none is 0 in the console
				facts := decision.Facts{Severity: severity, ToolSeverity: word, Score: float32(number)}
				got := decision.Standing{Facts: facts}.Seen() == decision.Standing{Facts: decision.Facts{Severity: "high", Score: 10}}.Seen()
				want := strings.Contains(findingstate.Basis(&f.Spec), "=critical")
				harness.Same(t, "critical in the console, as in the basis of a decision, with "+severity+" "+score+" "+word, want, got)
				trend := findingtrend.Row("2026-03-01", []v1alpha1.Finding{f}, found)
				if counted := trend.Open.Critical == 1; word == "" && got != counted {
					t.Errorf("%+v: critical in the console: %v, in trends: %v", facts, got, counted)
				}
			}
		}
	}
}

func TestTheConsoleAndTheServiceAgreeOnTheNumberOfAttempts(t *testing.T) {
	harness.Same(t, "attempts of a round", webhooks.AttemptsPerRound, deliveries.AttemptsPerRound)
}
