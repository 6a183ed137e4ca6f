package findings

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/client"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/pagetest"
)

// An undo of one's own decision would otherwise replace that of somebody else, which nobody has seen.
func TestAnotherPersonsDecisionAfterOnesOwnIsNotTakenForIt(t *testing.T) {
	score := float32(9.8)
	var before client.FindingFull
	before.UserStatus, before.Details.Severity, before.Details.Code = "open", "high", "a\n\tb"
	before.Facts.Score, before.Facts.ToolSeverity = &score, "CRITICAL"
	for by, own := range map[string]bool{"apikey/ada": true, "apikey/bob": false} {
		after := before
		after.UserStatus, after.DecidedBy = "muted", by
		answers := []client.FindingFull{before, after}
		service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPatch {
				answers = answers[1:]
			}
			_ = json.NewEncoder(w).Encode(answers[0])
		})
		v := &page.Visit{API: api.New(service, "", ""), Scripted: true, Path: func(string) string { return "f-1" },
			Form: url.Values{"user_status": {"muted"}, "seen": {rowOf(before).Seen()}}}
		v.Who.Key = "ada"
		response, err := decide(t.Context(), v)
		harness.Must(t, err)
		answer, stored := response.JSON.(decisionAnswer)
		if !stored {
			t.Fatalf("%s: %+v", by, response.JSON)
		}
		harness.Same(t, "the decision of "+by+" is taken for one's own", own, answer.Seen == rowOf(after).Seen())
	}
}

// Without JavaScript, the browser's Back would lead to an empty form.
func TestARefusedFormKeepsWhatWasTyped(t *testing.T) {
	for _, c := range []struct {
		refused, status int
		words           string
	}{
		{http.StatusBadRequest, http.StatusBadRequest, "The reason is required to mute. Nothing was changed"},
		{http.StatusPreconditionFailed, http.StatusConflict, "The finding has changed meanwhile. Nothing was changed"}, // each time
	} {
		service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPatch {
				w.WriteHeader(c.refused)
				_, _ = w.Write([]byte(`{"detail":"reason is required to mute","field":"reason"}`))
				return
			}
			_, _ = w.Write([]byte(`{"user_status":"open"}`))
		})
		v := &page.Visit{API: api.New(service, "", ""), Path: func(string) string { return "f-1" },
			Form: url.Values{"user_status": {"muted"}, "comments": {"Typed."}}}
		v.Who.Scopes = []string{"findings:triage"}
		response, shown := pagetest.Show(t, decide, v)
		harness.Same(t, "status", c.status, response.Status)
		harness.Contains(t, "the page", shown, c.words, `<details class="decide" open>`, ">\nTyped.</textarea>", `value="muted" selected`, `name="filled.comments"`)
	}
}

// An undo of it would do nothing, and stand before that of the decision that has changed something.
func TestADecisionThatChangesNothingHasNoUndo(t *testing.T) {
	for _, c := range []struct {
		about         string
		by, doubt     string
		status        client.UserStatus
		changed, undo bool
	}{
		{about: "the same again", by: "apikey/ada", status: "muted"},
		{about: "another", by: "apikey/ada", status: "active", changed: true, undo: true},
		{about: "one in doubt again", by: "apikey/ada", doubt: "severity medium, now high", status: "muted", changed: true},
		{about: "somebody else's in doubt again", by: "apikey/bob", doubt: "severity medium, now high", status: "muted", changed: true},
	} {
		before := client.FindingFull{UserStatus: "muted", DecidedBy: c.by, DecisionStale: c.doubt}
		now := before
		service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPatch {
				if c.changed {
					now.DecidedBy = "apikey/ada"
				}
				now.UserStatus, now.DecisionStale = c.status, ""
			}
			_ = json.NewEncoder(w).Encode(now)
		})
		v := &page.Visit{API: api.New(service, "", ""), Scripted: true, Path: func(string) string { return "f-1" },
			Form: url.Values{"user_status": {string(c.status)}, "seen": {rowOf(before).Seen()}}}
		v.Who.Key = "ada"
		response, err := decide(t.Context(), v)
		harness.Must(t, err)
		if answer := response.JSON.(decisionAnswer); answer.Changed != c.changed || (answer.Undo != nil) != c.undo {
			t.Errorf("%s: changed %v, and the undo is %v", c.about, answer.Changed, answer.Undo)
		}
	}
}
