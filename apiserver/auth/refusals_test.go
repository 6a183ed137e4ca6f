package auth

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/tokens"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func eventsOn(t *testing.T, g Gomega, key *v1alpha1.APIKey) []eventsv1.Event {
	t.Helper()
	list := testenv.List(t, g, env, &eventsv1.EventList{}, client.InNamespace(key.Namespace))
	var out []eventsv1.Event
	for _, event := range list.Items {
		if event.Regarding.UID == key.UID {
			out = append(out, event)
		}
	}
	return out
}

// refuseAs authenticates with the header as a request would, and marks the refusal.
func refuseAs(t *testing.T, a *Authenticator, header string) {
	t.Helper()
	_, err := a.Authenticate(header, time.Now())
	if ReasonOf(err) == "" {
		t.Errorf("got %v, want a refusal", err)
	}
	a.MarkRefused(err)
}

func TestRefusalIsAnnouncedOnItsKey(t *testing.T) {
	a, other := start(t), start(t)
	namespace := env.Organization(t, "announced")
	cases := map[Reason]struct {
		spoil func(t *testing.T, key *v1alpha1.APIKey)
		// want is the Event's reason, and note a part of what it advises.
		want, note string
	}{
		ReasonDisabled: {func(t *testing.T, key *v1alpha1.APIKey) {
			setSpec(t, key, func(s *v1alpha1.APIKeySpec) { s.Disabled = true })
		}, "RefusedDisabled", "spec.disabled"},
		ReasonExpired: {func(t *testing.T, key *v1alpha1.APIKey) {
			setSpec(t, key, func(s *v1alpha1.APIKeySpec) { s.ExpiresAt = new(v1alpha1.NewTime(time.Now().Add(-time.Hour))) })
		}, "RefusedExpired", "condition Ready"},
		ReasonRotated: {func(t *testing.T, key *v1alpha1.APIKey) {
			testenv.ChangeStatus(t, env, key, func(k *v1alpha1.APIKey) { k.Status.KeyID = "the-next" })
		}, "RefusedRotated", "read the Secret"},
	}
	for reason, tc := range cases {
		t.Run(string(reason), func(t *testing.T) {
			key := builder.APIKey("key-" + string(reason)).In(namespace).Build()
			header := issue(t, key, "announced")
			tc.spoil(t, key)
			for _, replica := range []*Authenticator{a, other} {
				waitUntilRefused(t, replica, header, reason)
				for range 500 {
					refuseAs(t, replica, header)
				}
			}
			harness.Eventually(t, func(g Gomega) {
				events := eventsOn(t, g, key)
				// One for each window of ten minutes that the test spans.
				g.Expect(events).NotTo(BeEmpty())
				g.Expect(len(events)).To(BeNumerically("<=", 2))
				g.Expect(events[0].Reason).To(Equal(tc.want))
				g.Expect(events[0].Note).To(ContainSubstring(tc.note))
				g.Expect(events[0].Type).To(Equal("Warning"))
				g.Expect(events[0].ReportingController).To(Equal("findings-api"))
				text, err := json.Marshal(events)
				g.Expect(err).NotTo(HaveOccurred())
				signature := header[strings.LastIndex(header, ".")+1:]
				g.Expect(string(text)).NotTo(ContainSubstring(signature), "whoever reads events would come by a token")
			})
			drained(t, a)
			drained(t, other)
			if n := len(eventsOn(t, NewWithT(t), key)); n > 2 {
				t.Errorf("%d events for one reason", n)
			}
		})
	}
}

// drained waits until every refusal was handled.
func drained(t *testing.T, a *Authenticator) {
	t.Helper()
	harness.Eventually(t, func(g Gomega) { g.Expect(a.refusals.received).To(BeEmpty()) })
}

func TestMissingScopeIsAnnouncedByName(t *testing.T) {
	a := start(t)
	key := builder.APIKey("ci").In(env.Organization(t, "scopeless")).Scopes(v1alpha1.ScopeReposRead).Build()
	identity := waitUntilAccepted(t, a, issue(t, key, "scopeless"))
	a.MarkForbidden(identity, v1alpha1.ScopeFindingsTriage)
	harness.Eventually(t, func(g Gomega) {
		events := eventsOn(t, g, key)
		g.Expect(events).To(HaveLen(1))
		g.Expect(events[0].Reason).To(Equal("RefusedScope"))
		g.Expect(events[0].Note).To(ContainSubstring("findings:triage"))
	})
}

// Requests without a valid key, which anyone can send, must cause no write and no Event.
func TestRefusalWithoutAKeyIsNotAnnounced(t *testing.T) {
	a := start(t)
	namespace := env.Organization(t, "unannounced")
	key := builder.APIKey("ci").In(namespace).Build()
	good := issue(t, key, "unannounced")
	waitUntilAccepted(t, a, good)
	for _, header := range []string{
		"", "Bearer", "Bearer x.y.z", good[:len(good)-6] + "AAAAAA",
		header(t, tokens.Claims{KeyUID: "nobody", Organization: "unannounced", ID: "x", IssuedAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour)}),
	} {
		refuseAs(t, a, header)
	}
	// A later refusal is announced, so the earlier ones have been handled.
	setSpec(t, key, func(s *v1alpha1.APIKeySpec) { s.Disabled = true })
	waitUntilRefused(t, a, good, ReasonDisabled)
	refuseAs(t, a, good)
	harness.Eventually(t, func(g Gomega) {
		list := testenv.List(t, g, env, &eventsv1.EventList{}, client.InNamespace(namespace))
		g.Expect(list.Items).To(HaveLen(1))
		g.Expect(list.Items[0].Reason).To(Equal("RefusedDisabled"))
	})
}

func TestRefusalsAreBounded(t *testing.T) {
	now := time.Unix(1e9, 0)
	refusal := func(key int, at time.Time) refused {
		return refused{refusedFor: refusedFor{key: types.UID(fmt.Sprint(key)), reason: ReasonDisabled}, at: at}
	}
	r := newRefusals()
	for i := range 10 * maxReceived { // nobody writes
		r.note(refusal(i, now))
	}
	harness.Same(t, "refusals that wait", maxReceived, len(r.received))

	r = newRefusals()
	for i := range refusalsKept + 1000 {
		r.remember(refusal(i, now))
	}
	harness.Same(t, "refusals that are remembered", refusalsKept, len(r.due.at))

	r = newRefusals()
	harness.Same(t, "a key's first refusal is due", true, r.remember(refusal(1, now)))
	harness.Same(t, "one within the interval is due", false, r.remember(refusal(1, now.Add(refusalInterval-time.Second))))
	harness.Same(t, "one after the interval is due", true, r.remember(refusal(1, now.Add(refusalInterval+usageInterval))))
	harness.Same(t, "refusals that are remembered after the interval", 1, len(r.due.at))
}

func TestEveryReasonIsListedOnce(t *testing.T) {
	seen := map[Reason]bool{}
	for _, reason := range Reasons {
		if seen[reason] {
			t.Errorf("%s occurs twice", reason)
		}
		seen[reason] = true
	}
	for reason := range announced {
		if !seen[reason] {
			t.Errorf("%s is announced and not listed", reason)
		}
	}
}

func TestEventNamesAreNamesAndOnesForAllReplicas(t *testing.T) {
	at := time.Unix(1_000_000_200, 0) // the first second of a window
	what := refused{refusedFor: refusedFor{reason: ReasonDisabled}, at: at}
	later, next := what, what
	later.at, next.at = at.Add(refusalInterval-time.Second), at.Add(refusalInterval)
	for _, name := range []string{"ci", strings.Repeat("a", 253), strings.Repeat("a", 235) + "-." + strings.Repeat("b", 16)} {
		key := &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid"}}
		if problems := validation.IsDNS1123Subdomain(eventName(key, what)); len(problems) > 0 {
			t.Errorf("%q: %v", eventName(key, what), problems)
		}
		if eventName(key, what) != eventName(key, later) {
			t.Error("two replicas within one interval say it twice")
		}
		if eventName(key, what) == eventName(key, next) {
			t.Error("no refusal of the next interval is announced")
		}
	}
}
