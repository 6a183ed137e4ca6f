package main

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// said returns the verdict with the comment "old" about a finding of low severity.
func said(status v1alpha1.UserStatus, stale bool) verdict {
	return verdict{findingstate.Standing{
		UserStatus: status, Triage: v1alpha1.FindingTriage{UserStatus: status, Comments: "old"}, Stale: stale, Facts: "severity=low",
	}}
}

func TestADecisionNamesOnlyWhatDiffers(t *testing.T) {
	for reason, tc := range map[string]struct {
		mute    bool
		comment *string
		from    verdict
		changes bool
		becomes string
		patch   string
	}{
		"a decision":             {true, nil, said("open", false), true, "muted", `{"metadata":{"resourceVersion":"7"},"spec":{"triage":{"basis":"severity=low","userStatus":"muted"}}}`},
		"with a comment":         {true, new("new"), said("open", false), true, "muted", `{"metadata":{"resourceVersion":"7"},"spec":{"triage":{"basis":"severity=low","comments":"new","userStatus":"muted"}}}`},
		"the comment alone":      {true, new("new"), said("muted", false), true, "muted, commented", `{"metadata":{"resourceVersion":"7"},"spec":{"triage":{"comments":"new"}}}`},
		"a comment taken back":   {false, new(""), said("active", false), true, "active, commented", `{"metadata":{"resourceVersion":"7"},"spec":{"triage":{"comments":""}}}`},
		"nothing that is new":    {true, new("old"), said("muted", false), false, "muted", `{"metadata":{"resourceVersion":"7"},"spec":{"triage":{}}}`},
		"stale, repeated":        {true, nil, said("muted", true), true, "muted again", `{"metadata":{"resourceVersion":"7"},"spec":{"triage":{"basis":"severity=low"}}}`},
		"stale, commented":       {false, new("new"), said("muted", true), true, "muted, commented", `{"metadata":{"resourceVersion":"7"},"spec":{"triage":{"comments":"new"}}}`},
		"no comment, none wiped": {true, nil, said("muted", false), false, "muted", `{"metadata":{"resourceVersion":"7"},"spec":{"triage":{}}}`},
	} {
		d, err := decide(tc.mute, false, false, tc.comment, grounds{})
		if err != nil {
			t.Fatalf("%s: %v", reason, err)
		}
		if got := d.changes(tc.from); got != tc.changes {
			t.Errorf("%s: changes %v, want %v", reason, got, tc.changes)
		}
		if got := d.becomes(tc.from); got != tc.becomes {
			t.Errorf("%s: becomes %q, want %q", reason, got, tc.becomes)
		}
		patch, err := d.patch(tc.from, "7")
		harness.Must(t, err)
		if data, _ := patch.Data(client.Object(&v1alpha1.Finding{})); string(data) != tc.patch {
			t.Errorf("%s: the patch is %s, want %s", reason, data, tc.patch)
		}
	}
}

func TestOnlyAYesIsAYes(t *testing.T) {
	for line, want := range map[string]bool{"y\n": true, "YES\r\n": true, "  Yes\n": true, "": false, "\n": false, "n\n": false, "yy\n": false, "yesno\n": false} {
		if got := isYes(line); got != want {
			t.Errorf("%q counts as %v", line, got)
		}
	}
}
