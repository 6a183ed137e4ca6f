package decision

import (
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
)

// Reasons of a decision, the most frequent first.
var Reasons = []ui.Option{
	{Value: "false-positive", Word: "false positive"},
	{Value: "not-reachable", Word: "not reachable"},
	{Value: "used-in-tests", Word: "used in tests"},
	{Value: "mitigated-elsewhere", Word: "mitigated elsewhere"},
	{Value: "accepted-risk", Word: "accepted risk"},
	{Value: "will-not-fix", Word: "will not fix"},
	{Value: "duplicate", Word: "duplicate"},
}

// Choices are the possible decisions.
var Choices = []ui.Option{
	{Value: "muted", Word: "Mute"}, {Value: "active", Word: "Confirm"}, {Value: Open, Word: "Withdraw the decision"},
}

// Choice returns the label of a decision's status as a choice.
func Choice(userStatus string) string { return wordOf(Choices, userStatus) }

// ReasonWord returns the label of a reason.
func ReasonWord(reason string) string { return wordOf(Reasons, reason) }

// reasonLabel returns the label of the reason field.
func reasonLabel(needed bool) string {
	if needed {
		return "Reason; required to mute"
	}
	return "Reason, optional"
}

// wordOf returns the label of a value, or the value if it has none.
func wordOf(options []ui.Option, value string) string {
	for _, known := range options {
		if known.Value == value {
			return known.Word
		}
	}
	return value
}

// Words are the names of decisions. Open, muted and closed as a finding's state are different words.
var Words = map[string]string{Open: "undecided", "active": "confirmed", "muted": "muted"}

// Word returns the name of a decision, capitalised for the beginning of a sentence.
func Word(userStatus string) string {
	word := Words[userStatus]
	return strings.ToUpper(word[:min(len(word), 1)]) + word[min(len(word), 1):]
}

// Until returns the last day, in UTC, on which the decision holds, or "". A decision that expires at the beginning of a
// day does not hold on that day.
func (d Decision) Until() string {
	if d.ExpiresAt == nil {
		return ""
	}
	return d.ExpiresAt.UTC().Add(-time.Second).Format(time.DateOnly)
}

// UntilLabel returns the label of the field with that day. A decision that ends at another time keeps it while the day
// stays the same.
func (d Decision) UntilLabel() string {
	if d.ExpiresAt == nil || d.ExpiresAt.UTC().Add(-time.Second).Format("15:04") == "23:59" {
		return "Until (end of the day, UTC)"
	}
	return "Until (" + d.ExpiresAt.UTC().Format("15:04") + " UTC; another day: until its end)"
}
