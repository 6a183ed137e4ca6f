package ui

import (
	"strings"
	"testing"
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

// What a scanner takes for its first heading stands below those of the page.
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
