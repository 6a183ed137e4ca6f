package conformance

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// decidable is an object that people decide about in v2: path is where decisions are made, full where the
// whole decision is shown, and muted the status of an open one that is muted.
type decidable struct{ path, full, muted string }

// decidables creates one object of each kind.
func (o *organization) decidables() []decidable {
	o.t.Helper()
	o.finding(builder.Finding("f-1"))
	o.reviewed()
	return []decidable{
		{"/v2/findings/f-1", "/v2/findings/f-1", "open_muted"},
		{issuePath, fullIssuePath, "open"},
	}
}

func TestGrounds_ReasonAndEndGoWithTheirDecision(t *testing.T) {
	o := newOrganization(t)
	for _, d := range o.decidables() {
		t.Run(d.path[1:], func(t *testing.T) { testGroundsGoWithTheirDecision(t, o.in(t), d) })
	}
	o.patch("/v1/findings/f-1", `{"user_status":"active","reason":"duplicate"}`).wants(200, "v1 takes them too")
}

func testGroundsGoWithTheirDecision(t *testing.T, c *caller, d decidable) {
	t.Helper()
	end := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for _, step := range []struct {
		reason, patch, wantReason, wantEnd string
	}{
		{"a decision with both", fmt.Sprintf(`{"user_status":"muted","reason":"accepted-risk","expires_at":%q}`, end), "accepted-risk", end},
		{"comments leave both", `{"comments":"c"}`, "accepted-risk", end},
		{"the same decision too", `{"user_status":"muted"}`, "accepted-risk", end},
		{"the end is taken away", `{"user_status":"muted","expires_at":"none"}`, "accepted-risk", ""},
		{"another decision comes without", `{"user_status":"active"}`, "", ""},
		{"and with its own", `{"user_status":"muted","reason":"duplicate"}`, "duplicate", ""},
		{"the reason is taken away", `{"user_status":"muted","reason":"none"}`, "", ""},
	} {
		c.patch(d.path, step.patch).wants(200, step.reason)
		got := c.get(d.full).object()
		if got.text("reason") != step.wantReason || got.text("expires_at") != step.wantEnd {
			t.Errorf("%s: reason %v and expires_at %v, want %q and %q", step.reason, got["reason"], got["expires_at"], step.wantReason, step.wantEnd)
		}
	}
	for reason, wrong := range map[string][2]string{
		"no reason":           {`{"user_status":"muted","reason":"because"}`, "reason"},
		"no time":             {`{"user_status":"muted","expires_at":"tomorrow"}`, "expires_at"},
		"past":                {`{"user_status":"muted","expires_at":"2001-01-01T00:00:00Z"}`, "expires_at"},
		"a reason for none":   {`{"user_status":"open","reason":"duplicate"}`, "reason"},
		"an end of none":      {fmt.Sprintf(`{"user_status":"open","expires_at":%q}`, end), "expires_at"},
		"a reason by itself":  {`{"reason":"duplicate"}`, "user_status"},
		"nobody has decided":  {`{"user_status":"open","reason":"duplicate"}`, "reason"},
		"a reason that is no": {`{"user_status":"muted","reason":1}`, "reason"},
	} {
		harness.Same(t, reason+": field", wrong[1], c.patch(d.path, wrong[0]).wants(400, reason).object()["field"])
	}
}

func TestGrounds_TheEndTakesTheDecisionAway(t *testing.T) {
	t.Parallel()
	o := newOrganization(t)
	kinds := o.decidables()
	end := time.Now().Add(8 * time.Second).UTC().Truncate(time.Second).Format(time.RFC3339)
	for _, d := range kinds {
		muted := o.patch(d.path, fmt.Sprintf(`{"user_status":"muted","reason":"used-in-tests","expires_at":%q}`, end)).wants(200, "muted").object()
		wantsMembers(t, d.path+" muted", record{"user_status": "muted", "status": d.muted}, muted)
	}
	for _, d := range kinds {
		var ended record
		harness.Eventually(t, func(g Gomega) {
			ended = o.get(d.full).object()
			g.Expect(ended["user_status"]).To(Equal("open"))
		})
		wantsMembers(t, d.path+" ended", record{"status": "open", "reason": "used-in-tests", "expires_at": end}, ended)
		if at := ended.text("updated_at"); at < end {
			t.Errorf("%s: it ended at %s, and updated_at is %s", d.path, end, at)
		}
		harness.Eventually(t, func(g Gomega) {
			history := o.get(d.path + "/history").object().list("transitions")
			g.Expect(history[len(history)-1]).To(And(HaveKeyWithValue("type", "expired"), HaveKeyWithValue("from", "muted"), HaveKeyWithValue("to", "open"),
				HaveKeyWithValue("by", "apikey/conformance"), HaveKeyWithValue("reason", "used-in-tests"), HaveKeyWithValue("expires_at", end)))
		})
		again := o.patch(d.path, `{"user_status":"muted"}`).wants(200, "the same decision again").object()
		wantsMembers(t, d.path+" muted again", record{"user_status": "muted", "status": d.muted, "expires_at": nil}, again)
	}
}

func TestGrounds_AReasonIsRequiredWhereTheOrganizationSaysSo(t *testing.T) {
	o := newOrganization(t)
	kinds := o.decidables()
	o.patchResource(builder.Organization(o.name).Build(), `{"spec":{"triage":{"requireReason":true}}}`)
	for _, d := range kinds {
		harness.Eventually(t, func(g Gomega) {
			// Until the API server has seen the organization's change, it accepts the decision, and then its repetition.
			o.patch(d.path, `{"user_status":"open","comments":""}`)
			answer := o.patch(d.path, `{"user_status":"muted","comments":"c"}`)
			g.Expect(answer.Status).To(Equal(400))
			problem := answer.object()
			g.Expect(problem["code"]).To(Equal("reason_required"))
			g.Expect(problem["field"]).To(Equal("reason"))
		})
		o.patch(d.path, `{"user_status":"active"}`).wants(200, "to confirm needs none")
		o.patch(d.path, `{"user_status":"muted","reason":"false-positive"}`).wants(200, "with a reason")
	}
	o.patch("/v1/findings/f-1", `{"user_status":"active"}`).wants(200, "v1 needs none to confirm")
	o.patch("/v1/findings/f-1", `{"user_status":"muted"}`).wants(400, "v1 is asked too")
	o.patch("/v1/findings/f-1", `{"user_status":"muted","reason":"false-positive"}`).wants(200, "with a reason in v1")
}
