package console_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/needs"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// axe returns the source of axe-core, or the error of fetching it with npm.
var axe = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "console-axe-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(harness.Root(), "test", "console"))); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund")
	command.Dir = folder
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, output)
	}
	content, err := os.ReadFile(filepath.Join(folder, "node_modules", "axe-core", "axe.min.js"))
	return string(content), err
})

// colours are the rules of axe-core that a colour scheme can break: it changes only tokens, which apiserver/console tests.
var colours = []string{"color-contrast", "link-in-text-block"}

// barriers expects axe-core to report no accessibility violations, by those rules or, without any, by all.
func (p *person) barriers(what string, rules ...string) {
	p.Helper()
	script, err := axe()
	if err != nil {
		needs.Missing(p.TB, "npm cannot fetch axe-core: %v", err)
	}
	var loaded bool // it is half a megabyte, and a page is often looked at more than once
	if p.evaluates("!!window.axe", &loaded); !loaded {
		p.evaluates("(() => {"+script+"; return true; })()", nil)
	}
	var found struct {
		Violations []struct {
			ID    string `json:"id"`
			Help  string `json:"help"`
			Nodes []struct {
				HTML    string `json:"html"`
				Summary string `json:"failureSummary"`
			} `json:"nodes"`
		} `json:"violations"`
		Passed int `json:"passed"`
	}
	options, least := "{ resultTypes: ['violations'] }", 10
	if len(rules) > 0 {
		options, least = "{ resultTypes: ['violations'], runOnly: ['"+strings.Join(rules, "', '")+"'] }", 1
	}
	p.evaluates("axe.run(document, "+options+").then((found) => ({ violations: found.violations, passed: found.passes.length }))", &found)
	if found.Passed < least {
		p.Errorf("%s: only %d of the rules were looked at", what, found.Passed)
	}
	for _, v := range found.Violations {
		for _, node := range v.Nodes {
			p.Errorf("%s: %s: %s\n%s\n%s", what, v.ID, v.Help, node.HTML, node.Summary)
		}
	}
}

// barriersInBoth expects no violations in light mode, and none by colours in dark mode.
func (p *person) barriersInBoth(what string) {
	p.Helper()
	p.prefers("light")
	p.barriers(what)
	p.prefers("dark")
	p.barriers(what+", dark", colours...)
}

// pages are the console's pages, for an organization with the findings below.
var pages = []string{
	"/console/", "/console/findings", "/console/findings?severity=high&facet=rule", "/console/findings?text=nothing", "/console/findings?group=repo_id&created_since=9999d",
	"/console/findings/f-0000", "/console/findings/f-none", "/console/nowhere", "/console/operations",
	"/console/reviews", "/console/reviews?custom=open_with_issues", "/console/reviews/rv-1", "/console/scans", "/console/scans/s-1", "/console/deliveries", "/console/deliveries/d-1",
	"/console/policies", "/console/policies/p-1", "/console/policies/p-wrong", "/console/policies/_new?rule=G101&stale=true", "/console/keys",
}

func TestNoPageHasBarriersInLightOrDarkWideOrNarrow(t *testing.T) {
	t.Parallel()
	o := newOrganization(t)
	o.hasHistory()
	o.has(some(4)...)
	o.has(builder.Finding("f-muted").Triage(v1alpha1.UserStatusMuted, "A fixture."))
	o.hasOthers("The signing key is in the source")
	key := o.key("ada", v1alpha1.Scopes()...)
	p, q := loggedIn(t, key), newPerson(t)
	for _, page := range pages {
		p.goes(page)
		for _, width := range []int64{320, 1280} { // 1280 at a zoom of 400 % corresponds to 320
			p.do(chromedp.EmulateViewport(width, 900))
			p.barriersInBoth(fmt.Sprintf("%s, %d pixels", page, width))
			p.fits(page)
		}
	}
	p.goes("/console/findings")
	p.presses("j", "x", kb.Enter)
	p.reads("#panel", "What happened")
	p.barriersInBoth("the panel and the selection")
	p.presses(kb.Escape, "?")
	p.sees("document.querySelector('#help').open")
	p.barriersInBoth("the keys")
	q.goes("/console/login")
	q.barriersInBoth("the login")
}

// hasOthers creates a pull request with issues of that title, a failed scan, a delivery, policies and a key, which
// all contain the text.
func (o *organization) hasOthers(text string) {
	o.Helper()
	scan := builder.Scan("s-1", found).Project("shop", "web").In(o.namespace).Build()
	env.Create(o.TB,
		builder.Review("rv-1").PullRequest("shop", 7).Reviewed("sha-1", found).Reviewed("sha-2", found.Add(time.Hour)).In(o.namespace).
			Mutate(func(r *v1alpha1.Review) { r.Spec.PRTitle = text }).Build(),
		builder.ReviewIssue("i-new").Review("rv-1").SeenIn("sha-1", "sha-2").In(o.namespace).
			Mutate(func(i *v1alpha1.ReviewIssue) {
				i.Spec.Title, i.Spec.Description, i.Spec.File = text, text, text
				i.Spec.Triage.UserStatus, i.Spec.Triage.Comments = v1alpha1.UserStatusMuted, text
			}).Build(),
		builder.ReviewIssue("i-fixed").Review("rv-1").SeenIn("sha-1").In(o.namespace).Build(),
		builder.WebhookDelivery("d-1", found).Endpoint("absent").In(o.namespace).Build(),
		builder.TriagePolicy("p-1", "finding.title == "+strconv.Quote(text)).In(o.namespace).Spec(func(s *v1alpha1.TriagePolicySpec) {
			s.Mode, s.Set.Comment = v1alpha1.PolicyPreview, text
		}).Build(),
		builder.TriagePolicy("p-wrong", text).In(o.namespace).Build(),
		builder.APIKey("described").In(o.namespace).Mutate(func(k *v1alpha1.APIKey) { k.Spec.Description = text[:min(len(text), 512)] }).Build(),
		scan)
	harness.Eventually(o.TB, func(g Gomega) {
		g.Expect(testenv.Get(o.TB, g, env, scan).Status.ObservedGeneration).To(BeNumerically(">", 0))
	})
}

func TestAPullRequestShowsWhatIsNewAndWhatIsFixed(t *testing.T) {
	t.Parallel()
	o := newOrganization(t)
	q, late := loggedIn(t, o.key("scans", v1alpha1.ScopeFindingsRead)), loggedIn(t, o.key("bob"))
	q.goes("/console/scans")
	q.reads("main", "No scans yet")
	late.goes("/console/operations")
	late.reads("main", "No operations yet")
	o.hasOthers("The signing key is in the source")
	q.sees(`document.querySelector('main a[href="/console/scans/s-1"]')`) // the first ones come by themselves, too
	operation := testenv.Create(t, env, builder.TriageOperation("op-1", "G101").In(o.namespace).Build())
	late.clicks(`main a[href="/console/operations/op-1"]`)
	late.reads(".operation header .badge", "not applied")
	late.do(chromedp.Focus(".operation [aria-labelledby=preview] a"))
	env.Patch(t, operation, `{"spec":{"commit":true}}`)
	late.reads(".operation header .badge", "completed")
	late.sees(`document.querySelector("main > [role=status]").textContent === "completed"`)
	late.sees(`document.activeElement.matches("main")`) // the link that had the focus is gone
	p := loggedIn(t, o.key("ada"))
	p.goes("/console/reviews")
	p.sees("document.querySelector('main a[href=\"/console/reviews/rv-1\"]')")
	p.clicks(`main a[href="/console/reviews/rv-1"]`)
	p.reads("main", "New: open issues", "The signing key is in the source", "muted by", "Fixed: resolved issues")
	p.sees(`document.querySelector(".review header a[rel~=external]").href === "https://github.com/acme/shop/pull/7"`)
	late.goes("/console/reviews/rv-1")
	p.clicks("#issue-i-new .decide summary")
	p.do(chromedp.SetValue("#i-new-status", "active"), chromedp.SetValue("#i-new-reason", "accepted-risk"), chromedp.Submit("#i-new-status"))
	p.reads("#issue-i-new", "confirmed by apikey/ada", "accepted risk")
	p.sees("location.hash === '#issue-i-new'")
	p.do(chromedp.EmulateViewport(320, 900))
	p.evaluates("document.querySelectorAll('.line .badge, .line span:not([class])').forEach((part) => part.append('long'.repeat(20)))", nil)
	p.fits("a review with long names")
	late.clicks("#issue-i-new .decide summary")
	late.do(chromedp.SetValue("#i-new-status", "open"), chromedp.Submit("#i-new-status"))
	late.reads("#issue-i-new .conflict", "apikey/ada was faster: the issue is confirmed now", "Nothing was changed")
	late.sees("document.querySelector('#i-new-status').value === 'open'")
	q.clicks(`main a[href="/console/scans/s-1"]`)
	q.reads("main", "gosec over web", "Why it failed", "What to do next")
	q.goes("/console/deliveries")
	q.reads(".problem", "webhooks:read")
}

// fits expects that no element is wider than the window.
func (p *person) fits(page string) {
	p.Helper()
	var over int
	p.evaluates("document.documentElement.scrollWidth - document.documentElement.clientWidth", &over)
	if over > 0 {
		p.Errorf("%s is %d pixels wider than the window", page, over)
	}
}

func TestOneCanFilterReadAndDecideWithoutScripts(t *testing.T) {
	t.Parallel()
	o := newOrganization(t)
	o.has(some(4)...)
	p := newPerson(t)
	_, err := chromedp.Call(p.window, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	harness.Must(t, err)
	text := func(selector string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(p.window, patience)
		defer cancel()
		text, err := chromedp.Run(ctx, chromedp.Text(selector))
		harness.Must(t, err)
		return text
	}
	p.do(chromedp.Navigate(base+"/console/login"), chromedp.SendKeys("#key", o.key("ada")), chromedp.SendKeys("#key", kb.Enter),
		chromedp.WaitVisible(".account"))
	p.do(chromedp.Navigate(base+"/console/findings"), chromedp.Click(".tools details:nth-of-type(1) summary"),
		chromedp.Click(`.menu a[href="/console/findings?order=asc&sort=severity"]`), chromedp.WaitVisible(`.facet a[href*="sort=severity"]`))
	harness.Same(t, "the least severe", "Finding number 2", text(".row:first-child .what a"))
	p.do(chromedp.Navigate(base+"/console/findings"), chromedp.Click(`.facet a[href="/console/findings?severity=high"]`),
		chromedp.WaitVisible(".chips"))
	harness.Same(t, "the total", "2 findings", text(".total"))
	const painted = "performance.getEntriesByType('paint').length > 0" // earlier the browser drops clicks
	p.sees(painted)
	p.do(chromedp.Click(".row .what a"), chromedp.WaitVisible(".finding"))
	p.sees(painted)
	p.do(chromedp.Click(".decide summary"), chromedp.SendKeys("#this-comments", "Seen."), chromedp.Click(".decide button"),
		chromedp.WaitVisible(".decision blockquote"))
	want := v1alpha1.FindingTriage{UserStatus: "muted", Comments: "Seen.", By: "apikey/ada", Basis: "rated=high"}
	harness.Same(t, "the decision", want, o.finding("f-0003").Spec.Triage)
}

// hostile are texts that would be harmful if they were interpreted as markup.
var hostile = []string{
	`<script>window.owned = true</script>`, `"><img src=x onerror="window.owned = true">`,
	`[go](javascript:window.owned=true) ![x](x" onerror="window.owned=true)`, `<a href="javascript:window.owned=true">x</a>`,
	"</title></textarea></style></script><svg onload=window.owned=true>", "<base href=//127.0.0.1:1/><form action=//127.0.0.1:1>",
	"<style>*{display:none}</style>", `{{constructor.constructor('window.owned=true')()}}`, "' onfocus=window.owned=true autofocus x='",
	"te\u202estset/",
}

func TestHostileTextStaysText(t *testing.T) {
	t.Parallel()
	o := newOrganization(t)
	all := strings.Join(hostile, "\n\n")
	for i, text := range hostile {
		o.has(builder.Finding(fmt.Sprintf("f-%d", i)).Title(text).Triage(v1alpha1.UserStatusMuted, all).Mutate(func(f *v1alpha1.Finding) {
			d := &f.Spec.Details
			d.Description, d.Remediation, d.ExploitWalkthrough = all, all, all
			d.Code, d.FixedCode = text, text
			d.Location = &v1alpha1.FileLocation{FilePath: text, MethodName: text, LineNumber: 1}
			d.SupportingFiles = []v1alpha1.FileLocation{{FilePath: text, MethodName: text, ClassName: text}}
		}))
	}
	o.hasOthers(all)
	p := loggedIn(t, o.key("ada", v1alpha1.Scopes()...))
	for _, page := range []string{
		"/console/", "/console/findings", "/console/reviews/rv-1", "/console/scans/s-1", "/console/policies", "/console/policies/p-1",
		"/console/policies/p-wrong", "/console/keys",
	} {
		p.goes(page)
		p.isNotOwned(page)
	}
	for i, text := range hostile {
		rule := "/console/policies/_new?" + url.Values{"text": {text}, "rule": {text}, "stale": {text}, "set.comment": {text}}.Encode()
		for _, page := range []string{fmt.Sprintf("/console/findings/f-%d", i), rule} {
			p.goes(page)
			p.isNotOwned(page)
		}
	}
	p.goes("/console/findings")
	for i, text := range hostile {
		p.evaluates(fmt.Sprintf("void (location.hash = '#f-%d')", i), nil)
		p.reads("#panel h1", strings.ReplaceAll(text, "\u202e", `\u202e`))
		p.reads("#panel", "What happened")
		p.isNotOwned("the panel of " + text)
	}
}

// isNotOwned expects that no text of the page became markup.
func (p *person) isNotOwned(page string) {
	p.Helper()
	var owned bool
	p.evaluates("window.owned === true || document.querySelector('main script, main base, main style, main [onerror], main [onload], "+
		"main [onfocus], main a[href^=\"javascript\"], main form[action*=\"//\"]') !== null", &owned)
	if owned {
		p.Errorf("%s: a text became more than text", page)
	}
	var reversed string // what people or scanners wrote at length, and manifests, are shown as they are
	p.evaluates(`[document.title, ...[...document.querySelectorAll("main :not(.prose, .prose *, blockquote, textarea, #manifest)")].
		flatMap((part) => [...part.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data))].
		find((text) => text.includes("\u202e")) ?? ""`, &reversed)
	harness.Same(p, page+": text with a hidden reversal", "", reversed)
}
