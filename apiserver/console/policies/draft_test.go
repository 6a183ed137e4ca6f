package policies

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/client"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/pagetest"
)

// A filter that is left out would make the rule broader than the list.
func TestARuleIsNotDraftedFromFiltersThatDoNotExist(t *testing.T) {
	for query, refused := range map[string]bool{
		"tool=gosec&stale=true&set.comment=x&set.until=2099-01-01": false,
		"tool=gosec&severty=high":                                  true,
		"severity=high&severity=low":                               true,
		"tool=gosec&set.untill=2099-01-01":                         true,
	} {
		given, err := url.ParseQuery(query)
		harness.Must(t, err)
		_, err = draftPage(t.Context(), &page.Visit{Query: given})
		if api.Is(err, http.StatusBadRequest) != refused || !refused && err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// The form offers the opposite of what was chosen.
func TestARuleSaysThatItCannotWithdraw(t *testing.T) {
	for _, chosen := range []string{"open", "muted", "active"} {
		_, shown := drafted(t, url.Values{"filter.tool": {"gosec"}, "user_status": {chosen}})
		harness.Same(t, chosen, chosen == "open", strings.Contains(shown, "Decision: Withdraw the decision</strong>. A policy mutes or confirms"))
		harness.Same(t, chosen+" offers to mute", chosen == "muted", strings.Contains(shown, `<option value="muted" selected>`))
	}
}

// A browser may send the form although no decision is chosen. To mute is not what somebody chose who withdrew.
func TestAPolicyWithoutADecisionIsRefusedAndAsksForIt(t *testing.T) {
	var sent client.TriagePolicyRequest
	service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewDecoder(r.Body).Decode(&sent)
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte("{}"))
	})
	v := &page.Visit{API: api.New(service, "", "")}
	for given, want := range map[string]string{"": "", "open": "", "active": "active", "not given": ""} {
		v.Form = url.Values{"match": {"true"}, "user_status": {given}, "reason": {"duplicate"}}
		if given == "not given" {
			v.Form.Del("user_status")
		}
		_, shown := pagetest.Show(t, create, v)
		harness.Same(t, "the decision sent", want, string(sent.Set.UserStatus))
		asks := regexp.MustCompile(`name="user_status" required>\s*<option value="">choose one`).MatchString(shown)
		harness.Same(t, given+": the form asks for it", want == "", asks)
	}
}

// Without its bound, the policy that is put into Git decides about more than was asked.
func TestAPolicyWithABoundThatIsNoneIsNotShownAsYAML(t *testing.T) {
	for _, c := range []struct{ field, value, wrong string }{
		{"max_findings", "50", ""},
		{"until", "2099-05-04", ""},
		{"max_findings", "1e2", "Matches at most&#34; must be a whole number from 1 to 100000"},
		{"max_findings", "0", "Matches at most&#34; must be a whole number from 1 to 100000"},
		{"until", "4 May", "The end must be a date"},
	} {
		form := url.Values{"match": {"true"}, "name": {"p"}, "user_status": {"active"}, "do": {"yaml"}, c.field: {c.value}}
		address := url.Values{"tool": {"gosec"}, "set.name": {"p"}, "set.user_status": {"active"}, "set." + c.field: {c.value}}
		for _, v := range []*page.Visit{{Form: form}, {Query: address}} {
			serve := draftPage
			if v.Form != nil {
				serve = create
			}
			_, shown := pagetest.Show(t, serve, v)
			if isShown := strings.Contains(shown, `id="manifest"`); isShown != (c.wrong == "") || !strings.Contains(shown, c.wrong) {
				t.Errorf("%s=%s: the manifest is shown: %v\n%s", c.field, c.value, isShown, shown)
			}
		}
	}
}

// A name made up for the manifest would be that of other policies, too: each would replace the one before. What else is
// missing would be refused by kubectl and by every sync.
func TestAPolicyIsShownAsYAMLOnlyIfItIsWhole(t *testing.T) {
	absent := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("{}"))
	})
	for _, c := range []struct{ name, status, reason, asks string }{
		{"mute-x", "active", "", ""},
		{" mute-x ", "muted", "duplicate", ""},
		{"", "active", "", "Give the policy a name"},
		{"Mute_X", "active", "", "The name may only have lower-case letters, digits, - and ."},
		{"mute x", "muted", "duplicate", "The name may only have lower-case letters, digits, - and ."},
		{"mute-x", "muted", "", "Choose a reason"},
		{"mute-x", "open", "", "Choose a decision"},
	} {
		form := url.Values{"name": {c.name}, "match": {"true"}, "user_status": {c.status}, "reason": {c.reason}, "do": {"yaml"}}
		v := &page.Visit{API: api.New(absent, "", ""), Form: form}
		v.Who.Scopes = []string{"findings:read"}
		_, shown := pagetest.Show(t, create, v)
		harness.Contains(t, "the page says what is missing", shown, c.asks)
		harness.Same(t, c.name+": an error", c.asks != "", strings.Contains(shown, `role="alert"`))
		harness.Same(t, c.name+": the manifest is shown", c.asks == "", strings.Contains(shown, `id="manifest"`))
	}
}

// Whoever asks for a key with one of two missing scopes would have to ask again.
func TestADraftNamesEveryMissingScope(t *testing.T) {
	for _, c := range []struct {
		scopes      []string
		lacks, asks string
	}{
		{[]string{"findings:read"}, "lacks the scopes policies:write and findings:triage.", "NAME --scope policies:write --scope findings:triage and the"},
		{[]string{"findings:triage"}, "lacks the scope policies:write.", "NAME --scope policies:write and the"},
		{[]string{"policies:write"}, "lacks the scope findings:triage.", "NAME --scope findings:triage and the"},
	} {
		v := &page.Visit{Query: url.Values{"tool": {"gosec"}}}
		v.Who.Scopes = c.scopes
		_, shown := pagetest.Show(t, draftPage, v)
		harness.Contains(t, "the page", shown, c.lacks, c.asks)
	}
}

// The manifest would replace that policy: its expression, and the mode of one that is in force.
func TestAPolicyIsNotShownAsYAMLUnderTheNameOfAnother(t *testing.T) {
	service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusConflict)
		case r.URL.Path == "/v2/triage-policies/unread":
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte(`{"detail":"the data of policies is 10 minutes old"}`))
			return
		case r.URL.Path != "/v2/triage-policies/taken":
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte(`{"detail":"another triage policy is called taken"}`))
	})
	const (
		isTaken   = "A policy called taken exists already. Give another name. If you meant that policy, take its YAML"
		unchecked = "It could not be checked whether a policy has this name already: the data of policies is 10 minutes old. Try again at <time"
		check     = "check with kubectl get triagepolicies --namespace org-acme that no policy is called taken"
	)
	for _, c := range []struct {
		reason, name, do string
		scopes           []string
		status           int
		shown            bool
		says             string
	}{
		{"a free name", "free", "yaml", []string{"findings:read"}, http.StatusOK, true, ""},
		{"a taken name", "taken", "yaml", []string{"findings:read"}, http.StatusConflict, false, isTaken},
		{"a preview by a taken name", "taken", "preview", []string{"findings:read"}, http.StatusConflict, false, ""},
		{"a name in the address", "taken", "", []string{"findings:read"}, http.StatusConflict, false, isTaken},
		{"a name that cannot be checked", "unread", "yaml", []string{"findings:read"}, http.StatusInternalServerError, false, unchecked},
		{"a key that may not read policies", "taken", "yaml", nil, http.StatusOK, true, check},
	} {
		v := &page.Visit{API: api.New(service, "", "r-1")}
		v.Who.Scopes, v.Who.OrganizationId = c.scopes, "acme"
		serve := create
		if v.Form = (url.Values{"name": {c.name}, "match": {"true"}, "user_status": {"active"}, "do": {c.do}}); c.do == "" {
			serve, v.Query = draftPage, url.Values{"tool": {"gosec"}, "set.name": {c.name}, "set.user_status": {"active"}}
		}
		response, shown := pagetest.Show(t, serve, v)
		shown = strings.Join(strings.Fields(shown), " ")
		harness.Same(t, c.reason, c.status, response.Status)
		harness.Same(t, c.reason+": the manifest is shown", c.shown, strings.Contains(shown, `id="manifest"`))
		harness.Same(t, c.reason+": the manifest is not applied", c.shown, strings.Contains(shown, "or create it with kubectl create -f FILE"))
		harness.Same(t, c.reason+": the request id", c.says == unchecked, strings.Contains(shown, "Request <code>r-1</code>"))
		harness.Same(t, c.reason+": a link", c.says == isTaken, strings.Contains(shown, `<a href="/console/policies/`+c.name+`">policy `+c.name+`</a>`))
		for _, text := range []string{isTaken, unchecked, check} {
			harness.Same(t, c.reason+": "+text, c.says == text, strings.Contains(shown, text))
		}
		harness.Contains(t, c.reason+": the form keeps what was typed", shown, `value="`+c.name+`"`)
	}
}

// The form would have to be sent once more to lead there.
func TestAPolicyWhoseNameAKeyCanNoLongerCheckLeadsToTheLogin(t *testing.T) {
	service := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"detail":"a valid API key is needed"}`))
	})
	v := &page.Visit{API: api.New(service, "", "")}
	v.Who.Scopes = []string{"findings:read"}
	v.Form = url.Values{"name": {"p"}, "match": {"true"}, "user_status": {"active"}, "do": {"yaml"}}
	if _, err := create(t.Context(), v); !api.Is(err, http.StatusUnauthorized) {
		t.Errorf("the error is %v", err)
	}
}

// Otherwise the form would hide the page of the policy with that name.
func TestTheFormIsAtNoPolicysPage(t *testing.T) {
	if name := strings.TrimPrefix(newPath, page.Of(listPath, "")); len(validation.IsDNS1123Subdomain(name)) == 0 {
		t.Errorf("a policy can be called %s", name)
	}
}

// A policy of the same name may have taken its place, at the same generation.
func TestThePageAppliesOnlyThePolicyThatItShows(t *testing.T) {
	var sent client.TriagePolicyChange
	service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewDecoder(r.Body).Decode(&sent)
		_, _ = w.Write([]byte("{}"))
	})
	s := shown{mayWrite: true}
	s.Mode, s.Observed, s.Generation, s.Uid = client.TriagePolicyModePreview, true, 3, "u-1"
	form := pagetest.Text(t, switches(s))
	v := &page.Visit{API: api.New(service, "", ""), Path: func(string) string { return "p-1" }, Form: url.Values{}}
	for _, field := range regexp.MustCompile(`name="(\w+)" value="([^"]*)"`).FindAllStringSubmatch(form, -1) {
		v.Form.Set(field[1], field[2])
	}
	_, err := change(t.Context(), v)
	harness.Must(t, err)
	harness.Same(t, "what is sent", client.TriagePolicyChange{Mode: "apply", Generation: new(3), Uid: new("u-1")}, sent)
}

// Whoever clicks twice, or got no answer, has applied it already.
func TestAPolicyThatIsAppliedTwiceIsShown(t *testing.T) {
	applied := client.TriagePolicy{Id: "mute-x", Uid: "u-1", Generation: 4, Mode: client.TriagePolicyModeApply, Author: "apikey/ada"}
	for why, c := range map[string]struct {
		change func(*client.TriagePolicy)
		shown  bool
	}{
		"by her":                   {func(*client.TriagePolicy) {}, true},
		"by somebody else":         {func(p *client.TriagePolicy) { p.Author = "apikey/bob" }, false},
		"stopped since":            {func(p *client.TriagePolicy) { p.Generation, p.Mode = 5, client.TriagePolicyModePreview }, false},
		"changed since":            {func(p *client.TriagePolicy) { p.Generation = 5 }, false},
		"changed, and not applied": {func(p *client.TriagePolicy) { p.Mode = client.TriagePolicyModePreview }, false},
		"created again":            {func(p *client.TriagePolicy) { p.Uid = "u-2" }, false},
	} {
		now := applied
		c.change(&now)
		service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPatch {
				w.WriteHeader(http.StatusPreconditionFailed)
			}
			_ = json.NewEncoder(w).Encode(now)
		})
		v := &page.Visit{API: api.New(service, "", ""), Path: func(string) string { return "mute-x" },
			Form: url.Values{"mode": {"apply"}, "generation": {"3"}, "uid": {"u-1"}}}
		v.Who.Key = "ada"
		response, err := change(t.Context(), v)
		if c.shown {
			harness.Must(t, err)
			harness.Same(t, why, "/console/policies/mute-x", response.Location)
		} else if !api.Is(err, http.StatusPreconditionFailed) {
			t.Errorf("%s: %d, %v", why, response.Status, err)
		}
	}
}

// Whoever clicks twice, or got no answer, has created it already, and needs no other name.
func TestAPolicyThatIsSentTwiceIsShown(t *testing.T) {
	reason := client.DecisionReason("duplicate")
	for why, c := range map[string]struct {
		author, match string
		status        int
	}{
		"the same":        {"apikey/ada", "true", http.StatusSeeOther},
		"another":         {"apikey/ada", "false", http.StatusConflict},
		"somebody else's": {"apikey/bob", "true", http.StatusConflict},
	} {
		stored := client.TriagePolicy{Id: "mute-x", Author: c.author, Match: c.match, Mode: client.TriagePolicyModePreview, MaxFindings: 1000,
			Set: client.TriagePolicyDecision{UserStatus: "muted", Reason: &reason}}
		service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				w.WriteHeader(http.StatusConflict)
			}
			_ = json.NewEncoder(w).Encode(stored)
		})
		v := &page.Visit{API: api.New(service, "", ""), Form: url.Values{"name": {"mute-x"}, "match": {"true"},
			"user_status": {"muted"}, "reason": {string(reason)}, "do": {"preview"}}}
		v.Who.Key = "ada"
		response, err := create(t.Context(), v)
		harness.Must(t, err)
		harness.Same(t, why, c.status, response.Status)
		if c.status == http.StatusSeeOther {
			harness.Same(t, why, "/console/policies/mute-x", response.Location)
		}
	}
}

// drafted returns the response to the form of the list of findings, and the form of a policy to which it leads.
func drafted(t *testing.T, form url.Values) (there page.Response, shown string) {
	t.Helper()
	there, err := draftOfSelection(t.Context(), &page.Visit{Form: form})
	harness.Must(t, err)
	if there.Location == "" {
		return there, pagetest.Text(t, there.Body)
	}
	at, err := url.Parse(there.Location)
	harness.Must(t, err)
	_, shown = pagetest.Show(t, draftPage, &page.Visit{Query: at.Query()})
	return there, shown
}

// Policies have shorter comments than findings.
func TestALongCommentIsCutForARuleAndTheFormSaysSo(t *testing.T) {
	for _, c := range []struct {
		comment, want string
		cut           bool
	}{
		{strings.Repeat("a", 1500), strings.Repeat("a", 1024), true},
		{strings.Repeat("é\r\n", 512), strings.Repeat("é\n", 512), false},
		{strings.Repeat("😀\r\n", 5000), strings.Repeat("😀\n", 512), true},
	} {
		for _, until := range []string{"2099-05-04", "4 May"} {
			_, shown := drafted(t, url.Values{"filter.tool": {"gosec"}, "comments": {c.comment}, "until": {until}})
			if !strings.Contains(shown, ">"+c.want+"</textarea>") || strings.Contains(shown, "The comment was cut") != c.cut {
				t.Errorf("%d characters, until %s:\n%s", len(c.comment), until, shown)
			}
		}
	}
}

// Proxies refuse longer addresses in a redirect.
func TestADraftWhoseAddressWouldBeTooLongIsShownWithoutARedirect(t *testing.T) {
	for comment, redirected := range map[string]bool{
		strings.Repeat("a", 1024): true,
		strings.Repeat("不", 200):  true,
		strings.Repeat("不", 400):  false,
	} {
		there, shown := drafted(t, url.Values{"filter.tool": {"gosec"}, "comments": {comment}})
		harness.Same(t, "redirected", redirected, there.Location != "")
		if len(there.Location) > page.MaxAddress {
			t.Errorf("an address of %d bytes", len(there.Location))
		}
		harness.Contains(t, "the comment", shown, ">"+comment+"</textarea>")
		harness.Contains(t, "the filter", shown, "finding.tool == &#39;gosec&#39;")
		own := strings.Contains(shown, `data-address="/console/policies/_new?tool=gosec"`)
		harness.Same(t, "its address is given", !redirected, own)
	}
}

// A draft without it would decide about more findings.
func TestADraftFromAnUnknownFilterIsRefused(t *testing.T) {
	form := url.Values{"filter.tool": {"gosec"}, "filter.newer": {"x"}, "comments": {strings.Repeat("不", 400)}}
	if _, err := draftOfSelection(t.Context(), &page.Visit{Form: form}); err == nil {
		t.Error("the draft is shown without the filter")
	}
}
