package decision

import (
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
)

// Reasons of a decision, in the order of how often they are given.
var Reasons = []ui.Option{
	{Value: "false-positive", Word: "false positive"},
	{Value: "not-reachable", Word: "not reachable"},
	{Value: "used-in-tests", Word: "used in tests"},
	{Value: "mitigated-elsewhere", Word: "mitigated elsewhere"},
	{Value: "accepted-risk", Word: "accepted risk"},
	{Value: "will-not-fix", Word: "will not fix"},
	{Value: "duplicate", Word: "duplicate"},
}

// Choices are what can be decided.
var Choices = []ui.Option{
	{Value: "muted", Word: "Mute"}, {Value: "active", Word: "Confirm"}, {Value: Open, Word: "Take the decision back"},
}

// Choice is what it is called to decide so.
func Choice(userStatus string) string { return wordOf(Choices, userStatus) }

// ReasonWord is what a reason is called.
func ReasonWord(reason string) string { return wordOf(Reasons, reason) }

// reasonLabel is the label of the field for it.
func reasonLabel(needed bool) string {
	if needed {
		return "Reason, needed to mute"
	}
	return "Reason, optional"
}

// wordOf is what a value is called, or the value where it has no name.
func wordOf(options []ui.Option, value string) string {
	for _, known := range options {
		if known.Value == value {
			return known.Word
		}
	}
	return value
}

// Words are what decisions are called. That a finding is open, muted or closed is its state, and another word.
var Words = map[string]string{Open: "undecided", "active": "confirmed", "muted": "muted"}

// Word is what a decision is called where a sentence begins with it.
func Word(userStatus string) string {
	word := Words[userStatus]
	return strings.ToUpper(word[:min(len(word), 1)]) + word[min(len(word), 1):]
}

// Until is the day on which the decision ends, empty without one.
func (d Decision) Until() string {
	if d.ExpiresAt == nil {
		return ""
	}
	return d.ExpiresAt.UTC().Format(time.DateOnly)
}
