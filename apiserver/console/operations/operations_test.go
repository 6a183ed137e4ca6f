package operations

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/client"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/pagetest"
)

func TestAWithdrawalHasNoReasonAndNoEnd(t *testing.T) {
	form := url.Values{"id": {"f-1"}, "user_status": {"open"}, "reason": {"duplicate"}, "until": {"2099-05-04"}, "comments": {"x\r\ny"}}
	harness.Same(t, "a withdrawal", set{UserStatus: "open", Comments: "x\ny"}, *requestOf(form).Set)
	form.Set("user_status", "muted")
	harness.Same(t, "a muting", set{UserStatus: "muted", Comments: "x\ny", Reason: "duplicate", ExpiresAt: "2099-05-04T23:59:59Z"}, *requestOf(form).Set)
}

func TestARefusedOperationKeepsWhatWasSelectedAndTyped(t *testing.T) {
	selected := []url.Values{{"id": {"f-1", "f-2"}}, {"all": {"true"}, "filter.tool": {"gosec"}, "filter.severity": {"high"}}}
	for i, status := range []int{http.StatusBadRequest, http.StatusConflict} {
		selects := selected[i]
		refuses := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(map[string]string{"detail": "set.reason is required to mute", "field": "set.reason"})
		})
		form := url.Values{"token": {"of an earlier page"}, "user_status": {"muted"}, "comments": {"Typed."}, "until": {"2099-05-04"}}
		for name, values := range selects {
			form[name] = values
		}
		got, shown := pagetest.Show(t, create, &page.Visit{API: api.New(refuses, "", ""), Form: form, Token: "now"})
		harness.Same(t, "status", status, got.Status)
		wanted := []string{`name="token" value="now"`, "The reason is required to mute.", `value="muted" selected`, ">\nTyped.</textarea>", ">Until (end of the day, UTC)</label>", "What you leave empty stays", `value="2099-05-04"`}
		for name, values := range selects {
			for _, value := range values {
				wanted = append(wanted, `type="hidden" name="`+name+`" value="`+value+`"`)
			}
		}
		harness.Contains(t, "the page", shown, wanted...)
	}
}

// Somebody else's end would come as a surprise under another decider.
func TestAPreviewSaysThatEndsStayIfItSetsNone(t *testing.T) {
	muted, open, end := client.UserStatusMuted, client.UserStatusOpen, time.Now()
	for reason, c := range map[string]struct {
		set   client.TriageOperationDecision
		stays bool
	}{
		"a mute without an end": {client.TriageOperationDecision{UserStatus: &muted}, true},
		"a mute with an end":    {client.TriageOperationDecision{UserStatus: &muted, ExpiresAt: &end}, false},
		"a withdrawal":          {client.TriageOperationDecision{UserStatus: &open}, false},
		"a comment":             {client.TriageOperationDecision{Comments: "known"}, false},
	} {
		o := client.TriageOperation{Phase: client.TriageOperationPhasePreview, Set: c.set, Decided: []client.TriageOperationDecider{{By: "apikey/ada", Count: 5}}}
		text := pagetest.Text(t, operationPage(o, client.TriageOperation{}, "", nil, "token", true))
		harness.Same(t, reason, c.stays, strings.Contains(text, "already keep its end"))
	}
}

func TestAnOperationThatHasFailedIsShownOnItsPage(t *testing.T) {
	fails := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = w.Write([]byte("{}"))
			return
		}
		w.Header().Set("Location", "/v2/triage-operations/op-failed")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte("{}"))
	})
	form, id := url.Values{"id": {"f-1"}, "user_status": {"muted"}, "uid": {"u-1"}}, func(string) string { return "op-1" }
	for reason, sends := range map[string]page.Handle{"created": create, "committed": commit, "undone": undo} {
		got, err := sends(t.Context(), &page.Visit{API: api.New(fails, "", ""), Form: form, Path: id})
		harness.Must(t, err)
		harness.Same(t, reason, page.SeeOther("/console/operations/op-failed"), got)
	}
}

// The service refuses a list of ids that is too long.
func TestAnOperationWithManyUndosIsShown(t *testing.T) {
	const undos, size = 100, 60
	asked, cursors := map[string]int{}, map[string]string{}
	service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ids, cursor := r.URL.Query().Get("undo"), r.URL.Query().Get("cursor")
		if len(ids) > 16384 || cursors[cursor] != ids && cursor != "" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		var found client.TriageOperationList
		for i := range undos {
			if (i < size) == (cursor == "") && ids == "op-1" {
				found.Items = append(found.Items, client.TriageOperation{Id: fmt.Sprintf("u-%0250d", i), Undo: ids})
			}
		}
		if cursor == "" {
			for id := range strings.SplitSeq(ids, ",") {
				asked[id]++
			}
			found.HasMore, found.NextCursor = true, "after "+ids
			cursors[found.NextCursor] = ids
		}
		_ = json.NewEncoder(w).Encode(found)
	})
	got, err := readUndos(t.Context(), &page.Visit{API: api.New(service, "", "")}, client.TriageOperation{Id: "op-1"})
	harness.Must(t, err)
	harness.Same(t, "undos", undos, len(got))
	harness.Same(t, "operations whose undos are asked for", undos+1, len(asked))
	for id, times := range asked {
		harness.Same(t, id, 1, times)
	}
}

// Names are used again, and the page may be of the operation that had this one before.
func TestOnlyTheOperationThatThePageShowsIsCommitted(t *testing.T) {
	shown := client.TriageOperation{Id: "nightly", Uid: "u-1", Phase: client.TriageOperationPhasePreview, Matched: 12, WouldChange: 9}
	text := pagetest.Text(t, operationPage(shown, client.TriageOperation{}, "Mute", nil, "token", true))
	harness.Contains(t, "the form, which holds what it shows and asks about what would change", text, `name="uid" value="u-1"`, "Apply it to 9 findings")
	for reason, tc := range map[string]struct {
		form url.Values
		sent []string
		want string
	}{
		"the one that it shows":        {url.Values{"uid": {"u-1"}}, []string{`{"uid":"u-1"}`}, "<nil>"},
		"a page of an earlier version": {url.Values{}, nil, "412: The page is older than the service"},
	} {
		var sent []string
		service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			sent = append(sent, string(body))
			_ = json.NewEncoder(w).Encode(shown)
		})
		v := &page.Visit{API: api.New(service, "", ""), Form: tc.form, Path: func(string) string { return "nightly" }}
		_, err := commit(t.Context(), v)
		harness.Same(t, reason+": what is sent", tc.sent, sent)
		if got := fmt.Sprint(err); !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: want %s, got %s", reason, tc.want, got)
		}
	}
}

// What it has decided stands, and can be undone.
func TestAnOperationThatHasFailedHalfwayShowsWhatItHasDecided(t *testing.T) {
	for changed, shows := range map[int32]bool{0: false, 3: true} {
		o := client.TriageOperation{Id: "op-1", Phase: client.TriageOperationPhaseFailed, Changed: changed}
		text := pagetest.Text(t, operationPage(o, client.TriageOperation{}, "Mute", nil, "token", true))
		harness.Same(t, fmt.Sprintf("after %d decisions the undo is offered", changed), shows, strings.Contains(text, "Preview the undo"))
	}
}

func TestAnOperationTellsAKeyThatMayNotDecide(t *testing.T) {
	const lacks = "lacks the scope <code>findings:triage</code>"
	for _, c := range []struct {
		reason          string
		o, undoing      client.TriageOperation
		mayDecide, says bool
	}{
		{"a preview", client.TriageOperation{Phase: client.TriageOperationPhasePreview, WouldChange: 3}, client.TriageOperation{}, false, true},
		{"a preview that changes nothing", client.TriageOperation{Phase: client.TriageOperationPhasePreview}, client.TriageOperation{}, false, false},
		{"a completed one", client.TriageOperation{Phase: client.TriageOperationPhaseCompleted, Changed: 3}, client.TriageOperation{}, false, true},
		{"a key that may", client.TriageOperation{Phase: client.TriageOperationPhaseCompleted, Changed: 3}, client.TriageOperation{}, true, false},
		{"an undone one", client.TriageOperation{Phase: client.TriageOperationPhaseCompleted, Changed: 3},
			client.TriageOperation{Id: "op-2", Phase: client.TriageOperationPhaseCompleted, Matched: 3, Changed: 3}, false, false},
	} {
		text := pagetest.Text(t, operationPage(c.o, c.undoing, "Mute", nil, "token", c.mayDecide))
		harness.Same(t, c.reason, c.says, strings.Contains(text, lacks))
	}
}

func TestAnOperationThatRemovesCommentsSaysSo(t *testing.T) {
	for _, removes := range []bool{false, true} {
		o := client.TriageOperation{Id: "op-1", Phase: client.TriageOperationPhasePreview}
		o.Set.RemovesComments = removes
		text := pagetest.Text(t, operationPage(o, client.TriageOperation{}, "Confirm", nil, "token", true))
		harness.Same(t, "it is shown", removes, strings.Contains(text, "Removes the comments of these findings."))
	}
}
