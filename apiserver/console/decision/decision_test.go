package decision

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/html"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/pagetest"
)

func TestAChangeIsTheSameAfterItsWayThroughAForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := Decision{
			UserStatus: rapid.SampledFrom([]string{"open", "active", "muted"}).Draw(t, "status"),
			Comments:   rapid.String().Draw(t, "comments"),
		}
		if rapid.Bool().Draw(t, "a reason") {
			d.Reason = new(rapid.SampledFrom(Reasons).Draw(t, "reason").Value)
		}
		if rapid.Bool().Draw(t, "an end") {
			d.ExpiresAt = new(time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "end"), 0).UTC())
		}
		c := ChangeTo(d)
		// As the module sends it back.
		form := url.Values{"exactly": {""}}
		for name, value := range map[string]*string{"user_status": c.UserStatus, "reason": c.Reason, "until": c.ExpiresAt, "comments": c.Comments} {
			if value != nil {
				form.Set(name, *value)
			}
		}
		harness.Same(t, "the change that came back", c, changeOf(form, Decision{UserStatus: Open}))
	})
}

func TestAFormThatNobodyTouchedChangesNothing(t *testing.T) {
	end := time.Date(2099, 5, 4, 8, 0, 0, 0, time.UTC)
	before := Decision{UserStatus: "muted", Reason: new("duplicate"), ExpiresAt: &end, Comments: "one\ntwo"}
	form := url.Values{"user_status": {"muted"}, "reason": {"duplicate"}, "until": {before.Until()}, "comments": {"one\r\ntwo"}}
	for _, comments := range []string{before.Comments, "one\r\ntwo"} {
		before.Comments = comments
		harness.Same(t, comments, ChangeTo(before), changeOf(form, before))
	}
	form.Set("comments", "one\r\ntwo\r\nthree")
	harness.Same(t, "what was typed", "one\ntwo\nthree", *changeOf(form, before).Comments)
	form.Set("until", "2099-05-05")
	harness.Same(t, "the end on another day", "2099-05-05T23:59:59Z", *changeOf(form, before).ExpiresAt)
}

func TestTheLastDayOfADecisionThatEndsAtMidnightIsTheDayBefore(t *testing.T) {
	end := time.Date(2099, 5, 4, 0, 0, 0, 0, time.UTC)
	before := Decision{UserStatus: "muted", ExpiresAt: &end}
	harness.Same(t, "the day in the form", "2099-05-03", before.Until())
	for day, want := range map[string]string{"2099-05-03": "2099-05-04T00:00:00Z", "2099-05-04": "2099-05-04T23:59:59Z"} {
		form := url.Values{"user_status": {"muted"}, "until": {day}}
		harness.Same(t, "the end with "+day, want, *changeOf(form, before).ExpiresAt)
		harness.Same(t, "the day in the form after one was refused", day, Typed(form, before).Until())
	}
}

func TestTheFormSaysWhenTheDecisionEnds(t *testing.T) {
	at := func(hour, minute, second int) Decision {
		end := time.Date(2099, 5, 4, hour, minute, second, 0, time.FixedZone("", 2*60*60))
		return Decision{UserStatus: "muted", ExpiresAt: &end}
	}
	refused := url.Values{"user_status": {"active"}, "until": {"2099-05-04"}}
	const endOfDay, own = "Until (end of the day, UTC)", "Until (15:00 UTC; another day: until its end)"
	for reason, tc := range map[string]struct {
		filled Decision
		want   string
	}{
		"no end":                      {Decision{}, endOfDay},
		"the end of the day":          {at(25, 59, 59), endOfDay},
		"midnight":                    {at(2, 0, 0), endOfDay},
		"another time, which is kept": {at(17, 0, 0), own},
		"refused, on the same day":    {Typed(refused, at(17, 0, 0)), own},
		"refused, on another day":     {Typed(refused, at(41, 0, 0)), endOfDay},
	} {
		harness.Contains(t, reason, pagetest.Text(t, Fields("x-", tc.filled, false)), ">"+tc.want+"</label>")
	}
}

func TestAWithdrawnDecisionHasNoReasonAndNoEnd(t *testing.T) {
	past := time.Unix(1, 0)
	ended := Decision{UserStatus: Open, Reason: new("duplicate"), ExpiresAt: &past, Comments: "x"}
	if c := ChangeTo(ended); c.Reason != nil || c.ExpiresAt != nil || *c.UserStatus != Open || *c.Comments != "x" {
		t.Errorf("to one that has ended leads %+v", c)
	}
	form := url.Values{"user_status": {Open}, "reason": {"duplicate"}, "until": {"2099-05-04"}}
	if c := changeOf(form, ended); c.Reason != nil || c.ExpiresAt != nil {
		t.Errorf("%+v", c)
	}
}

func TestWhatAFormDoesNotContainStaysUnchanged(t *testing.T) {
	c := changeOf(url.Values{"user_status": {"active"}}, Decision{UserStatus: "muted"})
	if c.Reason != nil || c.ExpiresAt != nil || c.Comments != nil {
		t.Errorf("%+v", c)
	}
	if c = changeOf(url.Values{"reason": {""}, "until": {""}, "comments": {""}}, Decision{UserStatus: "muted"}); *c.Reason != none || *c.ExpiresAt != none || *c.Comments != "" {
		t.Errorf("an empty field takes away: %+v", c)
	}
}

func TestEachDifferenceMakesAnotherDecision(t *testing.T) {
	one, facts := Decision{UserStatus: "muted", Comments: "a"}, Facts{Severity: "low", Version: "1.0"}
	for name, other := range map[string]Standing{
		"status":   {Decision{UserStatus: "active", Comments: "a"}, "apikey/ada", facts},
		"comment":  {Decision{UserStatus: "muted", Comments: "b"}, "apikey/ada", facts},
		"reason":   {Decision{UserStatus: "muted", Comments: "a", Reason: new("duplicate")}, "apikey/ada", facts},
		"end":      {Decision{UserStatus: "muted", Comments: "a", ExpiresAt: new(time.Unix(1, 0))}, "apikey/ada", facts},
		"person":   {one, "apikey/bob", facts},
		"severity": {one, "apikey/ada", Facts{Severity: "high", Version: "1.0"}},
		"version":  {one, "apikey/ada", Facts{Severity: "low", Version: "1.1"}},
	} {
		if (Standing{one, "apikey/ada", facts}).Seen() == other.Seen() {
			t.Errorf("another %s is not told", name)
		}
	}
}

// As a decision's basis does: other changes by scans do not matter.
func TestOnlyTheFactsOfADecisionAreSeen(t *testing.T) {
	for _, c := range []struct {
		reason        string
		before, after Facts
		same          bool
	}{
		{"a score of 9", Facts{Severity: "high", Score: 8.9}, Facts{Severity: "high", Score: 9}, false},
		{"the tool's word", Facts{Severity: "high"}, Facts{Severity: "high", ToolSeverity: "CRITICAL"}, false},
		{"critical for two reasons", Facts{Severity: "high", Score: 9.8}, Facts{Severity: "high", ToolSeverity: "critical"}, true},
		{"another score", Facts{Severity: "high", Score: 7}, Facts{Severity: "high", Score: 8.9}, true},
		{"what was rated low", Facts{Severity: "low"}, Facts{Severity: "low", Score: 9, ToolSeverity: "critical"}, true},
		{"code", Facts{Code: "a(b)"}, Facts{Code: "a(c)"}, false},
		{"code of a version", Facts{Version: "1.0", Code: "a"}, Facts{Version: "1.0", Code: "b"}, true},
		{"the line of a version", Facts{Version: "1.0", Line: 1}, Facts{Version: "1.0", Line: 2}, true},
		{"the line of code", Facts{Code: "a", Line: 1}, Facts{Code: "a", Line: 2}, true},
		{"a doubt", Facts{}, Facts{Stale: "in doubt: the line moved"}, false},
	} {
		harness.Same(t, c.reason, c.same, (Standing{Facts: c.before}).Seen() == (Standing{Facts: c.after}).Seen())
	}
}

func TestWhatOthersMadeOfADecisionIsNotOnesOwn(t *testing.T) {
	stands := func(status, by, severity string) Standing {
		return Standing{Decision{UserStatus: status}, by, Facts{Severity: severity}}
	}
	before := stands("muted", "apikey/bob", "low")
	for _, c := range []struct {
		reason string
		now    Standing
		own    bool
	}{
		{"it was stored", stands("active", "apikey/ada", "low"), true},
		{"it has changed nothing", before, true},
		{"somebody else has decided since", stands("active", "apikey/eve", "low"), false},
		{"somebody else has withdrawn it", stands(Open, "apikey/eve", "low"), false},
		{"a scan has changed the severity", stands("active", "apikey/ada", "high"), false},
		{"a scan has put it in doubt", Standing{Decision{UserStatus: "active"}, "apikey/ada", Facts{Severity: "low", Stale: "in doubt"}}, false},
	} {
		harness.Same(t, c.reason, c.own, Own(before, c.now, "apikey/ada").Seen() == c.now.Seen())
	}
}

// The person's choice is selected again after a conflict: otherwise another choice could be sent unnoticed.
func TestAFormChoosesWhatWasTypedAndNothingWhereNobodyHasDecided(t *testing.T) {
	for _, c := range []struct {
		filled Decision
		chosen string
	}{
		{Typed(url.Values{"user_status": {Open}}, Decision{}), Open},
		{Typed(url.Values{"user_status": {"active"}}, Decision{}), "active"},
		{Decision{UserStatus: Open}.Initial(), ""},
		{Decision{UserStatus: "muted"}.Initial(), "muted"},
	} {
		status, _, _ := strings.Cut(pagetest.Text(t, Fields("x-", c.filled, false)), "</select>")
		if c.chosen == "" && strings.Contains(status, " selected") || c.chosen != "" && !strings.Contains(status, `value="`+c.chosen+`" selected`) {
			t.Errorf("want %q chosen in %s", c.chosen, status)
		}
	}
}

// The next form would otherwise restore, unnoticed, what somebody else has replaced meanwhile.
func TestAFormThatWasRefusedRestoresOnlyWhatWasTyped(t *testing.T) {
	end := time.Date(2099, 5, 4, 23, 59, 59, 0, time.UTC)
	before := Decision{"muted", new("duplicate"), &end, "One\nand two."}
	now := Decision{"active", new("used-in-tests"), new(end.AddDate(0, 1, 0)), "Bob's."}
	ended := Decision{Open, new("used-in-tests"), new(end.AddDate(-80, 0, 0)), "Bob's."}
	for _, c := range []struct {
		reason      string
		before, now Decision
		typed, want Decision
	}{
		{"nothing", before, now, before, now},
		{"the comment", before, now, Decision{"muted", before.Reason, &end, "One and two."},
			Decision{"active", now.Reason, now.ExpiresAt, "One and two."}},
		{"a reason", before, now, Decision{"muted", new("false-positive"), &end, before.Comments},
			Decision{"active", new("false-positive"), now.ExpiresAt, now.Comments}},
		{"all but the status removed", before, now, Decision{UserStatus: "muted"}, Decision{UserStatus: "active"}},
		{"another status", before, now, Decision{Open, before.Reason, &end, before.Comments},
			Decision{Open, before.Reason, &end, now.Comments}},
		{"a status and a comment on no decision", Decision{UserStatus: Open}, now,
			Decision{UserStatus: "muted", Comments: "Ada's."}, Decision{UserStatus: "muted", Comments: "Ada's."}},
		{"a status after one that has ended", Decision{Open, new("duplicate"), &end, "a"}, now,
			Decision{UserStatus: "muted", Comments: "a"}, Decision{UserStatus: "muted", Comments: now.Comments}},
		{"a comment, withdrawn meanwhile", before, Decision{UserStatus: Open},
			Decision{"muted", before.Reason, &end, "Ada's."}, Decision{UserStatus: Open, Comments: "Ada's."}},
		{"a comment, ended meanwhile", before, ended, Decision{"muted", before.Reason, &end, "Ada's."},
			Decision{UserStatus: Open, Comments: "Ada's."}},
		{"a reason, withdrawn meanwhile", before, Decision{UserStatus: Open}, Decision{"muted", nil, &end, before.Comments},
			Decision{UserStatus: Open}},
		{"a status, withdrawn meanwhile", before, Decision{UserStatus: Open}, Decision{"active", nil, &end, before.Comments},
			Decision{UserStatus: "active", ExpiresAt: &end}},
		{"a comment, withdrawn and decided again meanwhile", Decision{UserStatus: Open}, now,
			Decision{UserStatus: Open, Comments: "Ada's."}, Decision{"active", now.Reason, now.ExpiresAt, "Ada's."}},
		{"a choice on no decision, and there is still none", Decision{UserStatus: Open},
			Decision{UserStatus: Open, Comments: "a"}, Decision{UserStatus: "muted"}, Decision{UserStatus: "muted", Comments: "a"}},
	} {
		basis := pagetest.Text(t, Basis(Standing{Decision: c.before}))
		form := url.Values{"user_status": {c.typed.UserStatus}, "reason": {ptr.Deref(c.typed.Reason, "")}, "until": {c.typed.Until()},
			"comments": {strings.ReplaceAll(c.typed.Comments, "\n", "\r\n")}}
		for _, field := range regexp.MustCompile(`name="([\w.]+)" value="(\w+)"`).FindAllStringSubmatch(basis, -1) {
			form.Set(field[1], field[2])
		}
		harness.Same(t, c.reason, c.want, Typed(form, c.now))
	}
}

// inBrowser returns the value of the form's comment as a browser sends it.
func inBrowser(t *testing.T, filled Decision) string {
	t.Helper()
	document, err := html.Parse(strings.NewReader(pagetest.Text(t, Fields("x-", filled, false))))
	harness.Must(t, err)
	for node := range document.Descendants() {
		if node.Data == "textarea" && node.FirstChild != nil {
			return strings.ReplaceAll(node.FirstChild.Data, "\n", "\r\n")
		}
	}
	return ""
}

// Otherwise each save rewrites it, and a form that was refused restores it over somebody else's.
func TestACommentThatOnlyTheBrowserRewritesIsUntouched(t *testing.T) {
	for _, comments := range []string{"old", "\nold", "\r\nold", "\n\nold", "old\rand\r\nnew\n", "\rold", "\n", ""} {
		before := Decision{UserStatus: "muted", Comments: comments}
		form := url.Values{"user_status": {"active"}, "comments": {inBrowser(t, before)}}
		for _, f := range before.formFields() {
			form.Set(filledPrefix+f.name, identify(f.value))
		}
		harness.Same(t, fmt.Sprintf("%q is stored", comments), comments, *changeOf(form, before).Comments)
		after := Typed(form, Decision{UserStatus: "muted", Comments: "Bob's."})
		harness.Same(t, fmt.Sprintf("%q is not restored", comments), "Bob's.", after.Comments)
	}
}

var (
	mutedByAda     = Standing{Decision{UserStatus: "muted", Comments: "a"}, "apikey/ada", Facts{}}
	confirmedByBob = Standing{Decision{UserStatus: "active"}, "apikey/bob", Facts{}}
)

// store stores a decision about a finding that the replica answers with in turn; the last of them again and again.
func store(t *testing.T, seen string, answers ...Standing) (before Standing, overtaken bool) {
	t.Helper()
	replica := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{}`)) })
	read := func(context.Context) (now Standing, tag string, err error) {
		now, answers = answers[0], answers[min(1, len(answers)-1):]
		return now, "", nil
	}
	v := &page.Visit{API: api.New(replica, "", ""), Form: url.Values{"user_status": {Open}, "seen": {seen}}}
	before, overtaken, err := Store(t.Context(), v, "/changed", read)
	harness.Must(t, err)
	return before, overtaken
}

func TestOnesOwnDecisionIsNobodyElsesAtAReplicaThatIsBehind(t *testing.T) {
	for _, c := range []struct {
		reason    string
		answers   []Standing
		overtaken bool
	}{
		{"the replica has the decision", []Standing{mutedByAda}, false},
		{"the replica gets it", []Standing{undecided, undecided, mutedByAda}, false},
		{"somebody has decided since", []Standing{undecided, confirmedByBob}, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			started := time.Now()
			_, overtaken := store(t, mutedByAda.Seen(), c.answers...)
			harness.Same(t, c.reason, c.overtaken, overtaken)
			if took := time.Since(started); took > patience {
				t.Errorf("%s: it took %s", c.reason, took)
			}
		})
	}
}

// A second click, or the answer to the first request got lost.
func TestAFormThatIsSentTwiceIsNotOvertakenByItself(t *testing.T) {
	undecided := Standing{Decision{UserStatus: Open}, "", Facts{Severity: "low"}}
	form := url.Values{"user_status": {"muted"}, "reason": {"duplicate"}, "until": {"2099-05-04"}, "comments": {"a"}, "seen": {undecided.Seen()}}
	end := time.Date(2099, 5, 4, 23, 59, 59, 0, time.UTC)
	stored := Standing{Decision{"muted", new("duplicate"), &end, "a"}, "apikey/ada", undecided.Facts}
	for _, c := range []struct {
		reason string
		change func(*Standing)
		same   bool
	}{
		{"the same", func(*Standing) {}, true},
		{"of somebody else", func(d *Standing) { d.DecidedBy = "apikey/bob" }, false},
		{"another status", func(d *Standing) { d.UserStatus = "active" }, false},
		{"another reason", func(d *Standing) { d.Reason = nil }, false},
		{"another end", func(d *Standing) { d.ExpiresAt = nil }, false},
		{"another comment", func(d *Standing) { d.Comments = "b" }, false},
		{"about facts that were not seen", func(d *Standing) { d.Facts.Severity = "high" }, false},
		{"in doubt since", func(d *Standing) { d.Stale = "in doubt: the line moved" }, false},
	} {
		now := stored
		c.change(&now)
		harness.Same(t, c.reason, c.same, now.isOf(form, "apikey/ada"))
	}
	undecided.Stale = "in doubt: the line moved"
	form.Set("seen", undecided.Seen())
	harness.Same(t, "about a doubt that the decision has ended", true, stored.isOf(form, "apikey/ada"))
	synctest.Test(t, func(t *testing.T) {
		withdrawn := Standing{Decision{UserStatus: Open, Comments: "a"}, "apikey/", Facts{}}
		seen := Standing{Decision{UserStatus: "muted", Comments: "a"}, "apikey/", Facts{}}.Seen()
		if now, overtaken := store(t, seen, withdrawn); overtaken {
			t.Error(now.Conflict("finding", seen))
		}
	})
}

// Pages stay open while the service is updated.
func TestAPageOfAnEarlierVersionDecidesAboutWhatItHasSeen(t *testing.T) {
	const seen = "860a11556532bca3" // of muted, "a", by apikey/ada
	for now, want := range map[Standing]bool{mutedByAda: false, confirmedByBob: true} {
		synctest.Test(t, func(t *testing.T) {
			_, overtaken := store(t, seen, now)
			harness.Same(t, now.DecidedBy, want, overtaken)
		})
	}
}

func TestADecisionIsStoredOnlyIfWhatItIsAboutWasSeen(t *testing.T) {
	ended := time.Unix(1, 0)
	about := func(facts Facts) Standing { return Standing{Facts: facts, Decision: Decision{UserStatus: Open}} }
	muted := func(by string, facts Facts) Standing { return Standing{Decision{UserStatus: "muted"}, by, facts} }
	byAda, inDoubt := muted("apikey/ada", Facts{Severity: "low"}), muted("", Facts{Stale: "in doubt: the line moved"})
	eval := Facts{Severity: "low", Title: "eval", Description: "Do not.", Path: "a.js", Line: 10}
	moved := eval
	moved.Line = 200
	const changed = "The finding has changed meanwhile"
	for _, c := range []struct {
		reason    string
		now, seen Standing
		conflict  string
	}{
		{"other facts do not matter", about(Facts{Severity: "low", Code: "a", Score: 7, ToolSeverity: "HIGH"}), about(Facts{Severity: "low", Code: "a"}), ""},
		{"code with other spaces", about(Facts{Severity: "low", Code: "\n  a =\tb"}), about(Facts{Severity: "low", Code: "a = b"}), ""},
		{"a doubt", inDoubt, inDoubt, ""},
		{"a doubt that has ended", muted("", Facts{}), inDoubt, ""},
		{"another severity", muted("apikey/ada", Facts{Severity: "high"}), byAda, changed},
		{"nothing has changed", about(eval), about(eval), ""},
		{"another line without code", about(moved), about(eval), changed},
		{"in doubt since", muted("apikey/ada", Facts{Severity: "low", Stale: "in doubt: the line moved"}), byAda, changed},
		{"the end was seen", Standing{Decision{UserStatus: Open, ExpiresAt: &ended}, "", Facts{Severity: "high"}},
			Standing{Decision{UserStatus: Open, ExpiresAt: &ended}, "", Facts{Severity: "low"}}, changed},
		{"the end was not seen", Standing{Decision{UserStatus: Open, ExpiresAt: &ended}, "", Facts{}},
			Standing{Decision{UserStatus: "muted", ExpiresAt: &ended}, "", Facts{}}, "The decision has ended meanwhile"},
		{"somebody has decided about it", muted("apikey/ada", Facts{Severity: "high"}),
			about(Facts{Severity: "low"}), "apikey/ada was faster: the finding is muted now"},
	} {
		synctest.Test(t, func(t *testing.T) {
			now, overtaken := store(t, c.seen.Seen(), c.now)
			said := now.Conflict("finding", c.seen.Seen())
			if overtaken != (c.conflict != "") || overtaken && !strings.HasPrefix(said, c.conflict+".") {
				t.Errorf("%s: overtaken: %v, %q", c.reason, overtaken, said)
			}
		})
	}
}
