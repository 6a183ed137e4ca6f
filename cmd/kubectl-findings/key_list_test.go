package main

import (
	"slices"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/test/builder"
)

func TestAKeyWithoutScopesHasTheDefaultOnes(t *testing.T) {
	shown := keyRow(builder.APIKey("ci").Build(), time.Now())
	if want := "findings:read,findings:triage,repos:read,reviews:read,webhooks:verify"; !slices.Contains(shown, want) {
		t.Errorf("the row is %q, want %s in it", shown, want)
	}
}
