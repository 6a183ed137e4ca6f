package console_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// decides makes a decision about a finding over REST.
func (o *organization) decides(key, finding, body string) {
	o.Helper()
	if answer := askREST(o, key, http.MethodPatch, "/v2/findings/"+finding, body); answer.Status != http.StatusOK {
		o.Fatalf("the decision is answered with %d: %s", answer.Status, answer.Body)
	}
}

func TestWhatChangesWhileOneLooksIsMarkedAndNotMoved(t *testing.T) {
	t.Parallel()
	o, p := withFindings(t, some(4)...)
	bob := o.key("bob")
	p.goes("/console/findings")
	const places = "[...document.querySelectorAll('.row')].map((row) => `${row.id} ${row.getBoundingClientRect().top}`)"
	var before, after []string
	p.evaluates(places, &before)
	o.decides(bob, "f-0001", `{"user_status":"muted"}`)
	p.reads("#finding-f-0001.changed .age", "changed")
	p.reads("#finding-f-0001 .state", "open")
	p.evaluates(places, &after)
	harness.Same(t, "the places of the rows", before, after)
	p.barriers("the list with a mark")
	p.clicks("#finding-f-0001 .news-of")
	p.reads("#finding-f-0001 .state", "muted", "apikey/bob")
	p.sees("document.activeElement.closest('.row')?.id === 'finding-f-0001'")
	// A person's own decisions, and what the service writes because of them, are not shown as news; other people's
	// are, even afterwards.
	p.presses("j", "c")
	p.reads("#finding-f-0000 .state", "confirmed", "apikey/ada")
	o.decides(bob, "f-0002", `{"comments":"Look at this."}`)
	p.sees("document.querySelector('#finding-f-0002.changed')")
	p.sees("!document.querySelector('#finding-f-0000.changed, #finding-f-0001.changed')")
	p.clicks("#finding-f-0001 .what a")
	p.clicks("#panel .decide summary")
	p.do(chromedp.SendKeys("#this-comments", "Half a thought"))
	o.decides(bob, "f-0001", `{"user_status":"active"}`)
	p.reads("#panel .news-of", "changed · show")
	p.sees("document.querySelector('#this-comments').value === 'Half a thought'")
	p.barriers("the panel with a mark")
	p.clicks("#panel .news-of")
	p.reads("#panel .decision", "Confirmed by apikey/bob")
	p.presses(kb.Escape)
	p.sees("document.querySelector('#panel').hidden")

	// The first answer with f-late comes from a replica that does not know it yet.
	p.evaluates(`(async () => {
		const before = await (await fetch(location.href, { headers: { "X-Console-Fragment": "1" } })).text();
		const current = window.fetch;
		window.fetch = async (...request) => {
			const answer = await current(...request);
			if (request[0] !== location.href || !(await answer.clone().text()).includes("f-late")) return answer;
			window.fetch = current;
			document.body.dataset.behind = "true";
			return new Response(before);
		};
	})()`, nil)
	o.has(builder.Finding("f-late").DetectedAt(found.Add(23 * time.Hour)))
	p.sees("document.body.dataset.behind")
	p.reads(".news", "1 new finding, show") // it is asked for once more
	o.has(builder.Finding("f-new").Title("The newest").DetectedAt(found.Add(24 * time.Hour)))
	p.reads(".news", "2 new findings, show")
	p.reads(".total", "6 findings")
	p.sees("document.querySelector('.row').id === 'finding-f-0003'")
	p.clicks(".news a")
	p.sees("document.querySelector('.row').id === 'finding-f-new' && !document.querySelector('.news')")
	q := loggedIn(t, bob)
	q.goes("/console/findings?group=severity&tool=gosec")
	q.reads(".total", "2 findings")
	var listed struct {
		Next string `json:"next_cursor"`
	}
	get(t, bob, "/v2/full-findings?size=2", &listed)
	next := loggedIn(t, bob)
	next.goes("/console/findings?" + url.Values{"cursor": {listed.Next}}.Encode())
	o.has(builder.Finding("f-other").Tool("semgrep", v1alpha1.CategoryCode), builder.Finding("f-gosec").Tool("gosec", v1alpha1.CategoryCode))
	q.reads(".total", "3 findings")
	q.reads(".news", "1 new finding, show") // the other one is not in this list
	q.clicks(".news a")
	q.sees("document.querySelector('.total').innerText === '3 findings' && !document.querySelector('.news')")
	next.reads(".news", "2 new findings, show") // although they are not on this page
	next.clicks(".news a")
	next.reads(".total", "8 findings")
	p.clicks("#finding-f-0003 input[name=id]")
	p.reads("#selected", "1 selected")
	harness.Must(t, env.Client.Delete(t.Context(), o.finding("f-0003")))
	p.reads("#finding-f-0003 .age", "removed")
	p.clicks("#finding-f-0003 .news-of")
	p.sees("!document.getElementById('finding-f-0003') && !document.querySelector('.selection.used')")
	p.reads(".total", "7 findings")
}

// A value that no finding has any more leads to an empty list.
func TestTheCountsOfValuesAndOfAllThatMatchAreUpdated(t *testing.T) {
	t.Parallel()
	o, p := withFindings(t, some(4)...)
	p.goes("/console/findings?status=open")
	p.clicks(".tools .all")
	p.reads("#selected", "4 chosen")
	o.decides(o.key("bob"), "f-0001", `{"user_status":"muted"}`) // the only one of severity medium
	p.sees(`document.querySelector(".facet a[href*='severity=medium'] .count").textContent === "0"`)
	p.reads(".facet a[href*='severity=high'] .count", "2")
	p.reads("#selected", "3 chosen")
	p.reads(".selection", "All 3 that match")
	p.sees(`document.querySelector(".facet a[href*='user_status=open']").offsetParent`)
}

// The next request would otherwise wait until the clock shows the old time again.
func TestRowsAreMarkedAlthoughTheReadersClockIsSetBack(t *testing.T) {
	t.Parallel()
	o, p := withFindings(t, some(2)...)
	bob := o.key("bob")
	p.prepares("((now, back) => { Date.now = () => now() - (back += 7_200_000); })(Date.now, 0)")
	p.goes("/console/findings")
	for _, finding := range []string{"f-0000", "f-0001"} {
		o.decides(bob, finding, `{"user_status":"muted"}`)
		p.reads("#finding-"+finding+".changed .age", "changed")
	}
}

// prepares has the script run in each later page, before those of the page.
func (p *person) prepares(script string) {
	p.Helper()
	source := page.AddScriptToEvaluateOnNewDocumentParams{Source: script}
	_, err := chromedp.Call(p.window, page.AddScriptToEvaluateOnNewDocument, source)
	harness.Must(p, err)
}

// Each look at a row is a request, and counts against the limit of the key with which the person decides.
func TestOnlySomeOfTheRowsThatARescanChangesAreLookedAt(t *testing.T) {
	t.Parallel()
	o, p := withFindings(t, some(1)...)
	p.prepares(heldStream)
	p.prepares(notedWaits)
	for _, tc := range []struct{ left, reset, looks int }{
		{40, 50, 60},
		{39, 50, 1}, // less than a third of 120, as the first answer says
		{39, 0, 60}, // all are left again
	} {
		p.goes("/console/findings?order=asc")
		p.sees(fmt.Sprintf("new URL(stream.at, location).searchParams.get('organization') === %s", quoted(o.name)))
		p.evaluates(fmt.Sprintf(`((row, send) => {
			window.looks = window.newest = 0;
			window.fetch = async (at, request) => {
				looks += at.endsWith("/row");
				newest += at.includes("part=rows");
				const answer = await send(at, request);
				const headers = { "X-Ratelimit-Limit": "120", "X-Ratelimit-Remaining": "%d", "X-Ratelimit-Reset": "%d" };
				return new Response(await answer.text(), { status: answer.status, headers });
			};
			for (let i = 0; i < 99; i++) {
				const copy = row.cloneNode(true);
				copy.id = "finding-f-copy-" + i;
				row.after(copy);
				const data = JSON.stringify({ change: "updated", id: "f-copy-" + i, status: "open", user_status: "open", updated_at: "" });
				stream.dispatchEvent(new MessageEvent("finding", { data }));
			}
			const data = JSON.stringify({ change: "created", id: "f-none" });
			stream.dispatchEvent(new MessageEvent("finding", { data }));
		})(document.querySelector(".row"), window.fetch)`, tc.left, tc.reset), nil)
		p.sees(fmt.Sprintf("document.querySelectorAll('.row.changed').length === 99 && looks === %d", tc.looks))
		counted := "newest > 0"
		if tc.looks == 1 { // the list is counted again when the limit begins anew
			counted = "newest === 0 && waits.some((wait) => 40_000 < wait && wait <= 50_000)"
		}
		p.sees(counted)
	}
	// Nor does the overview ask again before that.
	p.goes("/console/")
	p.evaluates(`((send) => {
		window.fetch = async (at, request) => {
			const answer = await send(at, request);
			const headers = { "X-Ratelimit-Limit": "120", "X-Ratelimit-Remaining": "39", "X-Ratelimit-Reset": "50" };
			window.asked = true;
			return new Response(await answer.text(), { headers });
		};
	})(window.fetch)`, nil)
	p.tells("updated", "f-0000")
	p.sees("window.asked")
	p.tells("updated", "f-0000")
	// Once because of the change, and once because it might have lost the stream.
	p.sees("waits.filter((wait) => 40_000 < wait && wait <= 50_000).length === 2")
}

// The history of thousands of projects takes the service a second, and it answers one such request of an organization at a time.
func TestAPartThatTakesLongIsLoadedLessOften(t *testing.T) {
	t.Parallel()
	_, p := withFindings(t, some(1)...)
	p.prepares(heldStream)
	p.prepares(notedWaits)
	for _, tc := range []struct {
		reason, answer string
		pauses         int
	}{
		{"it is answered", "send(at, request)", 1},
		{"it is not answered, so that the page also loads without a change", "Promise.reject(new TypeError('Failed to fetch'))", 2},
	} {
		p.goes("/console/")
		p.evaluates(fmt.Sprintf(`((send) => {
			window.sent = 0;
			window.fetch = async (at, request) => {
				sent++;
				await new Promise((late) => setTimeout(late, 3200));
				return %s;
			};
		})(window.fetch)`, tc.answer), nil)
		harness.Eventually(t, func(g Gomega) {
			p.tells("updated", "f-0000")
			var noted struct{ Pauses, Sent int }
			// Not ten times 3.2 s, nor the pause after a quick failure.
			p.evaluates("({ sent, pauses: waits.includes(10_000) ? 0 : waits.filter((wait) => 20_000 < wait && wait <= 30_000).length })", &noted)
			g.Expect(noted.Pauses).To(BeNumerically(">=", tc.pauses), tc.reason)
			g.Expect(noted.Sent).To(Equal(1), "requests before the first pause ends, if %s", tc.reason)
		})
	}
}

// notedWaits notes how long each timer of the page waits.
const notedWaits = `window.waits = []; ((later) => {
	window.setTimeout = (run, wait) => {
		waits.push(wait);
		return later(run, wait);
	};
})(window.setTimeout);`

// heldStream replaces the stream of changes by one in which the test dispatches them.
const heldStream = "window.EventSource = class extends EventTarget { constructor(at) { super(); window.stream = this; this.at = at; } close() {} };"

// After a gap in the stream, rows that are on no page that is asked for anew may be outdated.
func TestWhatMayHaveChangedInAGapIsMarked(t *testing.T) {
	t.Parallel()
	o, p := withFindings(t, some(2)...)
	bob := o.key("bob")
	p.prepares(heldStream)
	p.goes("/console/findings#f-0000")
	p.reads("#panel h1", "Finding number 0")
	p.evaluates(`((row, another) => {
		const further = row.cloneNode(true);
		further.id = "finding-f-further";
		row.after(further);
		another.textContent = "What a rescan has worded anew";
	})(document.querySelector(".row"), document.querySelector("#finding-f-0001 .what a"))`, nil)
	p.evaluates(`((send) => {
		window.fetch = (at, request) => {
			if (at === "/console/findings/f-0000" && !window.refused) {
				window.refused = true;
				return Promise.resolve(new Response("", { status: 502 }));
			}
			if (at.startsWith(location.origin)) history.replaceState(history.state, "", "#f-0001"); // as when another finding is opened
			return send(at, request);
		};
	})(window.fetch)`, nil)
	o.decides(bob, "f-0000", `{"user_status":"muted"}`)
	p.evaluates("void stream.dispatchEvent(new MessageEvent('reset'))", nil)
	p.reads("#finding-f-0000.changed .age", "changed")
	p.reads("#finding-f-0001.changed .age", "changed")
	p.reads(".news", "Some rows may have changed, show")
	p.sees("window.refused")
	p.tells("created", "f-none")
	p.reads("#panel .news-of", "changed")
	p.clicks(".news a")
	p.sees("!document.querySelector('.news, #finding-f-further')")
	// A page that was rendered without its place in the stream may have missed changes before the stream began.
	p.prepares(`new MutationObserver(() => document.querySelector("meta[name=console-place]")?.setAttribute("content", ""))
		.observe(document, { childList: true, subtree: true })`)
	p.goes("/console/findings")
	p.sees("!stream.at.includes('after=')")
	p.evaluates(`((title) => {
		title.textContent = "As it was before";
		stream.dispatchEvent(new Event("open"));
	})(document.querySelector("#finding-f-0001 .what a"))`, nil)
	p.reads("#finding-f-0001.changed .age", "changed")
}

// tells dispatches a change of a finding in the stream that the test holds.
func (p *person) tells(change, finding string) {
	p.Helper()
	p.evaluates(fmt.Sprintf(`void stream.dispatchEvent(new MessageEvent("finding", { data: JSON.stringify({ change: %s, id: %s }) }))`,
		quoted(change), quoted(finding)), nil)
}

// Rows that come after a gap, as one scrolls or decides, show what was missed.
func TestRowsThatComeAfterAGapAreNotInDoubt(t *testing.T) {
	o, p := withFindings(t, some(2)...)
	p.prepares(heldStream)
	p.goes("/console/findings")
	p.evaluates(`((row) => {
		stream.dispatchEvent(new MessageEvent("reset"));
		const next = row.cloneNode(true);
		next.id = "finding-f-next";
		row.after(next);
	})(document.querySelector(".row"))`, nil)
	o.has(builder.Finding("f-new").DetectedAt(found.Add(24 * time.Hour)))
	p.tells("created", "f-new")
	p.sees("document.querySelector('.news')?.textContent === '1 new finding, show'")
}

// holdsAnswers keeps answers to requests for which the expression is true back until release() is called in the page.
func (p *person) holdsAnswers(expression string) {
	p.Helper()
	p.evaluates(fmt.Sprintf(`((send) => {
		window.asked = false;
		const released = new Promise((release) => { window.release = () => void release(); });
		window.fetch = async (at, request) => {
			const answer = await send(at, request);
			if (!(%s)) return answer;
			const text = await answer.text();
			window.asked = true;
			await released;
			return new Response(text);
		};
	})(window.fetch)`, expression), nil)
}

func TestAChangeThatArrivesWhileRowsAreLoadedIsMarked(t *testing.T) {
	t.Parallel()
	o, p := withFindings(t, some(102)...) // the first two are on the second page
	bob := o.key("bob")
	p.prepares(heldStream)
	p.goes("/console/findings")
	mutes := func(finding string) {
		t.Helper()
		o.decides(bob, finding, `{"user_status":"muted"}`)
		p.tells("updated", finding)
	}

	p.holdsAnswers(`at.includes("tool=gosec")`)
	p.clicks(".facet a[href*='tool=gosec']")
	p.sees("window.asked")
	mutes("f-0100")
	p.reads("#finding-f-0100 .age", "changed") // by then the change is compared with the rows that are shown
	// The list is counted again once. Such a count finds changes on its first page, too.
	p.reads(".facet a[href*='user_status=open'] .count", "101")
	p.evaluates("release()", nil)
	p.sees("!document.querySelector('#finding-f-0101')")
	p.reads("#finding-f-0100 .state", "open")
	p.reads("#finding-f-0100 .age", "changed")

	p.goes("/console/findings")
	p.holdsAnswers(`at.includes("part=rows")`)
	p.sees("(window.scrollTo(0, document.body.scrollHeight), window.asked)")
	mutes("f-0000")
	mutes("f-0004")
	p.reads("#finding-f-0004 .age", "changed")
	p.evaluates("release()", nil)
	p.reads("#finding-f-0000 .state", "open")
	p.reads("#finding-f-0000 .age", "changed")
}

// An answer for the list may be older than the rows that are shown, and the answer to a decision come when the list is
// another one.
func TestAnOlderListMarksNoDecisionOfOnesOwn(t *testing.T) {
	t.Parallel()
	o, p := withFindings(t, some(3)...)
	p.prepares(heldStream)
	p.goes("/console/findings")
	p.holdsAnswers("at === location.href")
	p.evaluates(`(({ dataset }) => { // as another replica has shown it
		dataset.seen = "what is not known here";
		dataset.updated = "9999-01-01T00:00:00Z";
	})(document.querySelector("#finding-f-0000"))`, nil)
	o.decides(o.key("bob"), "f-0002", `{"user_status":"muted"}`)
	p.tells("created", "f-none")
	p.sees("window.asked")
	p.presses("j", "j", "c")
	p.reads("#finding-f-0001 .state", "confirmed", "apikey/ada")
	p.evaluates("release()", nil)
	p.reads("#finding-f-0002 .age", "changed")
	p.sees("!document.querySelector('#finding-f-0000.changed, #finding-f-0001.changed')")

	p.holdsRequests(posts)
	p.presses("o")
	p.clicks(".facet a[href*='tool=semgrep']")
	p.sees("!document.querySelector('#finding-f-0000')")
	p.reads("#finding-f-0001 .state", "confirmed")
	p.evaluates("release()", nil)
	p.reads("#messages", "Decided: Finding number 1.")
	p.reads("#finding-f-0001 .state", "open")

	// The answer of a replica that has not observed a change yet proves nothing about it.
	p.evaluates(`void stream.dispatchEvent(new MessageEvent("finding", { data: JSON.stringify(
		{ change: "updated", id: "f-0001", status: "open", user_status: "open", updated_at: "9999-01-01T00:00:00Z" }) }))`, nil)
	p.reads("#finding-f-0001 .age", "changed")
}

// An event about a change and the check after a gap may find it at the same time.
func TestTheFindingInThePanelIsMarkedOnce(t *testing.T) {
	t.Parallel()
	o, p := withFindings(t, some(2)...)
	p.prepares(heldStream)
	p.goes("/console/findings#f-0000")
	p.reads("#panel h1", "Finding number 0")
	p.evaluates(`((send) => {
		const held = [];
		window.fetch = async (at, request) => {
			const answer = await send(at, request);
			if (at !== "/console/findings/f-0000") return answer;
			const text = await answer.text();
			await new Promise((release) => {
				held.push(release);
				if (held.length === 2) held.forEach((each) => each());
			});
			return new Response(text);
		};
	})(window.fetch)`, nil)
	o.decides(o.key("bob"), "f-0000", `{"user_status":"muted"}`)
	p.tells("updated", "f-0000")
	p.evaluates("void stream.dispatchEvent(new MessageEvent('reset'))", nil)
	p.reads("#panel .news-of", "changed")
	// Events that arrive now are shown when both are done.
	o.has(builder.Finding("f-new").DetectedAt(found.Add(24 * time.Hour)))
	p.tells("created", "f-new")
	p.tells("removed", "f-0001")
	p.reads("#finding-f-0001 .age", "removed")
	p.reads(".news", "1 new finding")
	p.sees("document.querySelectorAll('#panel .news-of').length === 1")
}

// impatient is a script with which pages wait for half a second instead of half a minute for an answer.
const impatient = "((limit) => { AbortSignal.timeout = (after) => limit.call(AbortSignal, after / 60); })(AbortSignal.timeout);"

// unanswered is what fetch returns for a request to which no answer comes.
const unanswered = "new Promise((_, reject) => { request.signal?.addEventListener('abort', () => reject(request.signal.reason)); })"

// Its stream tells of no further change.
func TestAPageAsksAgainAfterAnAnswerThatDidNotCome(t *testing.T) {
	p := loggedIn(t, newOrganization(t).key("ada"))
	p.prepares(heldStream + `
		((later) => { window.setTimeout = (task, after) => later(task, after / 20); })(window.setTimeout);` + impatient)
	for _, first := range []string{`Promise.resolve(new Response("", { status: 502 }))`, unanswered} {
		p.goes("/console/")
		p.evaluates(fmt.Sprintf(`((send) => {
			window.asked = 0;
			window.fetch = (at, request) => ++asked > 1 ? send(at, request) : %s;
			stream.dispatchEvent(new Event("open"));
			stream.dispatchEvent(new MessageEvent("finding", { data: JSON.stringify({ change: "updated", id: "f-1" }) }));
		})(window.fetch)`, first), nil)
		p.sees("asked > 1")
	}
}

func TestAPageSaysWhyThereIsNoAnswer(t *testing.T) {
	_, p := withFindings(t, some(1)...)
	p.prepares(impatient)
	p.goes("/console/findings")
	for _, row := range []struct{ fetched, words string }{
		{unanswered, "The service did not answer. Try again."},
		{`Promise.resolve(new Response('{"title":"data is stale"}', { status: 500, headers: { "X-Data-Age": "700" } }))`, "data is stale"},
		{"Promise.reject(new TypeError('Failed to fetch'))", "The service cannot be reached. What is shown is as it was; try again."},
	} {
		p.evaluates("void (window.fetch = (at, request) => "+row.fetched+")", nil)
		p.clicks("#finding-f-0000 .what a")
		p.reads("#messages .wrong:last-child", row.words)
	}
	p.sees(`document.querySelector("#data-age").checkVisibility()`)
	p.reads("#data-age", "may be 11 min old")
}

func TestTheOverviewCountsWhileOneLooks(t *testing.T) {
	t.Parallel()
	o := newOrganization(t)
	o.hasHistory()
	o.has(some(2)...)
	p := loggedIn(t, o.key("ada"))
	p.goes("/console/")
	p.reads("#by-severity + table", "high", "medium")
	p.do(chromedp.Focus(`#followed a[href*="severity=high"]`))
	o.has(builder.Finding("f-low").Severity(v1alpha1.LevelLow))
	p.reads("#by-severity + table", "low")
	p.sees(`document.activeElement.getAttribute("href")?.includes("severity=high")`)
	p.clicks("[aria-labelledby=per-week] summary")
	o.has(builder.Finding("f-next").Severity(v1alpha1.LevelLow).Mutate(func(f *v1alpha1.Finding) { f.Spec.Class = "CWE-7" }))
	p.reads("#followed", "CWE-7")
	p.sees(`document.activeElement.matches("[aria-labelledby=per-week] summary")`)
	p.sees(`document.querySelectorAll("#followed details[open]").length === 1`) // both are called "The numbers"
	// Who logs in with another organization's key in another tab does not get its numbers into this page.
	p.evaluates(fmt.Sprintf(`fetch("/console/login", { method: "POST", body: new URLSearchParams({ key: %s }) })`, quoted(newOrganization(t).key("eve"))), nil)
	o.has(builder.Finding("f-last"))
	p.reads("#messages .wrong", "You have logged in with another key since this page was loaded")
	p.reads("#followed", "CWE-7")
}

// The console's stream requires the session, and ends with its key. The list then says that it has ended, also after the
// network was down, and no longer does after another login.
func TestTheConsolesStreamEndsWithTheSession(t *testing.T) {
	t.Parallel()
	o := newOrganization(t)
	v := newVisitor(t)
	if answer := v.asks("/console/events", nil); answer.StatusCode == http.StatusOK {
		t.Errorf("without a session the stream is answered with %s", answer.Status)
	}
	token := o.key("ada")
	v.logsIn(token)
	if answer := v.asks("/console/events?kinds=finding&organization=another", nil); answer.StatusCode != http.StatusForbidden {
		t.Errorf("for a page of another organization the stream is answered with %s", answer.Status)
	}
	p := loggedIn(t, token)
	p.goes("/console/findings")
	p.evaluates(`((send) => {
		window.fetch = async () => {
			window.fetch = send;
			throw new TypeError("Failed to fetch");
		};
	})(window.fetch)`, nil)
	stream, err := v.Get(base + "/console/events?kinds=finding&after=made-up")
	harness.Must(t, err)
	defer stream.Body.Close() //nolint:errcheck // only read from
	lines := bufio.NewScanner(stream.Body)
	for lines.Scan() && lines.Text() != "event: reset" {
	}
	key := builder.APIKey("ada").In(o.namespace).Build()
	disable := func(is bool) {
		env.Patch(t, key, fmt.Sprintf(`{"spec":{"disabled":%t}}`, is))
	}
	disable(true)
	for lines.Scan() {
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the stream ended with %v", err)
	}
	p.reads("#messages .wrong", "Your session has ended", "After a login with another key, load this page again first")
	disable(false)
	harness.Eventually(t, func(g Gomega) {
		g.Expect(v.asks("/console/login", url.Values{"key": {token}}).StatusCode).To(Equal(http.StatusSeeOther))
	})
	p.evaluates(fmt.Sprintf(`fetch("/console/login", { method: "POST", body: new URLSearchParams({ key: %s }) })`, quoted(token)), nil)
	p.evaluates("document.dispatchEvent(new Event('visibilitychange'))", nil) // otherwise it waits half a minute
	p.sees("!document.querySelector('#messages .wrong')")
}

func TestAgesGrowWhileOneLooks(t *testing.T) {
	_, p := withFindings(t, some(1)...)
	p.prepares("window.setInterval = (task) => { window.pass = task; };")
	p.goes("/console/findings")
	p.sees(`((age) => {
		const { textContent, firstChild } = age;
		pass();
		const kept = age.firstChild === firstChild; // what is selected stays selected
		const later = Date.now() + 5 * 365 * 24 * 60 * 60 * 1000;
		Date.now = () => later;
		pass();
		return kept && age.textContent !== textContent;
	})(document.querySelector(".age time"))`)
}
