package policies

import (
	"fmt"

	"github.com/appsec-dev/findings-operator/apiserver/console/decision"
	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
	"github.com/appsec-dev/findings-operator/client"
)

// inGit is what a policy's mode means if the policy is kept in Git.
const inGit = "If the policy is kept in Git, change its mode there: the next sync restores the mode that the manifest " +
	"names. A server-side sync that does not force conflicts fails instead."

// isCounted reports whether the counts, samples and failures in the status belong to the version that is shown or, if
// the page says so, to an earlier one in force. If counting a version that is not in force takes too long, they are
// outdated, or 0 because nothing is known. A policy that matches too many then has its last complete count, or none.
func isCounted(p client.TriagePolicy) bool {
	uncounted := condition(p, "Ready").Reason == "TooCostly"
	if condition(p, "InForce").Reason == "TooMany" {
		uncounted = p.Matched == 0
	}
	return p.Observed && (p.InForce || !uncounted)
}

// caveat is a remark about the counts of a policy; may be "".
func caveat(p client.TriagePolicy) string {
	switch {
	case condition(p, "InForce").Reason == "EarlierGeneration":
		return "The counts and examples are those of the version in force. " +
			"If counting it takes too long, they are out of date."
	case condition(p, "Ready").Reason == "TooCostly":
		return "Counting takes too long: the counts are out of date."
	}
	return ""
}

// decisionWords describe what a policy decides.
func decisionWords(p client.TriagePolicy) string {
	words := decision.Choice(string(p.Set.UserStatus))
	if reason := reasonOf(p); reason != "" {
		words += ", " + decision.ReasonWord(reason)
	}
	return words
}

// counting reports whether verdicts of the policy are still being recorded or removed. If counting takes too long, the
// own count of a policy in force is outdated, which cannot be told for an earlier version that is still in force: then
// it returns false, so the page may stand still while the last of that version's verdicts are recorded.
func counting(p client.TriagePolicy, d decidedCounts) bool {
	earlier := condition(p, "InForce").Reason == "EarlierGeneration"
	outdated := p.InForce && (earlier || condition(p, "Ready").Reason == "TooCostly")
	return p.Applied != d.by(p.Id) && !outdated
}

// figures returns the counts of a policy. Until the latest version is counted, those of its status may be of an earlier
// one.
func figures(p client.TriagePolicy, d decidedCounts) []ui.Figure {
	decides := d.figure(p.Id)
	if !isCounted(p) {
		return []ui.Figure{decides}
	}
	if !p.InForce && decides.Count == 0 {
		decides = ui.Figure{Name: "Would decide about", Count: p.WouldApply}
	}
	return []ui.Figure{
		{Name: "Match", Count: p.Matched}, decides,
		{Name: "Decided by other policies", Count: p.Shadowed},
		{Name: "Decided differently by people", Count: p.Overridden},
		{Name: "Failed", Count: p.Failed},
	}
}

// facts returns the facts about a policy.
func facts(p client.TriagePolicy) []ui.Fact {
	return []ui.Fact{
		{Name: "Author", Value: p.Author},
		{Name: "Comment", Value: p.Set.Comment},
		{Name: "Priority", Value: fmt.Sprint(p.Priority)},
		{Name: "Matches at most", Value: ui.Thousands(p.MaxFindings)},
		{Name: "Begins", At: p.ValidFrom},
		{Name: "Ends", At: p.ValidUntil},
		{Name: "Newest match detected", At: p.LastMatchedAt},
		{Name: "Made", At: &p.CreatedAt},
	}
}

// wrong describes the error in the expression, and where it is; empty if there is none.
func wrong(p client.TriagePolicy) string {
	e := p.CompileError
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("Line %d, column %d: %s", e.Line, e.Column, e.Message)
}
