package attack

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// eventsOnce requests the stream of events without following it.
var eventsOnce = shot{method: http.MethodGet, path: "/v2/events?follow=false"}

// placeIn returns the last id of an answer.
func placeIn(t *testing.T, a *answer) string {
	t.Helper()
	parts := strings.Split(string(a.body), "\nid: ")
	if a.status != http.StatusOK || len(parts) == 1 {
		t.Fatalf("the stream: %s", a)
	}
	return strings.TrimSpace(parts[len(parts)-1])
}

// A position in another organization's stream is useless, unchanged or modified, and no stream contains another
// organization's changes.
func TestIsolation_EventsAreAnOrganizationsOwn(t *testing.T) {
	pairs(t, func(t *testing.T, attacker, victim *tenant) {
		own := placeIn(t, target.facade.send(t, attacker.token, eventsOnce))
		foreign := placeIn(t, target.facade.send(t, victim.token, eventsOnce))
		finding := builder.Finding(victim.ids["finding"]).In(victim.namespace).Build()
		edit := testenv.MergePatch(`{"metadata":{"labels":{"looked-at":"` + letters(8) + `"}},"spec":{"triage":{"comments":"` + victim.marker + letters(8) + `"}}}`)
		harness.Must(t, target.env.Client.Patch(t.Context(), finding, edit))
		var theirs *answer
		harness.Eventually(t, func(g Gomega) {
			theirs = target.facade.send(t, victim.token, eventsOnce.with("Last-Event-ID", foreign))
			g.Expect(theirs.holds(finding.Name)).To(BeTrue())
		})
		a := fire(t, attacker, victim, eventsOnce.with("Last-Event-ID", own), http.StatusOK)
		attempt(t, isolation, !a.holds(finding.Name) && !strings.Contains(string(a.body), "event: reset"), "its own place: %s\n%s", a, a.body)
		attempt(t, isolation, !theirs.holds(victim.marker), "a stream reveals a comment: %s", theirs.body)
		for _, id := range slices.Concat([]string{foreign}, forgedCursors(foreign), forgedCursors(own)) {
			if strings.ContainsAny(id, "\r\n\x00") || strings.TrimSpace(id) == own {
				continue // a header cannot contain it
			}
			a := fire(t, attacker, victim, eventsOnce.with("Last-Event-ID", id), http.StatusOK)
			reset := strings.Count(string(a.body), "event: ") == 1 && strings.Contains(string(a.body), "event: reset\n")
			attempt(t, isolation, reset, "the id %q is answered with %s", id, a.body)
		}
		for _, query := range []string{"organization=" + victim.name, "namespace=" + victim.namespace, "last-event-id=" + foreign, "kinds=*", "kinds=finding/" + victim.namespace} {
			s := eventsOnce
			s.path += "&" + query
			fire(t, attacker, victim, s, http.StatusBadRequest)
		}
	})
}
