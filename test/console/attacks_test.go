package console_test

import (
	"encoding/csv"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var tokenOfPage = regexp.MustCompile(`name="console-token" content="([^"]+)"`)

// token returns the token that the visitor's pages include in forms.
func (v *visitor) token() string {
	v.Helper()
	found := tokenOfPage.FindStringSubmatch(v.asks("/console/findings", nil).text)
	if found == nil {
		v.Fatal("the page has no token")
	}
	return found[1]
}

// mute returns the form of a decision.
func mute(token string) url.Values {
	return url.Values{"user_status": {"muted"}, "token": {token}}
}

func TestNoOtherSiteDecidesWithAPersonsSession(t *testing.T) {
	o := newOrganization(t)
	o.has(some(1)...)
	v := newUser(t, o.key("ada"))
	token := v.token()
	other := newUser(t, o.key("eve"))
	for name, attack := range map[string]struct {
		form    url.Values
		headers []string
	}{
		"no token":               {url.Values{"user_status": {"muted"}}, nil},
		"another person's token": {mute(other.token()), nil},
		"a token cut short":      {mute(token[:len(token)-1]), nil},
		"another site":           {mute(token), []string{"Sec-Fetch-Site", "cross-site"}},
		"a neighbour":            {mute(token), []string{"Sec-Fetch-Site", "same-site"}},
		"another origin":         {mute(token), []string{"Origin", "https://evil.example"}},
		"no origin":              {mute(token), []string{"Origin", "null"}},
	} {
		harness.Same(t, name, http.StatusForbidden, v.asks("/console/findings/f-0000", attack.form, attack.headers...).StatusCode)
	}
	if got := o.finding("f-0000").Spec.Triage.UserStatus; got == v1alpha1.UserStatusMuted {
		t.Error("an attack has decided")
	}
	if answer := v.asks("/console/login", url.Values{"key": {o.key("fixed")}}, "Sec-Fetch-Site", "cross-site"); len(answer.Cookies()) > 0 {
		t.Error("another site logs people in")
	}
	harness.Same(t, "the page's own form", http.StatusSeeOther, v.asks("/console/findings/f-0000", mute(token), "Sec-Fetch-Site", "same-origin").StatusCode)
}

func TestASessionIsMadeFromAKeyAloneAndEndsWithIt(t *testing.T) {
	o := newOrganization(t)
	key := o.key("ada")
	v := newVisitor(t)
	for _, path := range []string{"/console/", "/console/findings", "/console/findings?key=" + key, "/console/findings/f-0000"} {
		answer := v.asks(path, nil, "Authorization", "Bearer "+key)
		if answer.StatusCode != http.StatusSeeOther || !strings.HasPrefix(answer.Header.Get("Location"), "/console/login?next=") {
			t.Errorf("%s without a session: %s to %s", path, answer.Status, answer.Header.Get("Location"))
		}
	}
	for _, given := range []string{"made-up", key, strings.Repeat("A", 600), ""} {
		harness.Same(t, fmt.Sprintf("a session of %.20q", given), http.StatusSeeOther, v.asks("/console/", nil, "Cookie", "findings_console="+given).StatusCode)
	}
	answer := v.asks("/console/login", url.Values{"key": {key}, "next": {"//evil.example/"}})
	harness.Same(t, "the login leads to", "/console/", answer.Header.Get("Location"))
	cookies := answer.Cookies()
	if len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteLaxMode || cookies[0].Path != "/console/" ||
		strings.Contains(cookies[0].Value, key[:20]) {
		t.Errorf("the cookie is %v", cookies)
	}
	harness.Same(t, "the REST API with the cookie", http.StatusUnauthorized, v.asks("/v2/findings", nil).StatusCode)
	if answer := v.asks("/console/findings", nil); answer.StatusCode != http.StatusOK {
		t.Fatalf("the session gets %s", answer.Status)
	}
	stored := builder.APIKey("ada").In(o.namespace).Build()
	env.Patch(t, stored, `{"spec":{"disabled":true}}`)
	harness.Eventually(t, func(g Gomega) {
		g.Expect(v.asks("/console/findings", nil).StatusCode).To(Equal(http.StatusSeeOther), "the session must end with its key")
	})
	const form = "/console/findings/f-0000"
	login := v.asks(form, mute("any"), "Referer", base+form).Header.Get("Location")
	harness.Contains(t, "where a form that comes too late leads to, "+login, v.asks(login, nil).text, "nothing was changed", `name="next" value="`+form+`"`)
}

func TestASessionSeesNoOtherOrganization(t *testing.T) {
	mine, theirs := newOrganization(t), newOrganization(t)
	mine.has(some(1)...)
	theirs.has(builder.Finding("f-theirs").Title("Theirs alone"))
	v := newUser(t, mine.key("ada"))
	token := v.token()
	foreign := v.asks("/console/findings/f-theirs", nil)
	absent := v.asks("/console/findings/f-nobodys", nil)
	if foreign.StatusCode != http.StatusNotFound || absent.StatusCode != http.StatusNotFound {
		t.Errorf("another's finding gets %s, and none at all %s", foreign.Status, absent.Status)
	}
	for _, query := range []string{"", "?organization_id=" + theirs.name, "?text=theirs", "?repo_id=shop"} {
		harness.Lacks(t, "/console/findings"+query, v.asks("/console/findings"+query, nil).text, "Theirs alone")
	}
	harness.Same(t, "a decision about another's finding", http.StatusNotFound, v.asks("/console/findings/f-theirs", mute(token)).StatusCode)
	operation := v.asks("/console/operations/_new", url.Values{"token": {token}, "user_status": {"muted"}, "id": {"f-theirs"}})
	if operation.StatusCode != http.StatusSeeOther {
		t.Fatalf("an operation about another's finding gets %s:\n%s", operation.Status, operation.text)
	}
	harness.Eventually(t, func(g Gomega) {
		g.Expect(v.asks(operation.Header.Get("Location"), nil).text).To(ContainSubstring("nothing is decided yet"))
	})
	// Its page has no form, because it would change nothing.
	name := path.Base(operation.Header.Get("Location"))
	stored := testenv.Get(t, NewWithT(t), env, builder.TriageOperation(name, "").In(mine.namespace).Build())
	if answer := v.asks(operation.Header.Get("Location")+"/commit", url.Values{"token": {token}, "uid": {string(stored.UID)}}); answer.StatusCode != http.StatusSeeOther {
		t.Fatalf("the commit gets %s:\n%s", answer.Status, answer.text)
	}
	harness.Eventually(t, func(g Gomega) {
		g.Expect(v.asks(operation.Header.Get("Location"), nil).text).To(Or(ContainSubstring("Outcome"), ContainSubstring("failed")))
	})
	if got := theirs.finding("f-theirs").Spec.Triage.UserStatus; got == v1alpha1.UserStatusMuted {
		t.Error("another's finding was decided about")
	}
}

func TestAnAddressWithoutAPageLeadsOn(t *testing.T) {
	o := newOrganization(t)
	v := newUser(t, o.key("ada"))
	for _, path := range []string{"/console/nowhere", "/console/operations/op-1/commit"} {
		if answer := v.asks(path, nil); answer.StatusCode != http.StatusNotFound || !strings.Contains(answer.text, `<nav aria-label="Pages">`) {
			t.Errorf("%s: %s\n%s", path, answer.Status, answer.text)
		}
	}
	// A form that is shown again has the address to which it was sent.
	for path, page := range map[string]string{
		"/console/reviews/rv-1/issues/i-1?severity=high": "/console/reviews/rv-1?severity=high#issue-i-1",
		"/console/operations/_new?severity=high":         "/console/findings?severity=high",
	} {
		harness.Same(t, path+" leads to", page, v.asks(path, nil).Header.Get("Location"))
	}
}

func TestNoPageMayBeFramedOrRunWhatItHolds(t *testing.T) {
	o := newOrganization(t)
	v := newUser(t, o.key("ada"))
	for _, path := range []string{"/console/", "/console/login", "/console/findings", "/console/none", "/console/operations"} {
		header := v.asks(path, nil).Header
		policy := header.Get("Content-Security-Policy")
		harness.Contains(t, path+": the policy", policy, "default-src 'none'", "script-src 'self';", "style-src 'self';", "frame-ancestors 'none'",
			"base-uri 'none'", "form-action 'self'")
		if strings.Contains(policy, "unsafe") || header.Get("X-Frame-Options") != "DENY" || header.Get("X-Content-Type-Options") != "nosniff" ||
			header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", path, header)
		}
		harness.Lacks(t, path+": no style or script of its own", v.asks(path, nil).text, " style=", "<style", "<script>")
	}
}

// During a rolling update, a page of one version may request assets from a replica of another.
func TestAnAssetOfAnotherVersionIsServedAndNotKept(t *testing.T) {
	v := newVisitor(t)
	at := regexp.MustCompile(`/console/assets/\w+/ui/ui\.css`).FindString(v.asks("/console/login", nil).text)
	own, other := v.asks(at, nil), v.asks("/console/assets/0123456789abcdef/ui/ui.css", nil)
	if own.text == "" || other.text != own.text || !strings.Contains(own.Header.Get("Cache-Control"), "immutable") ||
		other.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("of this version %s %v, of another %s %v", own.Status, own.Header, other.Status, other.Header)
	}
	harness.Same(t, "an asset that does not exist", http.StatusNotFound, v.asks("/console/assets/0123456789abcdef/ui/none.css", nil).StatusCode)
}

func TestAnExportHoldsWhatTheListShowsAndOnlyForASession(t *testing.T) {
	o := newOrganization(t)
	o.has(some(4)...)
	v := newVisitor(t)
	harness.Same(t, "an export without a session", http.StatusSeeOther, v.asks("/console/export?format=csv", nil).StatusCode)
	v.logsIn(o.key("ada"))
	link := regexp.MustCompile(`href="(/console/export\?format=csv[^"]*)"`).FindStringSubmatch(v.asks("/console/findings?severity=high", nil).text)
	if link == nil {
		t.Fatal("the list has no link to its export")
	}
	answer := v.asks(html.UnescapeString(link[1]), nil)
	rows, err := csv.NewReader(strings.NewReader(answer.text)).ReadAll()
	if err != nil || len(rows) != 3 || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/csv") ||
		!strings.HasPrefix(answer.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("the export has %d rows (%v), headers %v", len(rows), err, answer.Header)
	}
	answer = v.asks("/console/export?format=xml", nil)
	if answer.StatusCode != http.StatusBadRequest || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") ||
		!strings.Contains(answer.text, "<h1>") || !strings.Contains(answer.text, "Format must be one of") {
		t.Errorf("an export that fails is answered with %s and %v\n%s", answer.Status, answer.Header, answer.text)
	}
	answer = v.asks("/console/export?format=csv&text=50%&organization="+o.name, nil)
	if answer.StatusCode != http.StatusBadRequest || !strings.Contains(answer.text, "is damaged") {
		t.Errorf("an export by a damaged filter is answered with %s\n%s", answer.Status, answer.text)
	}
	v.logsIn(newOrganization(t).key("eve"))
	answer = v.asks(html.UnescapeString(link[1]), nil)
	if answer.StatusCode != http.StatusForbidden || !strings.Contains(answer.text, "another organization") {
		t.Errorf("after a login to another organization: %s\n%s", answer.Status, answer.text)
	}
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

func TestPagesCountAgainstTheKeysLimitAndWhatTheyAskForDoesNot(t *testing.T) {
	o := newOrganization(t)
	key := o.key("ada")
	stored := builder.APIKey("ada").In(o.namespace).Build()
	env.Patch(t, stored, `{"spec":{"rateLimit":{"requestsPerMinute":1000}}}`)
	v := newUser(t, key)
	remaining := func() (left string) { return v.asks("/console/findings", nil).Header.Get("X-Ratelimit-Remaining") }
	harness.Eventually(t, func(g Gomega) {
		first, second := remaining(), remaining()
		g.Expect(v.asks("/console/findings", nil).Header.Get("X-Ratelimit-Limit")).To(Equal("1000"))
		g.Expect(number(first)-number(second)).To(Equal(1), "a page counts once, whatever it shows")
	})
	env.Patch(t, stored, `{"spec":{"rateLimit":{"requestsPerMinute":1}}}`)
	harness.Eventually(t, func(g Gomega) {
		answer := v.asks("/console/findings", nil)
		g.Expect(answer.StatusCode).To(Equal(http.StatusTooManyRequests))
		g.Expect(answer.text).To(And(ContainSubstring("Too many requests"), ContainSubstring("Try again at"), ContainSubstring("<time"),
			ContainSubstring("Wait a moment, then try again."), Not(ContainSubstring("in the header"))))
	})
}
