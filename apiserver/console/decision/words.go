package decision

import (
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
	{Value: "muted", Word: "Mute"}, {Value: "active", Word: "Confirm"}, {Value: Open, Word: "Open again"},
}

// Choice is what it is called to decide so.
func Choice(userStatus string) string { return wordOf(Choices, userStatus) }

// ReasonWord is what a reason is called.
func ReasonWord(reason string) string { return wordOf(Reasons, reason) }

// wordOf is what a value is called, or the value where it has no name.
func wordOf(options []ui.Option, value string) string {
	for _, known := range options {
		if known.Value == value {
			return known.Word
		}
	}
	return value
}

// Word is what a decision is called.
func Word(userStatus string) string {
	switch userStatus {
	case "active":
		return "Confirmed"
	case "muted":
		return "Muted"
	}
	return "Open"
}

// Until is the day on which the decision ends, empty without one.
func (d Decision) Until() string {
	if d.ExpiresAt == nil {
		return ""
	}
	return d.ExpiresAt.UTC().Format(time.DateOnly)
}
