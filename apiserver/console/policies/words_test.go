package policies

import (
	"slices"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/client"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/pagetest"
)

// Whoever applies a policy must have seen what it matches.
func TestAPolicyThatIsNotCountedShowsNothingOfAnEarlierVersion(t *testing.T) {
	s := shown{mayWrite: true, samples: []page.Finding{{}}}
	s.Id, s.Matched, s.Failure.FindingId, s.CompileError.Message = "p", 4321, "f-failed", "no such field"
	s.Applied = 1 // and no verdict is recorded
	for _, mode := range []client.TriagePolicyMode{client.TriagePolicyModePreview, client.TriagePolicyModeApply} {
		for _, state := range []string{"NotProcessed", "TooCostly", "Succeeded", "EarlierGeneration", "OutOfDate", "TooMany", "Stopped"} {
			s.Mode, s.Observed = mode, state != "NotProcessed"
			s.InForce = state == "EarlierGeneration" || state == "OutOfDate"
			s.Conditions = []client.ResourceCondition{{Type: "InForce", Reason: state}, {Type: "Ready", Reason: state}}
			switch state {
			case "OutOfDate":
				s.Conditions[1].Reason = "TooCostly"
			case "Stopped": // for the last complete count
				s.Conditions[0].Reason, s.Conditions[1].Reason = "TooMany", "TooCostly"
			}
			if s.Matched = 4321; state == "TooMany" {
				s.Matched = 0 // the count found too many, and was given up
			}
			counted := s.Observed && state != "TooCostly" && state != "TooMany"
			text := pagetest.Text(t, policyPage(s))
			all := client.TriagePolicyList{Items: []client.TriagePolicy{s.TriagePolicy}}
			listed := pagetest.Text(t, listPage(listing{TriagePolicyList: all}))
			follows := []string{"NotProcessed", "TooCostly", "Succeeded", "TooMany", "Stopped"}
			harness.Same(t, state+": the page reads itself again", slices.Contains(follows, state), strings.Contains(text, "data-follow"))
			applies := mode == client.TriagePolicyModePreview && counted
			harness.Same(t, "the page offers to apply", applies, strings.Contains(text, `value="apply"`))
			stops := mode == client.TriagePolicyModeApply
			harness.Same(t, "the page offers to stop", stops, strings.Contains(text, `value="preview"`))
			harness.Same(t, "the page says what a button does to a policy in Git", applies || stops, strings.Contains(text, inGit))
			for _, of := range []string{"4,321", "f-failed", `id="samples"`} {
				harness.Same(t, state+": the page shows "+of, counted, strings.Contains(text, of))
			}
			harness.Same(t, "the page shows the error", s.Observed, strings.Contains(text, "no such field"))
			harness.Same(t, "the list shows the count", counted, strings.Contains(listed, "4,321"))
			harness.Same(t, state+": of the version in force", state == "EarlierGeneration", strings.Contains(text, "of the version in force"))
			outdated := state == "OutOfDate" || state == "Stopped"
			harness.Same(t, state+": the counts are out of date", outdated, strings.Contains(text, "the counts are out of date"))
		}
	}
}
