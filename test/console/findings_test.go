package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingtrend"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// found is the detection time of the first finding; each later finding follows an hour after the
// previous one.
var found = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// some returns n findings, alternating between high, medium and low severity, by two tools.
func some(n int) []*builder.FindingBuilder {
	severities := []v1alpha1.Level{v1alpha1.LevelHigh, v1alpha1.LevelMedium, v1alpha1.LevelLow}
	findings := make([]*builder.FindingBuilder, n)
	for i := range findings {
		findings[i] = builder.Finding(fmt.Sprintf("f-%04d", i)).Title(fmt.Sprintf("Finding number %d", i)).
			Severity(severities[i%3]).Tool([]string{"gosec", "semgrep"}[i%2], v1alpha1.CategoryCode).
			DetectedAt(found.Add(time.Duration(i) * time.Hour))
	}
	return findings
}

const rowTitles = "[...document.querySelectorAll('.row .what a')].map((a) => a.textContent)"

func TestFacetsSearchAndOrderNarrowTheListAndStayInTheAddress(t *testing.T) {
	t.Parallel()
	_, p := withFindings(t, some(6)...)
	p.goes("/console/findings")
	p.reads(".total", "6 findings")
	p.clicks(`.facet a[href="/console/findings?severity=high"]`)
	p.reads(".total", "2 findings")
	p.sees("document.querySelector('main > [role=status]').textContent === '2 findings'")
	p.sees("((word) => (word.textContent = 'long/'.repeat(40), word.scrollWidth <= word.clientWidth))(document.querySelector('.facet .word'))")
	p.reads(".chips", "Severity: high")
	p.sees("location.search === '?severity=high'")
	p.do(chromedp.SendKeys("#text", "number 3"))
	p.reads(".total", "1 finding")
	p.sees("location.search === '?severity=high&text=number+3'")
	p.presses(kb.Escape)
	p.sees("document.activeElement.id !== 'text' && document.querySelector('#text').value === 'number 3'")
	p.do(chromedp.Reload(), chromedp.WaitReady("main"))
	p.reads(".total", "1 finding")
	p.clicks(".chips .clear")
	p.reads(".total", "6 findings")
	p.sees("document.activeElement.matches('.tools summary')") // the focus stays near what is gone
	p.composes("number 4")
	p.reads(".total", "1 finding")
	p.clicks(".chips .clear")
	p.reads(".total", "6 findings")
	p.do(chromedp.NavigateBack())
	p.reads(".total", "1 finding")
	p.reads(".chips", "Text: number 4")
	p.evaluates("window.fetch = () => Promise.reject(new TypeError('Failed to fetch'))", nil)
	p.do(chromedp.NavigateBack())
	p.reads(".chips", "Severity: high", "Text: number 3") // not the list before, below another address
	p.goes("/console/findings?created_since=9999d&tool=gosec")
	p.reads(".total", "3 findings")
	p.reads(".chips", "Found since: last 9999 days, since")
	p.sees("/^[0-9]{4}-.*Z$/.test(document.querySelector('[name=\"filter.created_since\"]').value)")
	p.sees("[...document.querySelectorAll('.tools a[href*=\"/_new\"], .tools a[href*=\"format=\"]')].every((a) => !a.href.includes('9999d') && a.href.includes('created_since'))")
	p.clicks(`.facet a[href*="severity=high"]`)
	p.sees("location.search === '?created_since=9999d&severity=high&tool=gosec'")
	p.goes("/console/findings?group=repo_id&order=asc&sort=updated_at&status=open")
	p.inOneLine(".tools > *")
	p.goes("/console/findings?sort=created_at&order=asc&tool=gosec")
	var titles []string
	p.evaluates(rowTitles, &titles)
	harness.Same(t, "the list", []string{"Finding number 0", "Finding number 2", "Finding number 4"}, titles)
	p.clicks(".tools details:nth-of-type(1) summary")
	p.clicks(`.menu a[href="/console/findings?order=desc&sort=severity&tool=gosec"]`)
	p.sees("location.search === '?order=desc&sort=severity&tool=gosec'")
	p.sees("[" + rowTitles + "].join() === 'Finding number 0,Finding number 4,Finding number 2'")
	p.sees("document.activeElement.matches('.tools summary') && document.activeElement.textContent.includes('severe')")
	p.do(chromedp.EmulateViewport(320, 900))
	p.clicks(".facets summary")
	p.clicks(`.facet a[href*="severity=high"]`)
	p.reads(".chips", "Severity: high")
	p.sees("document.querySelector('.facets').open && document.activeElement.closest('.facet a')")
	p.sees(`[...document.querySelectorAll(".tools .sort")].every((menu) => {
		menu.open = true;
		const box = menu.querySelector(".menu").getBoundingClientRect();
		menu.open = false;
		return box.width > 0 && box.left >= 0 && box.right <= innerWidth;
	})`)
}

// Titles of scanners are often longer.
func TestASearchOfTooManyWordsIsNotSentAndSaysWhy(t *testing.T) {
	t.Parallel()
	_, p := withFindings(t, some(2)...)
	p.goes("/console/findings")
	p.do(chromedp.SetValue("#text", "number a b c d e f g h"), chromedp.SendKeys("#text", "i"))
	p.sees("document.querySelector('#text').validationMessage === 'A search has at most 8 words: leave some out.'")
	p.do(chromedp.SendKeys("#text", kb.Enter))
	p.sees("location.search === '' && !document.querySelector('#messages .message')")
	p.do(chromedp.SendKeys("#text", kb.Backspace+kb.Backspace+kb.Backspace))
	p.reads(".total", "0 findings")
	p.sees("location.search === '?text=number+a+b+c+d+e+f+g' && document.querySelector('#text').validity.valid")
}

// composes types into the search with an input method, and expects a search only when the composition has ended.
func (p *person) composes(words string) {
	p.Helper()
	var early int
	p.evaluates(fmt.Sprintf(`((field, start) => {
		let started = 0;
		window.setTimeout = (...timer) => { started++; return start(...timer); };
		field.value = %s;
		field.dispatchEvent(new InputEvent("input", { bubbles: true, isComposing: true }));
		window.setTimeout = start;
		field.dispatchEvent(new CompositionEvent("compositionend", { bubbles: true }));
		return started;
	})(document.querySelector("#text"), window.setTimeout)`, quoted(words)), &early)
	harness.Same(p, "timers that start while words are composed", 0, early)
}

// inOneLine expects the elements to be beside each other.
func (p *person) inOneLine(selector string) {
	p.Helper()
	p.sees(fmt.Sprintf("((boxes) => Math.max(...boxes.map((b) => b.top)) < Math.min(...boxes.map((b) => b.bottom)))"+
		"([...document.querySelectorAll(%s)].map((e) => e.getBoundingClientRect()))", quoted(selector)))
}

func TestGroupsHaveTheirCountsAndAreOpenedOnDemand(t *testing.T) {
	t.Parallel()
	o := newOrganization(t)
	o.has(some(6)...)
	ofRule := func(f *v1alpha1.Finding) { f.Spec.RuleID = "G101" }
	o.has(builder.Finding("f-key").Title("Hard-coded key").Severity(v1alpha1.LevelHigh).DetectedAt(found).Mutate(ofRule),
		builder.Finding("f-token").Title("Hard-coded key").Severity(v1alpha1.LevelMedium).DetectedAt(found).Mutate(ofRule))
	o.has(builder.Finding("f-low").Title("Of no tool").Severity(v1alpha1.LevelLow).DetectedAt(found).Mutate(func(f *v1alpha1.Finding) {
		f.Spec.RuleID, f.Spec.Details.Location = "", &v1alpha1.FileLocation{FilePath: "src/api/a.go"}
	}))
	p := loggedIn(t, o.key("ada"))
	p.goes("/console/findings?sort=created_at&order=asc")
	p.clicks(".tools details:nth-of-type(2) summary")
	p.presses(kb.Escape)
	p.sees("!document.querySelector('.tools details[open]') && document.activeElement.textContent.startsWith('Group')")
	p.clicks(".tools details:nth-of-type(2) summary")
	p.clicks(`.menu a[href*="group=severity"]`)
	p.sees("[...document.querySelectorAll('.group summary')].map((s) => s.innerText.replace(/\\s+/g, ' ')).join() === 'high 3,medium 3,low 3'")
	p.sees("location.search.includes('group=severity') && !document.querySelector('.row')")
	p.clicks(".groups li:nth-child(3) summary")
	p.sees("[" + rowTitles + "].join() === 'Of no tool,Finding number 2,Finding number 5'")
	p.presses("j", "m")
	p.do(chromedp.SetValue("#one-reason", "duplicate"))
	p.presses(kb.Enter)
	p.reads("#finding-f-low .state", "muted")
	p.clicks(".groups li:nth-child(3) summary")
	p.presses("x") // about no row that nobody sees
	p.sees("!document.querySelector('.row :checked')")
	p.clicks(".groups li:nth-child(3) summary")
	p.clicks(".groups li:nth-child(3) .only a")
	p.reads(".total", "3 findings")
	p.sees("location.search === '?order=asc&severity=low&sort=created_at'")
	p.goes("/console/findings?file=src/&group=rule")
	p.reads(".total", "1 finding")
	p.reads("#selection", "1 finding has none and is in no group.")
	p.goes("/console/findings?group=rule")
	p.sees("document.querySelector('.group summary').innerText.replace(/\\s+/g, ' ') === 'Hard-coded key G101 high 1 medium 1 2'")
	p.clicks(".group summary")
	p.clicks(`.group a[href^="/console/policies/_new"]`)
	p.sees(`document.querySelector("#match")?.value === "finding.ruleID == 'G101'"`)
	p.goes("/console/findings?group=rule")
	p.clicks(".group summary")
	p.barriers("a group with its actions")
	p.clicks(`.group a[href*="all=true"]`)
	p.sees("document.activeElement.id === 'many-reason' && document.querySelector('input[name=\"all\"]').checked")
	p.do(chromedp.SetValue("#many-reason", "duplicate"), chromedp.Submit("#many-reason"))
	p.reads(".operation", "Apply it to 2 findings", "Rule", "G101")
}

func TestTheListScrollsThroughAllRowsWithNoneTwice(t *testing.T) {
	t.Parallel()
	const n = 240 // three pages
	o := newOrganization(t)
	p := loggedIn(t, o.key("ada"))
	p.goes("/console/findings")
	findings := some(n)
	findings[0].Mutate(func(f *v1alpha1.Finding) { f.Name = "main" }) // like a part of the page
	o.has(findings...)
	p.reads(".news", "100 or more new findings, show")
	p.loads("/console/findings", 150_000)
	p.scrollsThrough(n)
	p.goes("/console/findings")
	p.presses(append([]string{"x"}, slices.Repeat([]string{"j"}, 20)...)...)
	p.sees(`document.activeElement.closest(".row").getBoundingClientRect().bottom <= document.querySelector(".selection.used").getBoundingClientRect().top`)
	p.goes("/console/findings?sort=severity")
	p.scrollsThrough(n)
	p.sees("[...document.querySelectorAll('.row .severity')].map((s) => s.textContent).join() === " +
		"['high', 'medium', 'low'].flatMap((word) => Array(80).fill(word)).join()")
}

// scrollsThrough expects a list with that many different rows.
func (p *person) scrollsThrough(n int) {
	p.Helper()
	p.sees(fmt.Sprintf("(window.scrollTo(0, document.body.scrollHeight), document.querySelectorAll('.row').length === %d)", n))
	p.sees("!document.querySelector('[data-next]')")
	var ids []string
	p.evaluates("[...document.querySelectorAll('.row')].map((row) => row.id)", &ids)
	slices.Sort(ids)
	harness.Same(p, "rows that are different", n, len(slices.Compact(ids)))
}

func TestAFindingIsDecidedByKeysAndTheDecisionUndone(t *testing.T) {
	t.Parallel()
	o := newOrganization(t)
	o.has(some(3)...)
	o.has(builder.Finding("decision").Title("Decided already").DetectedAt(found.Add(24*time.Hour)).
		Triage(v1alpha1.UserStatusActive, "Looked at it."))
	p := loggedIn(t, o.key("ada"))
	p.goes("/console/findings")
	p.sees("document.querySelector('label[for=one-reason]').textContent === 'Reason, optional'")
	o.requiresReasons(p)
	p.presses("j", "m")
	p.sees("document.querySelector('#decision').open")
	p.presses(kb.Enter)
	p.reads("#one-missing", "Choose a reason: your organization requires one to mute")
	p.sees("document.querySelector('#decision').open && document.activeElement.id === 'one-reason' && document.activeElement.ariaInvalid === 'true'")
	p.barriers("a decision that lacks its reason")
	p.do(chromedp.SetValue("#one-reason", "used-in-tests"), chromedp.SendKeys("#one-comments", "A fixture."))
	p.presses(kb.Enter)
	p.reads("#finding-decision .state", "muted", "apikey/ada")
	want := v1alpha1.FindingTriage{UserStatus: "muted", Reason: v1alpha1.DecisionUsedInTests, Comments: "A fixture.", By: "apikey/ada", Basis: "rated=low"}
	harness.Same(t, "the decision", want, o.finding("decision").Spec.Triage)
	p.presses("u")
	p.reads("#messages", "Undone")
	p.reads("#finding-decision .state", "confirmed")
	want = v1alpha1.FindingTriage{UserStatus: "active", Comments: "Looked at it.", By: "apikey/ada", Basis: "rated=low"}
	harness.Same(t, "the decision, undone", want, o.finding("decision").Spec.Triage)
	p.presses("j", "c")
	p.reads("#finding-f-0002 .state", "confirmed")
	p.presses("o")
	p.reads("#finding-f-0002 .state", "open")
}

// requiresReasons makes the organization require a reason for muting, and waits until the person's list
// shows it.
func (o *organization) requiresReasons(p *person) {
	o.Helper()
	org := builder.Organization(o.name).Build()
	env.Patch(o.TB, org, `{"spec":{"triage":{"requireReason":true}}}`)
	harness.Eventually(o.TB, func(g Gomega) {
		p.goes("/console/findings")
		var label string
		p.evaluates("document.querySelector('label[for=one-reason]').textContent", &label)
		g.Expect(label).To(Equal("Reason; required to mute"))
	})
}

func TestADecisionStartsWithAnEmptyForm(t *testing.T) {
	t.Parallel()
	o, p := withFindings(t, some(3)...)
	p.goes("/console/findings")
	p.presses("c")
	p.sees("document.activeElement.closest('.row')?.id === 'finding-f-0002'")
	p.presses("m")
	p.do(chromedp.SetValue("#one-reason", "duplicate"), chromedp.SetValue("#one-until", "2099-05-04"), chromedp.SendKeys("#one-comments", "Of another."))
	p.do(chromedp.SetValue("#one-until", "2001-05-04"))
	p.presses(kb.Enter)
	p.sees("document.querySelector('#decision').open && document.querySelector('#one-comments').value === 'Of another.' && " +
		"!document.querySelector('#one-until').validity.valid")
	p.clicks(`#decision button[value="cancel"]`)
	p.presses("j", "m", "m")
	p.sees("document.querySelector('#decision').open && document.querySelector('#one-reason').value === ''")
	p.presses(kb.Enter)
	p.reads("#finding-f-0001 .state", "muted")
	p.presses("k", "c", "u")
	p.reads("#messages", "Undone")
	p.reads("#finding-f-0002 .state", "open")
	for name, want := range map[string]v1alpha1.UserStatus{"f-0000": v1alpha1.UserStatusOpen, "f-0001": v1alpha1.UserStatusMuted, "f-0002": v1alpha1.UserStatusOpen} {
		if got := o.finding(name).Spec.Triage; got.UserStatus != want || got.Reason != "" || got.ExpiresAt != nil || got.Comments != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	p.do(chromedp.Focus("#finding-f-0001 input"))
	p.presses("m")
	p.do(chromedp.SetValue("#one-reason", "duplicate"), chromedp.SetValue("#one-until", "2099-05-04"))
	p.presses(kb.Enter)
	p.sees("document.querySelector('#finding-f-0001').dataset.reason === 'duplicate'")
	p.presses("m")
	p.do(chromedp.SendKeys("#one-comments", "Still."))
	p.presses(kb.Enter)
	harness.Eventually(t, func(g Gomega) {
		got := o.finding("f-0001").Spec.Triage
		g.Expect(got.Comments).To(Equal("Still."))
		g.Expect(got.Reason).To(Equal(v1alpha1.DecisionDuplicate))
		g.Expect(got.ExpiresAt).NotTo(BeNil())
	})
}

func TestThePanelShowsADecisionMadeByKey(t *testing.T) {
	t.Parallel()
	o, p := withFindings(t, some(2)...)
	p.goes("/console/findings")
	p.presses("j", kb.Enter)
	p.reads("#panel", "Undecided: no person has decided")
	p.sees("document.querySelector('#panel').contains(document.activeElement)")
	p.presses("c")
	p.reads("#panel", "Confirmed by apikey/ada")
	p.clicks("#panel .decide summary")
	p.do(chromedp.SetValue("#this-status", "muted"))
	p.clicks("#panel .decide button")
	p.reads("#panel", "Muted by apikey/ada")
	p.presses("u", "u")
	p.reads("#finding-f-0001 .state", "open")
	p.reads("#panel", "Undecided: decision or comment last changed by apikey/ada")
	o.decides(o.key("bob"), "f-0000", `{"user_status":"muted"}`)
	p.reads("#finding-f-0000.changed .age", "changed")
	p.sees("!document.querySelector('#panel .news-of')") // one's own decisions, which came before, are not shown as news
	p.holdsRequests(`at.endsWith("/f-0000")`)
	p.presses("c", "j")
	p.reads("#finding-f-0001 .state", "confirmed", "apikey/ada") // the answer comes before the page of the next finding
	p.sees("document.querySelector('#panel').ariaBusy === 'true'")
	p.evaluates("release()", nil)
	p.reads("#panel h1", "Finding number 0")
	p.sees("document.querySelector('#panel').ariaBusy === 'false'")
	p.evaluates(`((any) => {
		window.asked = 0;
		AbortSignal.any = (signals) => {
			window.asked++; // what only looks for news ends by its time alone
			return any.call(AbortSignal, signals);
		};
		for (const key of "kjkjkjk") {
			document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, repeat: true, bubbles: true }));
		}
	})(AbortSignal.any)`, nil)
	p.reads("#panel h1", "Finding number 1")
	p.sees("asked === 1") // keys that are held down show only the last finding
}

func TestUnknownFiltersInAnAddressAreRefused(t *testing.T) {
	o := newOrganization(t)
	v := newUser(t, o.key("ada", v1alpha1.Scopes()...))
	for query, words := range map[string]string{
		"severty=high": "There is no filter", "severity=high&severity=low": "given more than once", "severity=foo": "must be one of", "cursor=x": "start again without it",
		"group=title": "not grouped by", "created_since=7x": "must be a date-time",
		"severity=high;status=open": "is damaged", "status=open&amp;severity=high": "is damaged", "status=open&text=50%": "is damaged",
	} {
		if answer := v.asks("/console/findings?"+query, nil); answer.StatusCode != http.StatusBadRequest || !strings.Contains(answer.text, words) {
			t.Errorf("%s: %s\n%s", query, answer.Status, answer.text)
		}
	}
	for _, list := range []string{"deliveries", "scans", "reviews", "reviews/rv-1", "operations", "policies", "keys"} {
		for _, query := range []string{"about=lodash", "status=failed&status=pending"} {
			harness.Same(t, list+" by "+query, http.StatusBadRequest, v.asks("/console/"+list+"?"+query, nil).StatusCode)
		}
	}
}

func TestADecisionThatCameTooLateChangesNothingAndSaysWhoWasFaster(t *testing.T) {
	t.Parallel()
	o, p := withFindings(t, some(1)...)
	bob := o.key("bob")
	faster := loggedIn(t, bob)
	p.goes("/console/findings")
	faster.goes("/console/findings")
	slow := loggedIn(t, o.key("eve"))
	slow.goes("/console/findings/f-0000")
	beside := loggedIn(t, o.key("lee"))
	beside.goes("/console/findings")
	beside.presses("j", kb.Enter)
	beside.clicks("#panel .decide summary")
	beside.do(chromedp.SetValue("#this-status", "muted"), chromedp.SetValue("#this-comments", "Typed."))
	faster.presses("j", "c")
	faster.reads("#finding-f-0000 .state", "confirmed", "apikey/bob")
	p.presses("j", "o")
	p.reads("#messages", "apikey/bob was faster")
	p.reads("#finding-f-0000 .state", "confirmed", "apikey/bob")
	harness.Same(t, "the decision", v1alpha1.FindingTriage{UserStatus: "active", By: "apikey/bob", Basis: "rated=high"}, o.finding("f-0000").Spec.Triage)
	slow.clicks(".decide summary")
	slow.do(chromedp.SetValue("#this-status", "muted"), chromedp.SetValue("#this-comments", "Typed."), chromedp.Submit("#this-status"))
	slow.reads(".conflict", "apikey/bob was faster")
	typed := "document.querySelector('.decide').open && document.querySelector('#this-comments').value === 'Typed.'"
	slow.sees(typed)
	beside.clicks("#panel .decide button")
	beside.reads("#messages", "apikey/bob was faster")
	beside.reads("#panel", "Confirmed by apikey/bob")
	beside.sees(typed)
	beside.sees("document.querySelector('#panel form').contains(document.activeElement)")
	beside.clicks("#panel .decide button")
	beside.reads("#panel", "Muted by apikey/lee")
	slow.goes("/console/findings#f-0000")
	slow.clicks("#panel .decide summary")
	slow.do(chromedp.SetValue("#this-comments", "Typed later."))
	beside.presses("c")
	slow.clicks("#panel .news-of")
	slow.reads("#panel", "Confirmed by apikey/lee")
	slow.sees(strings.Replace(typed, "Typed.", "Typed later.", 1))
	slow.sees("document.querySelector('#this-status').value === 'active'") // not edited, so it is that of the new decision
	o.decides(o.key("ann"), "f-0000", `{"user_status":"muted","reason":"duplicate","comments":"Of ann."}`)
	slow.clicks("#panel .decide button")
	slow.reads("#panel", "Muted by apikey/ann")
	slow.sees(strings.Replace(typed, "Typed.", "Typed later.", 1) +
		" && document.querySelector('#this-status').value === 'muted' && document.querySelector('#this-reason').value === 'duplicate'")
	slow.do(chromedp.SetValue("#this-status", "active"))
	o.decides(bob, "f-0000", `{"user_status":"muted","reason":"used-in-tests"}`)
	slow.clicks("#panel .decide button")
	slow.reads("#panel", "Muted by apikey/bob")
	slow.sees("document.querySelector('#this-status').value === 'active' && document.querySelector('#this-reason').value === 'duplicate'")
	slow.clicks("#panel .decide button")
	slow.reads("#panel", "Confirmed by apikey/eve")
	slow.clicks("#panel .decide summary")
	slow.do(chromedp.SetValue("#this-comments", "Mended."))
	o.decides(bob, "f-0000", `{"user_status":"open"}`)
	slow.clicks("#panel .decide button")
	slow.reads("#messages", "undecided now")
	const withdrawn = "document.querySelector('#this-status').value === 'open' && " +
		"document.querySelector('#this-comments').value === "
	slow.sees(withdrawn + "'Mended.'") // the browser would choose to mute
	o.decides(bob, "f-0000", `{"user_status":"active"}`)
	slow.reads("#finding-f-0000 .age", "changed")
	slow.clicks("#panel .close")
	slow.sees("document.querySelector('#panel').hidden && !location.hash")
	slow.clicks("#finding-f-0000 .what a")
	slow.sees("document.querySelector('#panel .decide')?.open")
	slow.do(chromedp.SetValue("#this-comments", "Not sent."))
	o.decides(bob, "f-0000", `{"user_status":"open"}`)
	slow.clicks("#panel .news-of")
	slow.sees(withdrawn + "'Not sent.'")
	o.decides(bob, "f-0000", `{"user_status":"muted"}`)
	slow.clicks("#panel .news-of")
	slow.sees(strings.Replace(withdrawn, "open", "muted", 1) + "'Not sent.'") // nobody has chosen to withdraw
	slow.do(chromedp.SetValue("#this-status", "active"))
	o.decides(bob, "f-0000", `{"user_status":"muted","reason":"duplicate","expires_at":"2099-05-04T15:00:00Z"}`)
	slow.clicks("#panel .news-of")
	slow.reads("#panel", "Muted by apikey/bob")
	slow.sees("document.querySelector('#this-status').value === 'active' && " +
		"document.querySelector('#this-reason').value + document.querySelector('#this-until').value === ''")
	beside.goes("/console/findings")
	beside.presses("j", "m")
	const one = "document.querySelector('#decision').open && " +
		"document.querySelector('#one-reason').value + document.querySelector('#one-until').value === "
	beside.sees(one + "'duplicate2099-05-04'") // those of the mute in force
	beside.reads("#decision", "Until (15:00 UTC; another day: until its end)")
	o.decides(bob, "f-0000", `{"user_status":"open"}`)
	slow.goes("/console/findings")
	slow.presses("j", "m")
	slow.sees(one + "''")
	slow.reads("#decision", "Until (end of the day, UTC)")
	o.decides(bob, "f-0000", `{"user_status":"muted","reason":"duplicate","expires_at":"2099-05-04T23:59:59Z"}`)
	slow.presses(kb.Enter)
	slow.reads("#messages", "apikey/bob was faster")
	slow.presses("m")
	slow.sees(one + "''") // as sent
	o.decides(bob, "f-0000", `{"user_status":"open"}`)
	p.goes("/console/scans")
	p.goes("/console/findings#f-0000")
	p.clicks("#panel .decide summary")
	p.do(chromedp.SetValue("#this-reason", "duplicate"))
	o.decides(bob, "f-0000", `{"user_status":"active","expires_at":"2099-05-04T23:59:59Z"}`)
	p.clicks("#panel .news-of")
	p.reads("#panel", "Confirmed by apikey/bob")
	p.sees("['status', 'reason', 'until'].map((name) => document.querySelector('#this-' + name).value).join() === 'muted,duplicate,'")
}

func TestARefusedDecisionByKeyIsOfferedAgain(t *testing.T) {
	t.Parallel()
	o, p := withFindings(t, some(2)...)
	bob := o.key("bob")
	faster := loggedIn(t, bob)
	// A row shows a decision before it is stored.
	stored := func(want v1alpha1.UserStatus) {
		t.Helper()
		harness.Eventually(t, func(g Gomega) { g.Expect(o.finding("f-0001").Spec.Triage.UserStatus).To(Equal(want)) })
	}
	p.goes("/console/findings")
	o.decides(bob, "f-0001", `{"user_status":"active","expires_at":"2099-05-04T23:59:59Z"}`)
	faster.goes("/console/findings")
	faster.presses("j", "m")
	faster.sees("document.querySelector('#decision').open && document.querySelector('#one-status').value === 'muted'")
	faster.sees("document.querySelector('#one-until').value === ''") // not that of the confirmation
	faster.clicks(`#decision button[value="cancel"]`)
	p.presses("j", "m")
	p.do(chromedp.SetValue("#one-reason", "duplicate"))
	p.presses(kb.Enter)
	p.reads("#messages", "Finding number 1", "apikey/bob was faster", "Decide again")
	p.presses("m")
	p.reads("#decision", "Decide: Finding number 1")
	p.sees("document.querySelector('#decision').open && document.querySelector('#one-reason').value === 'duplicate'")
	p.sees("document.querySelector('#one-until').value === ''") // as sent, not that of the confirmation
	p.clicks(`#decision button[value="cancel"]`)
	p.presses("j", "c")
	p.reads("#messages", "Decided: Finding number 0.", "Finding number 1", "apikey/bob was faster") // what came later did not take its place
	// The row is not in the list when it is decided about once more.
	p.presses("/")
	p.do(chromedp.SendKeys("#text", "zzz"))
	p.sees("!document.querySelector('.row')")
	faster.presses("o")
	faster.reads(".row:first-child .state", "open")
	stored(v1alpha1.UserStatusOpen)
	p.clicks("#messages .wrong button")
	p.sees("document.querySelector('#decision').open && document.querySelector('#one-reason').value === 'duplicate'")
	p.presses(kb.Enter)
	p.reads("#messages .wrong", "faster")
	harness.Same(t, "the decision", v1alpha1.FindingTriage{UserStatus: "open", By: "apikey/bob"}, o.finding("f-0001").Spec.Triage)
	p.goes("/console/findings")
	p.presses("j", kb.Enter)
	p.clicks("#panel .decide summary")
	p.do(chromedp.SetValue("#this-status", "muted"), chromedp.SetValue("#this-comments", "Typed in the panel."))
	p.holds()
	p.clicks("#panel .decide button")
	p.presses("j")
	faster.presses("c")
	faster.reads(".row:first-child .state", "confirmed")
	stored(v1alpha1.UserStatusActive)
	p.evaluates("release()", nil)
	p.reads("#messages .wrong", "Finding number 1", "apikey/bob was faster", "Decide again")
	p.reads("#panel h1", "Finding number 0")
	p.clicks("#messages .wrong button")
	p.reads("#panel h1", "Finding number 1")
	const typed = "document.querySelector('.decide').open && document.querySelector('#this-comments').value === 'Typed in the panel.'"
	p.sees(typed)
	p.holds()
	p.clicks("#panel .decide button")
	p.presses(kb.Escape)
	p.sees("document.querySelector('#panel').hidden && !location.hash")
	p.presses(kb.Enter) // the panel shows another form about the same finding
	faster.presses("o")
	faster.reads(".row:first-child .state", "open")
	stored(v1alpha1.UserStatusOpen)
	p.evaluates("release()", nil)
	p.reads("#messages .wrong", "Finding number 1", "undecided now", "Decide again")
	p.clicks("#messages .wrong button")
	p.sees(typed)
	p.clicks("#panel .decide button")
	p.reads("#panel", "Muted by apikey/ada")
	p.clicks("#panel .decide summary")
	p.do(chromedp.SetValue("#this-status", "active"), chromedp.SetValue("#this-comments", "Sent from the panel."))
	p.holdsRequests(posts)
	p.clicks("#panel .decide button")
	p.presses(kb.Escape)
	p.sees("document.querySelector('#panel').hidden && !location.hash")
	p.presses(kb.Enter)
	p.reads("#panel", "Muted by apikey/ada")
	p.clicks("#panel .decide summary")
	p.do(chromedp.SetValue("#this-comments", "Typed meanwhile."))
	p.evaluates("release()", nil)
	p.reads("#panel", "Confirmed by apikey/ada")
	p.sees("document.querySelector('#this-comments').value === 'Typed meanwhile.'")
}

// holds keeps requests to the service back until release() is called in the page, and counts the forms answered then.
func (p *person) holds() {
	p.Helper()
	p.holdsRequests("true")
}

// holdsRequests holds only requests for which the expression is true.
func (p *person) holdsRequests(expression string) {
	p.Helper()
	p.evaluates(fmt.Sprintf(`((send) => {
		window.answered = 0;
		window.unheld = send;
		const released = new Promise((release) => { window.release = () => void release(); });
		window.fetch = async (at, request) => {
			if (%s) await released;
			return send(at, request).finally(() => { window.answered += request?.method === "POST"; });
		};
	})(window.unheld ?? window.fetch)`, expression), nil)
}

// posts is an expression for holdsRequests.
const posts = `request?.method === "POST"`

const mayLeave = "window.dispatchEvent(new Event('beforeunload', { cancelable: true }))"

// Some scanners write titles as sentences.
func TestMessagesAboutADecisionEndInOneFullStop(t *testing.T) {
	t.Parallel()
	_, p := withFindings(t, some(1)[0].Title("Errors are unhandled."))
	p.goes("/console/findings")
	p.presses("j", "c")
	p.sees(`/Decided: Errors are unhandled\.(?!\.)/.test(document.querySelector("#messages").innerText)`)
	p.presses("u")
	p.sees(`/Undone: Errors are unhandled\.(?!\.)/.test(document.querySelector("#messages").innerText)`)
}

func TestDecisionsThatWaitedRestOnWhatWasSeen(t *testing.T) {
	t.Parallel()
	o, p := withFindings(t, some(2)...)
	faster := newVisitor(t)
	p.goes("/console/findings")
	faster.logsIn(o.key("bob"))
	faster.asks("/console/findings/f-0001", mute(faster.token()))
	p.holds()
	p.presses("j", "c", "o")
	p.sees("!" + mayLeave)
	p.evaluates("release()", nil)
	p.sees("answered === 2 && " + mayLeave)
	p.reads("#finding-f-0001 .state", "muted", "apikey/bob")
	p.reads("#messages .wrong", "Finding number 1", "apikey/bob was faster")
	harness.Same(t, "the decision", v1alpha1.FindingTriage{UserStatus: "muted", By: "apikey/bob", Basis: "rated=medium"}, o.finding("f-0001").Spec.Triage)
	p.holds()
	p.presses("j", "c", "m") // the answer to c comes while the dialog is open
	p.do(chromedp.SetValue("#one-reason", "duplicate"))
	p.evaluates("release()", nil)
	p.sees("answered === 1 && " + mayLeave)
	p.presses(kb.Enter)
	p.sees("answered === 2 && " + mayLeave)
	p.reads("#finding-f-0000 .state", "muted", "apikey/ada")
	p.clicks("#finding-f-0000 .what a")
	p.clicks("#panel .decide summary")
	p.holds()
	p.presses("c") // the panel's form shows the decision before
	p.clicks("#panel .decide button")
	p.evaluates("release()", nil)
	p.sees("answered === 2 && " + mayLeave)
	p.reads("#finding-f-0000 .state", "muted", "apikey/ada")
	p.presses(kb.Escape)
	p.holds()
	p.evaluates("void (AbortSignal.timeout = () => AbortSignal.abort(new DOMException('', 'TimeoutError')))", nil)
	p.presses("c", "m")
	p.do(chromedp.SetValue("#one-reason", "duplicate"))
	p.presses(kb.Enter)
	p.reads("#finding-f-0000 .state", "muted")
	p.evaluates("release()", nil)
	p.sees("answered === 2 && " + mayLeave)
	p.reads("#messages .wrong:last-child", "Finding number 0", "The service did not answer. Load the page again")
	p.reads("#finding-f-0000 .state .is-muted", "muted")
	p.goes("/console/findings")
	p.evaluates(`((send) => {
		window.lost = 0;
		const released = new Promise((release) => { window.release = () => void release(); });
		window.fetch = async (at, request) => {
			if (request.method !== "POST") {
				await released;
				return send(at, request);
			}
			await send(at, request);
			if (window.lost++) return new Response("", { status: 504 });
			throw new TypeError("Failed to fetch");
		};
	})(window.fetch)`, nil)
	p.presses("j", "j", "c")
	p.sees("window.lost === 1 && " + mayLeave) // who leaves loses no decision: it is only looked up
	p.reads("#messages .wrong", "Finding number 0", "The service did not answer. Load the page again")
	p.evaluates("release()", nil)
	p.reads("#finding-f-0000 .state", "confirmed", "apikey/ada") // it is stored all the same
	p.evaluates("document.querySelector('#messages .wrong').remove()", nil)
	p.presses("o")
	p.sees("window.lost === 2")
	p.reads("#messages .wrong", "Finding number 0", "The service did not answer. Load the page again")
	p.reads("#finding-f-0000 .state", "open") // a proxy has answered
}

func TestARefusedUndoGivesWayToTheOneBefore(t *testing.T) {
	t.Parallel()
	o, p := withFindings(t, some(2)...)
	faster := newVisitor(t)
	p.goes("/console/findings")
	p.presses("j", "c", "j", "c")
	p.reads("#finding-f-0000 .state", "confirmed", "apikey/ada")
	faster.logsIn(o.key("bob"))
	faster.asks("/console/findings/f-0000", mute(faster.token()))
	p.presses("u")
	p.reads("#messages .wrong", "Finding number 0", "apikey/bob was faster")
	p.presses("u")
	p.reads("#messages", "Undone: Finding number 1.")
	p.reads("#finding-f-0001 .state", "open")
	p.reads("#finding-f-0000 .state", "muted", "apikey/bob")
	p.presses("k", "c", "j", "c")
	p.reads("#finding-f-0000 .state", "confirmed", "apikey/ada")
	o.requiresReasons(loggedIn(t, o.key("eve")))
	p.presses("u") // it was muted without a reason
	p.reads("#messages .wrong:last-child", "Finding number 0", "reason")
	p.presses("u")
	p.reads("#finding-f-0001 .state", "open")
	p.reads("#finding-f-0000 .state", "confirmed", "apikey/ada")
}

func TestAnUndoIsOfTheDecisionThatWasMeant(t *testing.T) {
	t.Parallel()
	o, p := withFindings(t, some(2)...)
	p.goes("/console/findings")
	p.presses("j", "c", "j", "c")
	p.reads("#messages", "Decided: Finding number 0.")
	p.presses("k", "c", "u")
	p.reads("#messages", "Nothing was undone: Finding number 1. It was decided so already.")
	p.reads("#finding-f-0001 .state", "confirmed", "apikey/ada") // it was not the last one
	faster := newUser(t, o.key("bob"))
	faster.asks("/console/findings/f-0000", url.Values{"token": {faster.token()}, "user_status": {"open"}})
	p.presses("j", "o", "u")
	p.reads("#messages", "Nothing was undone: Finding number 0. The decision was not stored.")
	p.reads("#finding-f-0001 .state", "confirmed", "apikey/ada")
	const undoes = "#messages .message:last-child:not(.wrong) button"
	p.presses("k", "o")
	p.reads(undoes, "Undo (u)")
	p.holdsRequests(posts)
	p.presses("j", "c")
	p.clicks(undoes) // of the message about the other
	p.evaluates("release()", nil)
	p.reads("#messages", "Undone: Finding number 1.")
	p.reads("#finding-f-0001 .state", "confirmed", "apikey/ada")
	p.reads("#finding-f-0000 .state", "confirmed", "apikey/ada")
	p.presses("o")
	p.reads(undoes, "Undo (u)")
	p.holdsRequests(posts)
	p.presses("c")
	p.clicks(undoes) // an older one about the same finding
	p.evaluates("release()", nil)
	p.reads("#messages", "Nothing was undone: Finding number 0. You have decided about it again since: undo that first.")
	p.reads(undoes, "Undo the later one")
	p.clicks(undoes)
	p.reads("#finding-f-0000 .state", "open")
	p.presses("u")
	p.reads("#finding-f-0000 .state", "confirmed", "apikey/ada")
	p.reads("#finding-f-0001 .state", "confirmed", "apikey/ada")
	p.presses("o")
	p.reads(undoes, "Undo (u)")
	p.answersOnce(`new Response("{}", { status: 429 })`)
	p.clicks(undoes)
	p.reads("#messages .wrong:last-child", "Finding number 0", "429")
	p.presses("k", "o")
	p.reads("#finding-f-0001 .state", "open")
	p.clicks("#messages .wrong:nth-last-child(2) button")
	p.reads("#messages", "Undone: Finding number 0.")
	p.reads("#finding-f-0000 .state", "confirmed", "apikey/ada")
	p.answersOnce(`new Response("{}", { status: 429 })`)
	p.presses("u")
	p.reads("#messages .wrong:last-child button", "Undo again")
	p.presses("u")
	p.reads("#messages", "Undone: Finding number 1.")
	p.sees("!document.querySelector('#messages').innerText.includes('Undo again')")
	p.answersOnce(`send(at, request).then((answer) => answer.json()).then(({ undo, ...rest }) => Response.json(rest))`)
	p.presses("o", "u") // as if it had been in doubt
	p.reads("#messages", "Nothing was undone: Finding number 1. The same decision stood before.")
	p.answersOnce(`send(at, request).then(() => Response.json({ title: "Something went wrong", next: "Look." }, { status: 500 }))`)
	p.presses("c")
	p.reads("#messages .wrong:last-child", "Finding number 1", "Something went wrong · Look.")
	p.reads("#finding-f-0001 .state", "confirmed", "apikey/ada") // it was stored all the same
	p.presses("u")
	p.reads("#messages", "Nothing was undone: Finding number 1. It is not known whether it was decided.")
}

// answersOnce replaces the answer to the page's next form by the expression.
func (p *person) answersOnce(expression string) {
	p.Helper()
	p.evaluates(fmt.Sprintf(`((send) => {
		window.fetch = (at, request) => {
			if (!(%s)) return send(at, request);
			window.fetch = send;
			return Promise.resolve(%s);
		};
	})(window.fetch)`, posts, expression), nil)
}

func TestAFindingIsShownBesideTheListAndOnItsOwnPage(t *testing.T) {
	t.Parallel()
	o := newOrganization(t)
	o.has(builder.Finding("f-shown").Title("SQL injection").Mutate(func(f *v1alpha1.Finding) {
		f.Spec.Details.Description = "A **strong** word, and `code`."
		f.Spec.Details.Location = &v1alpha1.FileLocation{FilePath: "orders/list.go", LineNumber: 14}
		f.Spec.Details.Code = "return db.Query(\"select \" + name)"
		f.Spec.Details.Remediation = "Use a parameter."
		f.Spec.RuleID = "G201"
	}).DetectedAt(found), builder.Finding("f-like").Title("A like one").DetectedAt(found.Add(time.Hour)).Mutate(func(f *v1alpha1.Finding) {
		f.Spec.RuleID = "G201"
	}))
	env.Create(t, builder.WebhookDelivery("d-shown", time.Now()).Endpoint("absent").In(o.namespace).Mutate(func(d *v1alpha1.WebhookDelivery) {
		d.Spec.Event.Type, d.Spec.Event.Subject = "finding.created", v1alpha1.WebhookEventSubject{Kind: "Finding", Name: "f-shown"}
	}).Build())
	p := newPerson(t)
	p.goes("/console/findings?severity=low#f-shown") // an address that somebody shared
	p.logsIn("no key")
	p.reads("#wrong", "not valid")
	p.logsIn(o.key("ada", v1alpha1.Scopes()...))
	p.reads("#panel", "SQL injection")
	p.sees("location.search === '?severity=low' && location.hash === '#f-shown'")
	p.sees("document.querySelector('.row.at')?.id === 'finding-f-shown'") // keys are about what one sees
	p.do(chromedp.Focus("#finding-f-like input"))
	p.presses("c")
	p.reads("#messages .wrong", "Nothing was decided", "the finding beside the list is another one")
	p.goes("/console/findings")
	p.presses("j", "j", kb.Enter)
	p.reads("#panel", "SQL injection", "orders/list.go:14", "Use a parameter.", "What happened", "created", "finding.created sent to absent")
	p.reads("#panel .similar", "A like one")
	p.sees("location.hash === '#f-shown' && document.querySelectorAll('.similar li').length === 1")
	p.sees("document.querySelector('#panel .prose strong').textContent === 'strong'")
	p.sees("document.querySelector('#panel .chroma .k').textContent === 'return'")
	p.presses(kb.Escape)
	p.sees("document.querySelector('#panel').hidden && location.hash === ''")
	p.presses(kb.Enter)
	p.reads("#panel", "SQL injection")
	p.presses("k")
	p.reads("#panel h1", "A like one")
	p.do(chromedp.NavigateBack())
	p.sees("document.querySelector('#panel').hidden && location.pathname === '/console/findings'")
	p.goes("/console/deliveries")
	p.reads("tbody", "finding.created", "absent", "SQL injection", "finding")
	p.sees("document.querySelector('tbody a[href=\"/console/findings/f-shown\"]').textContent === 'SQL injection'")
	p.goes("/console/findings#f-shown")
	p.reads("#panel", "SQL injection")
	p.evaluates(`document.querySelector('.facet a[href*="severity=low"]').click()`, nil)
	p.sees("location.search === '?severity=low' && location.hash === '#f-shown' && document.querySelector('.row.at')?.id === 'finding-f-shown'")
	p.evaluates(`((send) => {
		window.fetch = (at, request) => { window.asked ||= at.endsWith("/main"); return send(at, request); };
		window.addEventListener("hashchange", () => { window.skipped = true; });
		document.querySelector(".skip").click();
	})(window.fetch)`, nil)
	p.sees("window.skipped && location.hash === '#main' && !window.asked") // the content is no finding
	p.evaluates("void (location.hash = '#%')", nil)
	p.sees("document.querySelector('#panel').hidden")
	p.goes("/console/findings/f-shown")
	p.reads("h1", "SQL injection")
	p.clicks(".decide summary")
	p.do(chromedp.SetValue("#this-status", "muted"), chromedp.SetValue("#this-until", "2099-05-04"), chromedp.Submit("#this-status"))
	p.reads(".decision", "Muted", "apikey/ada", "Until")
	if got := o.finding("f-shown").Spec.Triage.ExpiresAt; got == nil || !got.Time.Equal(time.Date(2099, 5, 4, 23, 59, 59, 0, time.UTC)) {
		t.Errorf("the decision ends %v", got)
	}
}

func TestWhatWasTypedStaysWhenOneMovesOn(t *testing.T) {
	t.Parallel()
	o, p := withFindings(t, some(2)...)
	p.goes("/console/findings")
	p.presses("j", kb.Enter)
	p.reads("#panel h1", "Finding number 1")
	p.clicks("#panel .decide summary")
	p.do(chromedp.SendKeys("#this-comments", "Half a comment."))
	p.presses(kb.Escape, "j")
	p.reads("#panel h1", "Finding number 0")
	p.sees("!document.querySelector('#panel .decide').open && document.querySelector('#this-comments').value === ''")
	p.presses(kb.Escape)
	p.sees("document.querySelector('#panel').hidden")
	p.presses("k", kb.Enter)
	p.reads("#panel h1", "Finding number 1")
	p.sees("document.querySelector('#panel .decide').open && document.querySelector('#this-comments').value === 'Half a comment.'")
	p.do(chromedp.SetValue("#this-status", "active"))
	p.holdsRequests(posts)
	p.clicks("#panel .decide button")
	p.presses("j")
	p.reads("#panel h1", "Finding number 0")
	p.evaluates("release()", nil)
	p.reads("#messages", "Decided: Finding number 1.")
	p.presses("k")
	p.reads("#panel h1", "Finding number 1")
	p.sees("!document.querySelector('#panel .decide').open") // what was sent is not typed any more

	p.goes("/console/findings")
	p.presses("j", "m")
	p.do(chromedp.SendKeys("#one-comments", "Half a reason."+kb.Escape))
	p.sees("!document.querySelector('#decision').open")
	p.presses("j", "m")
	p.sees("document.querySelector('#decision').open && document.querySelector('#one-comments').value === ''")
	p.clicks(`#decision button[value="cancel"]`)
	p.presses("k", "m")
	p.sees("document.querySelector('#decision').open && document.querySelector('#one-comments').value === 'Half a reason.'")
	p.presses(kb.Enter)
	p.reads("#messages", "Decided: Finding number 1.")
	harness.Same(t, "the comment", "Half a reason.", o.finding("f-0001").Spec.Triage.Comments)
	p.presses("m")
	p.sees("document.querySelector('#decision').open && document.querySelector('#one-comments').value === ''")
}

func TestClosingThePanelKeepsThePositionInTheList(t *testing.T) {
	t.Parallel()
	const n = 30
	_, p := withFindings(t, some(n)...)
	p.goes("/console/findings")
	p.presses("j", kb.Enter)
	p.reads("#panel h1", fmt.Sprintf("Finding number %d", n-1))
	p.presses(slices.Repeat([]string{"j"}, n-1)...)
	p.reads("#panel h1", "Finding number 0")
	p.evaluates("window.scrollBy(0, -20)", nil) // by hand
	var before, after float64
	p.evaluates("scrollY", &before)
	p.presses(kb.Escape)
	p.sees("document.querySelector('#panel').hidden && location.hash === ''")
	p.evaluates("new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(() => next(scrollY))))", &after)
	if before == 0 || before != after {
		t.Errorf("the list is scrolled from %v to %v", before, after)
	}
	p.goes("/console/policies")
	p.do(chromedp.NavigateBack())
	p.sees(fmt.Sprintf("document.querySelector('#panel').hidden && scrollY === %v", before))
}

func TestAllThatMatchAreMutedAfterAPreviewAndUndone(t *testing.T) {
	t.Parallel()
	o, p := withFindings(t, some(6)...)
	p.goes("/console/findings?tool=gosec")
	p.presses("j", "x")
	p.reads("#selected", "1 selected")
	p.clicks(`input[name="all"]`)
	p.reads("#selected", "3 chosen; nothing is decided until you apply")
	p.reads(".selection", "What you leave empty stays")
	p.do(chromedp.SetValue("#many-reason", "used-in-tests"), chromedp.Submit("#many-reason"))
	p.reads(".operation", "Preview: nothing is decided yet", "Apply it to 3 findings")
	p.clicks(".operation form .primary")
	p.reads(".operation", "Outcome", "Preview the undo")
	p.barriers("an operation")
	p.clicks(".figures a")
	p.reads("main", "3 findings with the outcome: changed", "muted", "operation/op-")
	p.barriers("the findings of an operation")
	p.fits("the findings of an operation")
	p.clicks(".crumbs a")
	p.reads(".operation", "Outcome", "Preview the undo")
	muted := func() (names []string) {
		for i := range 6 {
			if f := o.finding(fmt.Sprintf("f-%04d", i)); f.Spec.Triage.UserStatus == v1alpha1.UserStatusMuted {
				names = append(names, f.Name)
			}
		}
		return names
	}
	harness.Same(t, "the muted ones", "f-0000 f-0002 f-0004", strings.Join(muted(), " "))
	var undone string
	p.evaluates("location.pathname", &undone)
	p.clicks(".operation form button")
	p.reads(".operation", "Undo: Mute, used in tests", "Preview: nothing is decided yet")
	p.sees("document.title.startsWith('Undo: Mute, used in tests') && document.querySelector('.operation header a[href^=\"/console/operations/op-\"]')")
	p.clicks(".operation form .primary")
	p.reads(".operation", "Outcome")
	harness.Eventually(t, func(g Gomega) { g.Expect(muted()).To(BeEmpty()) })
	p.goes("/console/operations")
	p.reads("tbody", "Undo: Mute, used in tests", "Tool: gosec", "completed", "apikey/ada", "undone")
	var newer []client.Object // so many that the undone operation is listed on another page than its undo
	for i := range 50 {
		newer = append(newer, builder.TriageOperation(fmt.Sprintf("op-newer-%d", i), "").Undoes("op-none").In(o.namespace).Build())
	}
	env.CreateAtOnce(t, newer...)
	p.goes("/console/operations")
	p.clicks("main a[href*=cursor]")
	p.reads("tbody", "undone")
	p.clicks(fmt.Sprintf("tbody a[href=%q]", undone))
	p.reads(".operation", "It was undone by", "Outcome")
	p.sees("!document.querySelector('.operation form')")
}

func TestASelectionStaysWithTheRowsThatAreStillListed(t *testing.T) {
	t.Parallel()
	_, p := withFindings(t, some(6)...)
	p.goes("/console/findings?sort=created_at&order=asc")
	p.presses("j", "x", "j", "x")
	p.reads("#selected", "2 selected")
	p.evaluates("window.isSame = true", nil)
	p.do(chromedp.SetValue("#many-comments", "typed"), chromedp.SendKeys("#text", "number"+kb.Enter))
	p.sees("location.search.endsWith('text=number') && document.querySelector('.chips')")
	p.sees("window.isSame && document.querySelector('#many-comments').value === 'typed'")
	p.reads("#selected", "2 selected")
	p.clicks(`.facet a[href*="tool=gosec"]`)
	p.reads("#messages", "1 selected finding is not shown any more and no longer selected.")
	p.reads("#selected", "1 selected")
	p.sees("document.querySelector('#finding-f-0000 input').checked && document.querySelector('#many-comments').value === 'typed'")
	p.clicks(`input[name="all"]`)
	p.clicks(`.facet a[href*="severity=medium"]`)
	p.reads("#messages", "What matched before is no longer selected.")
	p.sees("!document.querySelector('.selection.used') && document.querySelector('#many-comments').value === ''")
	p.goes("/console/findings?text=absent")
	p.reads(".total", "0 findings")
	p.presses("m", "x")
	p.sees("!document.querySelector('#messages .message')") // the key may decide
}

func TestAKeyThatMayNotDecideIsToldSo(t *testing.T) {
	t.Parallel()
	o := newOrganization(t)
	o.has(some(1)...)
	p := loggedIn(t, o.key("reader", v1alpha1.ScopeFindingsRead))
	p.goes("/console/findings")
	p.sees("!document.querySelector('.row input')")
	p.presses("j", "m")
	p.reads("#messages", "findings:triage")
	p.goes("/console/findings/f-0000")
	p.reads(".decision", "lacks the scope findings:triage")
	q := loggedIn(t, o.key("reviewer", v1alpha1.ScopeReviewsRead))
	q.goes("/console/findings")
	q.reads(".problem", "Not allowed", "findings:read", "Log in with another key")
}

func TestTheOverviewsNumbersLeadToTheFindingsThatTheyCount(t *testing.T) {
	t.Parallel()
	o := newOrganization(t)
	o.hasHistory()
	o.has(some(5)...)
	o.has(builder.Finding("f-closed").Closed(found.Add(48*time.Hour), "s-1"))
	o.has(builder.Finding("f-worse").Severity(v1alpha1.LevelHigh).Triage(v1alpha1.UserStatusMuted, "").
		Mutate(func(f *v1alpha1.Finding) { f.Spec.Triage.Basis = "rated=low" }))
	p := newPerson(t)
	p.goes("/console/login")
	p.logsIn(o.key("ada"))
	p.reads("#tour", "First steps", "Decide once for many")
	p.clicks("#tour button")
	p.do(chromedp.Reload(), chromedp.WaitReady("main"))
	p.sees("document.querySelector('#tour').hidden")
	p.readsTheHistory()
	// Figures about the past link to those objects that still exist.
	var links []string
	p.evaluates("[...document.querySelectorAll('main a')].filter((a) => !a.closest('.then, #tour')).map((a) => (a.closest('td.number') ? a : a.closest('div, tr').querySelector('dd, td.number')).textContent + ' ' + a.getAttribute('href'))", &links)
	if len(links) < 12 {
		t.Fatalf("the overview has only %q", links)
	}
	if doubted := "1 /console/findings?stale=true&status=open_muted"; !slices.Contains(links, doubted) {
		t.Errorf("no figure is %q: %q", doubted, links)
	}
	for _, link := range links {
		count, at, _ := strings.Cut(link, " ")
		p.goes(at)
		p.sees(fmt.Sprintf("document.querySelector('.total').innerText.startsWith(%s)", quoted(count+" ")))
	}
}

// hasHistory writes the project's history from before its findings were created, as the controllers do, which then do
// not touch it for an hour: three weeks ago one finding of high severity, and since a week ago two of low severity.
func (o *organization) hasHistory() {
	o.Helper()
	now := time.Now()
	ago := func(days int) v1alpha1.Day { return findingtrend.Of(now.AddDate(0, 0, -days)) }
	trend := builder.FindingTrend("web-kept", findingtrend.QuarterOf(ago(0))).In(o.namespace).Project("web").Rows(
		v1alpha1.FindingTrendDay{Day: ago(20), Open: v1alpha1.FindingTrendOpen{High: 1}, Opened: 1, Age: findingtrend.Spread([]int32{3})},
		v1alpha1.FindingTrendDay{Day: ago(9), Open: v1alpha1.FindingTrendOpen{Low: 2}, Opened: 2, Closed: 1, Muted: 1,
			Age: findingtrend.Spread([]int32{0, 0}), TimeToClose: findingtrend.Spread([]int32{14})},
	).Build()
	trend.Spec.UpdatedAt = v1alpha1.NewTime(now)
	harness.Must(o.TB, env.AsController(o).Create(o.Context(), trend))
}

// readsTheHistory expects the overview to show the history of hasHistory, and the five findings that
// are open now.
func (p *person) readsTheHistory() {
	p.Helper()
	p.sees("['High 2', 'Low 1'].every((word) => document.querySelector('svg[aria-labelledby^=lines]').textContent.includes(word))")
	p.sees("document.querySelectorAll('.line').length === 4 && document.querySelectorAll('.bar').length >= 9")
	p.sees("document.querySelector('#lines-text').textContent.includes('On the last day: Critical 0, High 2, Medium 2, Low 1')")
	p.reads("[aria-labelledby=ages]", "Age of open findings", "9", "Time to close", "14")
	p.reads("[aria-labelledby=worse]", "shop", "web", "+3", "+2")
	p.clicks("[aria-labelledby=over-time] summary")
	p.sees("document.querySelectorAll('[aria-labelledby=over-time] tbody tr').length === 3")
	p.clicks("[aria-labelledby=per-week] summary")
	p.reads("[aria-labelledby=per-week] table", "Week from", "Opened")
	p.sees("getComputedStyle(document.querySelector('.line.high')).stroke !== 'none'")
}
