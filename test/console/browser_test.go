package console_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/needs"
)

// patience bounds every wait in the browser, on a busy machine.
const patience = 2 * time.Minute

// browser is shared by all tests; each person has a separate window with separate cookies.
var browser struct {
	sync.Once
	context.Context
	err error
}

func startBrowser(program string) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.ExecPath(program),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"), chromedp.Flag("no-proxy-server", true))
	allocator, _ := chromedp.NewExecAllocator(context.Background(), options...)
	browser.Context, _ = chromedp.NewContext(allocator)
	browser.err = chromedp.Do(browser.Context)
}

// stopBrowser closes the browser if a test started it, which removes its folder.
func stopBrowser() error {
	if browser.Context == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(browser.Context, patience)
	defer cancel()
	return chromedp.Cancel(ctx)
}

// person is a user of the browser.
type person struct {
	testing.TB
	window context.Context
}

// newPerson opens a window without a login.
func newPerson(t testing.TB) *person {
	t.Helper()
	program := needs.Browser(t)
	browser.Do(func() { startBrowser(program) })
	if browser.err != nil {
		t.Fatal(browser.err)
	}
	window, closeWindow := chromedp.NewContext(browser.Context, chromedp.WithNewBrowserContext())
	window, cancel := context.WithTimeout(window, 4*patience)
	t.Cleanup(func() {
		cancel()
		closeWindow()
	})
	// The window lives as long as the context of its first use.
	harness.Must(t, chromedp.Do(window))
	p := &person{t, window}
	p.do(chromedp.EmulateViewport(1280, 900))
	return p
}

// loggedIn opens an empty window with the session of the key. It does without the login page and the overview, which
// most tests are not about.
func loggedIn(t testing.TB, key string) *person {
	t.Helper()
	p := newPerson(t)
	var cookies []*network.CookieParam
	for _, cookie := range newVisitor(t).logsIn(key) {
		cookies = append(cookies, &network.CookieParam{URL: base + cookie.Path, Path: cookie.Path, Name: cookie.Name, Value: cookie.Value,
			HTTPOnly: cookie.HttpOnly, SameSite: network.CookieSameSiteLax})
	}
	_, err := chromedp.Call(p.window, network.SetCookies, network.SetCookiesParams{Cookies: cookies})
	harness.Must(t, err)
	return p
}

// withFindings returns a new organization that has the findings, and a person who has logged in to it.
func withFindings(t testing.TB, findings ...*builder.FindingBuilder) (*organization, *person) {
	t.Helper()
	o := newOrganization(t)
	o.has(findings...)
	return o, loggedIn(t, o.key("ada"))
}

// logsIn sends the key on the login page.
func (p *person) logsIn(key string) {
	p.Helper()
	p.do(chromedp.SendKeys("#key", key), chromedp.Submit("#key"))
}

func (p *person) do(steps ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.window, patience)
	defer cancel()
	for _, step := range steps {
		err := chromedp.Do(ctx, step)
		for err != nil && ctx.Err() == nil && isOfEarlierPage(err) {
			err = chromedp.Do(ctx, step)
		}
		if err != nil {
			p.Fatalf("%v; the page shows:\n%s", err, p.shown())
		}
	}
}

// isOfEarlierPage reports whether a step was given a node that the page no longer has: chromedp takes nodes of the page
// that was left until Chromium tells it of the new one. Nothing was done then.
func isOfEarlierPage(err error) bool {
	return strings.Contains(err.Error(), "No node with given id found") ||
		strings.Contains(err.Error(), "Could not find node with given id")
}

// shown returns the text of the page, for failure messages.
func (p *person) shown() string {
	ctx, cancel := context.WithTimeout(p.window, patience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string]("location.href + '\\n' + document.body.innerText"))
	if err != nil {
		return err.Error()
	}
	return text
}

func (p *person) goes(path string) {
	p.Helper()
	p.do(chromedp.Navigate(base+path), chromedp.WaitReady("main"))
}

// presses presses the keys one after the other.
func (p *person) presses(keys ...string) {
	p.Helper()
	for _, key := range keys {
		p.types(key)
	}
}

// keyNames holds the names of keys that are not letters.
var keyNames = map[string]string{kb.Enter: "Enter", kb.Escape: "Escape"}

// types presses a key as a keyboard does. Chromedp sends the letter separately, so it would be typed into the element
// that the key has opened.
func (p *person) types(key string) {
	p.Helper()
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown, input.DispatchKeyEventTypeKeyUp} {
		event := input.DispatchKeyEventParams{Type: kind, Key: cmp.Or(keyNames[key], key)}
		if kind == input.DispatchKeyEventTypeKeyDown {
			event.Text = key
		}
		_, err := chromedp.Call(p.window, input.DispatchKeyEvent, event)
		harness.Must(p, err)
	}
}

func (p *person) clicks(selector string) {
	p.Helper()
	p.do(chromedp.Click(selector, chromedp.NodeVisible))
}

// sees waits until the expression is true in the current page, even after a navigation.
func (p *person) sees(expression string) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.window, patience)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		// A page that is being left does not answer.
		if holds, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")")); err == nil && holds {
			return
		}
		select {
		case <-ctx.Done():
			p.Fatalf("never true: %s; the page shows:\n%s", expression, p.shown())
		case <-ticker.C:
		}
	}
}

// reads waits until the element's text contains all of the words.
func (p *person) reads(selector string, words ...string) {
	p.Helper()
	for _, word := range words {
		p.sees(fmt.Sprintf("document.querySelector(%s)?.innerText.includes(%s)", quoted(selector), quoted(word)))
	}
}

// evaluates stores the result of the expression in the value.
func (p *person) evaluates(expression string, into any) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.window, patience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string]("Promise.resolve("+expression+").then((x) => JSON.stringify(x) ?? 'null')",
		chromedp.EvalAwaitPromise))
	if err != nil {
		p.Fatalf("%s: %v", expression, err)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		p.Fatalf("%s gives %s: %v", expression, text, err)
	}
}

// prefers sets the colour scheme of the person's system.
func (p *person) prefers(scheme string) {
	p.Helper()
	_, err := chromedp.Call(p.window, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	harness.Must(p, err)
}

func quoted(text string) string {
	content, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string
	}
	return string(content)
}

// loads loads a page as on a first visit, and checks that the page with all its resources transfers at most that many
// bytes.
func (p *person) loads(path string, most int) {
	p.Helper()
	_, err := chromedp.Call(p.window, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true})
	harness.Must(p, err)
	p.goes(path)
	p.sees("performance.getEntriesByType('resource').length > 4 && performance.getEntriesByType('navigation')[0].loadEventEnd > 0")
	var bytes int
	p.evaluates("[...performance.getEntriesByType('resource'), ...performance.getEntriesByType('navigation')].reduce((sum, e) => sum + e.transferSize, 0)", &bytes)
	if bytes == 0 || bytes > most {
		p.Errorf("%s transfers %d bytes, want at most %d", path, bytes, most)
	}
	p.Logf("%s transfers %d bytes", path, bytes)
}
