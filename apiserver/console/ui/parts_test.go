package ui

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/client"
)

func TestAMessageBecomesASentence(t *testing.T) {
	for message, want := range map[string]string{
		"the API key lacks the scope webhooks:read": "The API key lacks the scope webhooks:read.",
		"Already one.": "Already one.",
		"über":         "Über.",
		"":             "",
	} {
		if got := Sentence(message); got != want {
			t.Errorf("%q: got %q, want %q", message, got, want)
		}
	}
}

func TestThousandsStandApart(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := Thousands(n); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A scanner's top-level headings must rank below those of the page.
func TestHeadingsOfProseAreOfOneLevel(t *testing.T) {
	html := prose("# First\n\ntext\n\n###### Last\n", 3)
	if strings.Count(html, "<h3>") != 2 || strings.Count(html, "<h") != 2 {
		t.Errorf("got %s", html)
	}
}

func TestProseHoldsNoScript(t *testing.T) {
	html := prose("a <script>alert(1)</script> [b](javascript:alert) ![c](https://example.com/c.png)", 3)
	for _, bad := range []string{"<script", "javascript:", "<img"} {
		if strings.Contains(html, bad) {
			t.Errorf("%s in %s", bad, html)
		}
	}
}

func TestARefusalNamesTheFieldsOfTheForm(t *testing.T) {
	for field, of := range map[string]struct{ detail, want string }{
		"expires_at":  {"expires_at must be in the future", "the end date must be in the future"},
		"valid_until": {"valid_until must be in the future and after valid_from", "the end date must be in the future"},
		"set.reason":  {"set.reason is required to mute", "the reason is required to mute"},
		"match":       {"match does not compile: line 1", "the expression does not compile: line 1"},
		"cursor":      {"cursor is of another list", "cursor is of another list"},
	} {
		if got := Told(client.Error{Detail: of.detail, Field: field}); got != of.want {
			t.Errorf("%s: got %q, want %q", field, got, of.want)
		}
	}
}

// A message in the corner of the page has nothing below it.
func TestWhatAModuleIsToldNamesTimeAndRequest(t *testing.T) {
	for want, p := range map[string]Problem{
		"Try again in 40 seconds.": {Status: http.StatusTooManyRequests, RetryAt: time.Now().Add(40 * time.Second)},
		"the request id r-1.":      {Status: http.StatusInternalServerError, RequestID: "r-1"},
		"the request id r-2.":      {Status: http.StatusInternalServerError, RequestID: "r-2", Change: true},
	} {
		said, err := json.Marshal(p.Said())
		if err != nil || !strings.Contains(string(said), want) || strings.Contains(string(said), "below") {
			t.Errorf("want %q, got %s (%v)", want, said, err)
		}
	}
}
