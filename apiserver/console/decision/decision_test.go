package decision

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

func TestAChangeLeadsToTheDecisionItWasMadeOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := Decision{
			UserStatus: rapid.SampledFrom([]string{"open", "active", "muted"}).Draw(t, "status"),
			Comments:   rapid.String().Draw(t, "comments"),
		}
		if rapid.Bool().Draw(t, "a reason") {
			d.Reason = ptr.To(rapid.SampledFrom(Reasons).Draw(t, "reason").Value)
		}
		if rapid.Bool().Draw(t, "an end") {
			d.ExpiresAt = ptr.To(time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "end"), 0).UTC())
		}
		c := ChangeTo(d)
		// As the module sends it back.
		form := url.Values{"exactly": {""}}
		for name, value := range map[string]*string{"user_status": c.UserStatus, "reason": c.Reason, "until": c.ExpiresAt, "comments": c.Comments} {
			if value != nil {
				form.Set(name, *value)
			}
		}
		if diff := cmp.Diff(c, ChangeOf(form, Decision{UserStatus: Open})); diff != "" {
			t.Fatalf("it came back as another (-sent +got):\n%s", diff)
		}
	})
}

func TestAFormThatNobodyTouchedChangesNothing(t *testing.T) {
	end := time.Date(2099, 5, 4, 8, 0, 0, 0, time.UTC)
	before := Decision{UserStatus: "muted", Reason: ptr.To("duplicate"), ExpiresAt: &end, Comments: "one\ntwo"}
	form := url.Values{"user_status": {"muted"}, "reason": {"duplicate"}, "until": {before.Until()}, "comments": {"one\r\ntwo"}}
	for _, comments := range []string{before.Comments, "one\r\ntwo"} {
		before.Comments = comments
		if diff := cmp.Diff(ChangeTo(before), ChangeOf(form, before)); diff != "" {
			t.Errorf("%q (-before +asked for):\n%s", comments, diff)
		}
	}
	form.Set("comments", "one\r\ntwo\r\nthree")
	if got := *ChangeOf(form, before).Comments; got != "one\ntwo\nthree" {
		t.Errorf("what was typed became %q", got)
	}
	form.Set("until", "2099-05-05")
	if got := *ChangeOf(form, before).ExpiresAt; got != "2099-05-05T23:59:59Z" {
		t.Errorf("another day ends %s", got)
	}
}

func TestWhatIsOpenAgainHasNoGrounds(t *testing.T) {
	past := time.Unix(1, 0)
	ended := Decision{UserStatus: Open, Reason: ptr.To("duplicate"), ExpiresAt: &past, Comments: "x"}
	if c := ChangeTo(ended); c.Reason != nil || c.ExpiresAt != nil || *c.UserStatus != Open || *c.Comments != "x" {
		t.Errorf("to one that has ended leads %+v", c)
	}
	form := url.Values{"user_status": {Open}, "reason": {"duplicate"}, "until": {"2099-05-04"}}
	if c := ChangeOf(form, ended); c.Reason != nil || c.ExpiresAt != nil {
		t.Errorf("%+v", c)
	}
}

func TestWhatAFormDoesNotGiveStays(t *testing.T) {
	c := ChangeOf(url.Values{"user_status": {"active"}}, Decision{UserStatus: "muted"})
	if c.Reason != nil || c.ExpiresAt != nil || c.Comments != nil {
		t.Errorf("%+v", c)
	}
	if c = ChangeOf(url.Values{"reason": {""}, "until": {""}, "comments": {""}}, Decision{UserStatus: "muted"}); *c.Reason != none || *c.ExpiresAt != none || *c.Comments != "" {
		t.Errorf("an empty field takes away: %+v", c)
	}
}

func TestADecisionIsToldFromEveryOther(t *testing.T) {
	one := Decision{UserStatus: "muted", Comments: "a"}
	for name, other := range map[string]Standing{
		"status":  {Decision{UserStatus: "active", Comments: "a"}, "apikey/ada"},
		"comment": {Decision{UserStatus: "muted", Comments: "b"}, "apikey/ada"},
		"reason":  {Decision{UserStatus: "muted", Comments: "a", Reason: ptr.To("duplicate")}, "apikey/ada"},
		"end":     {Decision{UserStatus: "muted", Comments: "a", ExpiresAt: ptr.To(time.Unix(1, 0))}, "apikey/ada"},
		"person":  {one, "apikey/bob"},
	} {
		if (Standing{one, "apikey/ada"}).Seen() == other.Seen() {
			t.Errorf("another %s is not told", name)
		}
	}
}

// The person's choice is selected again after a conflict: otherwise another choice could be sent unnoticed.
func TestAFormChoosesWhatWasTypedAndNothingWhereNobodyHasDecided(t *testing.T) {
	for _, c := range []struct {
		filled Decision
		chosen string
	}{
		{Typed(url.Values{"user_status": {Open}}), Open},
		{Typed(url.Values{"user_status": {"active"}}), "active"},
		{Decision{UserStatus: Open}.Offered(), ""},
		{Decision{UserStatus: "muted"}.Offered(), "muted"},
	} {
		var form strings.Builder
		if err := Fields("x-", c.filled, false).Render(t.Context(), &form); err != nil {
			t.Fatal(err)
		}
		status, _, _ := strings.Cut(form.String(), "</select>")
		if c.chosen == "" && strings.Contains(status, " selected") || c.chosen != "" && !strings.Contains(status, `value="`+c.chosen+`" selected`) {
			t.Errorf("want %q chosen in %s", c.chosen, status)
		}
	}
}
