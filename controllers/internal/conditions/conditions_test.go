package conditions_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestAConditionKeepsItsTimeWhileItsStatusStays(t *testing.T) {
	start := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	waiting := conditions.Verdict{Reason: v1alpha1.ReasonProjectNotFound, Message: "There is no Project."}
	stalled := conditions.Verdict{Stalled: true, Reason: v1alpha1.ReasonAbandoned, Message: "Scan again."}
	type shown struct {
		Status, Reason string
		Since          time.Duration
	}
	steps := []struct {
		reason  string
		verdict conditions.Verdict
		want    map[string]shown
	}{
		{"a first verdict", waiting, map[string]shown{"Ready": {"False", v1alpha1.ReasonProjectNotFound, 0}}},
		{"the same verdict keeps its time", waiting, map[string]shown{"Ready": {"False", v1alpha1.ReasonProjectNotFound, 0}}},
		{"a stall adds its own condition; Ready was False before", stalled, map[string]shown{
			"Ready":   {"False", v1alpha1.ReasonAbandoned, 0},
			"Stalled": {"True", v1alpha1.ReasonAbandoned, 2 * time.Minute},
		}},
		{"when all is well Stalled is not there at all", conditions.Ready("Done."), map[string]shown{
			"Ready": {"True", v1alpha1.ReasonReconciled, 3 * time.Minute},
		}},
	}
	var list []v1alpha1.Condition
	for i, step := range steps {
		conditions.Set(&list, step.verdict, int64(i+1), start.Add(time.Duration(i)*time.Minute))
		got := map[string]shown{}
		for _, c := range list {
			got[c.Type] = shown{string(c.Status), c.Reason, c.LastTransitionTime.Sub(start)}
			harness.Same(t, step.reason+": generation of "+c.Type, int64(i+1), c.ObservedGeneration)
		}
		harness.Same(t, step.reason, step.want, got)
	}
}

// The API server refuses a condition whose message is too long, and the status with it.
func TestShortenedIsBoundedAsItIsQuoted(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{strings.Repeat("ä", 256), strings.Repeat("ä", 256)},
		{strings.Repeat("ä", 257), strings.Repeat("ä", 255) + "…"},
		{strings.Repeat(`\`, 128), strings.Repeat(`\`, 128)},
		{strings.Repeat(`\`, 129), strings.Repeat(`\`, 127) + "…"},
		{strings.Repeat("\u200b", 600), strings.Repeat("\u200b", 42) + "…"},
		{strings.Repeat("\xff", 600), strings.Repeat("\xff", 63) + "…"},
		{"a\nb", "a\nb"},
	} {
		harness.Same(t, fmt.Sprintf("%.10q", c.text), c.want, conditions.Shortened(c.text))
	}
}
