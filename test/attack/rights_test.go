package attack

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// The operations for which a key needs an explicit scope: policies, redelivery, the list of keys.

const policiesPath = "/v2/triage-policies"

// policy is a request that creates a policy.
func policy(body string) shot { return shot{method: http.MethodPost, path: policiesPath, body: body} }

// A policy decides only about its own organization's findings, whatever it names; only an organization's own
// deliveries can be redelivered; and decisions cannot be signed in another's name.
func TestIsolation_PoliciesAndRedeliveriesReachNobodyElse(t *testing.T) {
	pairs(t, func(t *testing.T, attacker, victim *tenant) {
		const set = `"set":{"user_status":"muted","reason":"duplicate"},"mode":"apply"}`
		forged := policy(fmt.Sprintf(`{"match":"finding.name == '%s' || repository.name == '%s'",`+set, victim.ids["finding"], victim.ids["repository"])).signedAs("apikey/" + victim.mark)
		a := target.facade.send(t, attacker.token, forged)
		var made struct {
			ID, Author string
			Matched    int
		}
		if err := json.Unmarshal(a.body, &made); err != nil || a.status != http.StatusCreated {
			t.Fatalf("a policy: %s", a)
		}
		attempt(t, isolation, made.Matched == 0, "a policy about another's findings matches %d", made.Matched)
		attempt(t, isolation, made.Author == "apikey/key-"+attacker.mark, "the policy is signed by %q", made.Author)
		harness.Must(t, target.env.Client.Delete(t.Context(), builder.TriagePolicy(made.ID, "").In(attacker.namespace).Build()))
		absent := victim.absent()
		again := func(ids map[string]string) shot {
			return shot{method: http.MethodPost, path: "/v2/webhook-deliveries/" + ids["delivery"] + "/redeliver"}
		}
		x := fire(t, attacker, victim, again(victim.ids), http.StatusNotFound)
		y := target.facade.send(t, attacker.token, again(absent))
		attempt(t, isolation, x.same(y), "another's delivery %s, absent %s", x, y)
		victim.unharmed(t)
	})
}

// A key that lists no scope cannot create a policy, and nobody can create an invalid one.
func TestInput_InvalidOrForbiddenPoliciesAreRefused(t *testing.T) {
	o := newOrganization(t, "rights-"+letters(6), plenty)
	const set = `"set":{"user_status":"muted","reason":"duplicate"}`
	const valid = `{"match":"true",` + set + `}`
	all := o.key(t, "defaults")
	o.refuses(t, policiesPath, []refusal{
		{"a key that lists no scope", all, policy(valid), http.StatusForbidden},
		{"no key", "", policy(valid), http.StatusUnauthorized},
		{"a forged author", o.token, policy(`{"match":"true","by":"ann",` + set + `}`), http.StatusBadRequest},
		{"a forged author under its other name", o.token, policy(`{"match":"true","author":"ann",` + set + `}`), http.StatusBadRequest},
		{"another namespace", o.token, policy(`{"match":"true","namespace":"org-other",` + set + `}`), http.StatusBadRequest},
		{"a name that is a path", o.token, policy(`{"match":"true","name":"../../org-other/triagepolicies/p",` + set + `}`), http.StatusBadRequest},
		{"an expression that is too long", o.token, policy(`{"match":"` + strings.Repeat("x", 4097) + `",` + set + `}`), http.StatusBadRequest},
		{"an expression as deep as it can be", o.token, policy(`{"match":"` + strings.Repeat("(", 2000) + `",` + set + `}`), http.StatusBadRequest},
		{"an expression that costs too much", o.token,
			policy(`{"match":"finding.title.split('').exists(a, finding.title.split('').exists(b, finding.title.contains(a + b)))",` + set + `}`), http.StatusBadRequest},
		{"a large pattern", o.token, policy(`{"match":"finding.title.matches('` + strings.Repeat("(a{100}){100}", 20) + `')",` + set + `}`), http.StatusBadRequest},
		{"megabytes", o.token, policy(`{"match":"true","set":{"user_status":"muted","reason":"duplicate","comment":"` + strings.Repeat("x", 20<<20) + `"}}`), http.StatusBadRequest},
		{"a comment that is too long", o.token, policy(`{"match":"true","set":{"user_status":"muted","reason":"duplicate","comment":"` + strings.Repeat("x", 1025) + `"}}`), http.StatusBadRequest},
		{"more than the mode", o.token, shot{method: http.MethodPatch, path: policiesPath + "/p", body: `{"mode":"apply","match":"true"}`}, http.StatusBadRequest},
	})
}
