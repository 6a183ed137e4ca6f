package policies

import (
	"fmt"
	"strings"

	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
	"github.com/appsec-dev/findings-operator/client"
)

// standing is the status of a policy: in a word and a colour, and what to do about it.
type standing struct {
	word string
	tone ui.Tone
	next string
}

// standings maps the reasons of the condition InForce.
var standings = map[string]standing{
	"InForce":           {"in force", ui.Good, "It is in force." + nothingToDo},
	"EarlierGeneration": {"earlier version in force", ui.Doubt, "The latest version cannot decide, so the earlier one does."},
	"NeverMatched": {"never matched", ui.Doubt, "Nothing has matched yet. Check the expression, or leave it for findings of " +
		"later scans."},
	"Shadowed": {"shadowed", ui.Doubt, "Other policies decide about all that it matches. Raise its priority, narrow the others, " +
		"or delete it."},
	"Preview":     {"preview", ui.Going, "It decides nothing. See what it matches, then apply it."},
	"NotYetValid": {"not yet", ui.Going, "It begins later." + nothingToDo},
	"Expired":     {"expired", ui.Doubt, "It has expired, and what it muted is open again. Set another end, or delete it."},
	"TooMany": {"too many", ui.Bad, "It matches more findings than it may, so it decides nothing. Narrow the expression, or " +
		"raise the limit if all of them are meant."},
	"TooManyPolicies": {"too many policies", ui.Bad, "The organization has as many policies in force as it may have. Delete one that is not needed."},
	"TooCostly": {"too costly", ui.Bad, "It takes too long to evaluate. Begin with a short comparison that rules most " +
		"findings out."},
	"NotCompiled": {"does not compile", ui.Bad, "The expression does not compile, so it decides nothing. Fix the error shown below."},
}

// stopped is the status of a policy that was in force before it became a preview.
var stopped = standing{"stopped", ui.Doubt, "It no longer decides: what it muted is open again. Apply it " +
	"to go on, or delete it."}

// nothingToDo ends the text about a policy, unless its expression cannot be evaluated for some findings.
const nothingToDo = " There is nothing to do."

// hindrances is what to do about a policy that does not decide yet, and as it is would not decide later either, by the
// reason of its condition InForce.
var hindrances = map[string]struct{ noRoom, uncounted, tooWide string }{
	"Preview": {
		noRoom: "The organization has as many policies in force as it may have. If applied, it would decide nothing " +
			"until one of them is deleted or ends. Delete one that is not needed first.",
		uncounted: "Counting its matches takes too long, so it cannot be applied. Begin the expression with a short " +
			"comparison that rules most findings out.",
		tooWide: "Applied as it is, it would be stopped at once: it matches more findings than it may. Narrow the " +
			"expression, or raise the limit with kubectl, before you apply it.",
	},
	"NotYetValid": {
		noRoom: "It begins later, but it would decide nothing: the organization has as many policies in force as " +
			"it may have. Delete one that is not needed.",
		uncounted: "It begins later, but it would not come into force: counting its matches takes too long. Begin " +
			"the expression with a short comparison that rules most findings out.",
		tooWide: "It begins later, but it would be stopped at once: it matches more findings than it may. Narrow the " +
			"expression, or raise the limit with kubectl.",
	},
}

// stillStopped is what to do about a policy that was stopped and matches no more than its limit by now, but more than a
// stopped one may.
const stillStopped = "It was stopped because it matched more findings than it may. It decides again once no more " +
	"than nine tenths of the limit match. Narrow the expression, or raise the limit if all of them are meant."

// tooManyUncounted is what to do about a policy that matched too many findings and cannot be counted.
const tooManyUncounted = "It matched more findings than it may, so it decides nothing. Counting all that match takes " +
	"too long, so a higher limit alone may not help. Begin the expression with a short comparison that rules most " +
	"findings out, or narrow it."

// isStopped reports whether a preview was in force at some time since its expression compiled: only then did the
// condition InForce change after the condition Compiled. If the expression was corrected later, this is unknown.
func isStopped(p client.TriagePolicy) bool {
	in, compiled := condition(p, "InForce"), condition(p, "Compiled")
	return in.Reason == "Preview" && compiled.Status == "True" && in.ChangedAt.After(compiled.ChangedAt)
}

// condition returns a condition of a policy, or an empty one.
func condition(p client.TriagePolicy, kind string) (c client.ResourceCondition) {
	for _, c := range p.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return c
}

// hasNoRoom reports whether the organization has as many other policies in force as it may have. For a policy that
// does not decide yet, only the controllers' message says so.
func hasNoRoom(p client.TriagePolicy) bool {
	return strings.Contains(condition(p, "InForce").Message, "A hundred other policies are in force")
}

// notInForce explains why the latest version of a policy does not replace the earlier one, from the reason of its
// condition Ready.
var notInForce = map[string]string{
	"NotCompiled": "does not compile. See the error, and fix it.",
	"TooMany":     "matches more findings than it may. Narrow the expression, or raise the limit if all of them are meant.",
	"TooCostly": "takes too long to evaluate, and perhaps matches more findings than it may. Begin with a short " +
		"comparison that rules most findings out.",
}

// earlierDecision returns, in parentheses, what the earlier version of a policy decides, which the message of the
// condition InForce quotes; empty for the message of older controllers, which quotes nothing.
func earlierDecision(message string) string {
	if parts := strings.Split(message, `"`); len(parts) == 3 {
		return " (" + parts[1] + ")"
	}
	return ""
}

// standingOf returns the status of a policy.
func standingOf(p client.TriagePolicy) standing {
	reason, ready := condition(p, "InForce").Reason, condition(p, "Ready").Reason
	s, known := standings[reason]
	if !known || !p.Observed {
		return standing{"processing", ui.Going, "The controllers have not yet processed its latest change."}
	}
	if isStopped(p) {
		s = stopped
	}
	why, explained := notInForce[ready]
	hindrance, waits := hindrances[reason]
	switch {
	case reason == "EarlierGeneration" && explained:
		decides := earlierDecision(condition(p, "InForce").Message)
		s.next = "The earlier version decides" + decides + ", because the latest one " + why
	case reason == "TooMany" && (ready == "TooCostly" || !isCounted(p)):
		s.next = tooManyUncounted
	case reason == "TooMany" && p.Matched <= p.MaxFindings:
		s.next = stillStopped
	case waits && hasNoRoom(p):
		s.next = hindrance.noRoom
	case waits && !isCounted(p):
		s.next = hindrance.uncounted
	case waits && p.Matched > p.MaxFindings:
		s.next = hindrance.tooWide
	}
	if p.Failed > 0 && isCounted(p) && reason != "EarlierGeneration" {
		return failing(s, p.Failed)
	}
	return s
}

// failing returns the status of a policy whose expression cannot be evaluated for some findings.
func failing(s standing, findings int32) standing {
	s.next = fmt.Sprintf("%s The expression cannot be evaluated for %s %s: see the error.",
		strings.TrimSuffix(s.next, nothingToDo), ui.Thousands(findings), ui.Plural(findings, "finding", "findings"))
	if s.tone == ui.Good {
		s.tone = ui.Doubt
	}
	return s
}
