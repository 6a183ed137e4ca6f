package main

import (
	"testing"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

func TestADecisionNamesOnlyWhatDiffers(t *testing.T) {
	for reason, tc := range map[string]struct {
		mute    bool
		comment *string
		from    verdict
		changes bool
		becomes string
		patch   string
	}{
		"a decision":             {true, nil, verdict{"open", "old"}, true, "muted", `{"metadata":{"resourceVersion":"7"},"spec":{"triage":{"userStatus":"muted"}}}`},
		"with a comment":         {true, ptr.To("new"), verdict{"open", "old"}, true, "muted", `{"metadata":{"resourceVersion":"7"},"spec":{"triage":{"comments":"new","userStatus":"muted"}}}`},
		"the comment alone":      {true, ptr.To("new"), verdict{"muted", "old"}, true, "muted, commented", `{"metadata":{"resourceVersion":"7"},"spec":{"triage":{"comments":"new"}}}`},
		"a comment taken back":   {false, ptr.To(""), verdict{"active", "old"}, true, "active, commented", `{"metadata":{"resourceVersion":"7"},"spec":{"triage":{"comments":""}}}`},
		"nothing that is new":    {true, ptr.To("old"), verdict{"muted", "old"}, false, "muted", `{"metadata":{"resourceVersion":"7"},"spec":{"triage":{}}}`},
		"no comment, none wiped": {true, nil, verdict{"muted", "old"}, false, "muted", `{"metadata":{"resourceVersion":"7"},"spec":{"triage":{}}}`},
	} {
		d, err := decide(tc.mute, false, false, tc.comment)
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
		if err != nil {
			t.Fatal(err)
		}
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
