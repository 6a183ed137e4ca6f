package api_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/apiserver"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// The facade's operators and the key's owner can see why a key is refused; the sender cannot.
func TestARefusedKeyShowsInMetricsAndEventsAndNotInTheAnswer(t *testing.T) {
	o := newOrganization(t).on(ownServer(t, apiserver.Options{}))
	c := o.key("ci")
	harness.Same(t, "the refusals that are counted before there was any", 0., o.server.refusals(t, "disabled"))
	key := builder.APIKey("ci").In(o.namespace).Build()
	env.Patch(t, key, `{"spec":{"disabled":true}}`)
	harness.Eventually(t, func(g Gomega) { g.Expect(c.get("/v1/findings").status).To(Equal(401)) })

	const requests = 3
	counted := o.server.refusals(t, "disabled")
	nobody := newCaller(t, o.server, "").get("/v1/findings").wantsError(401, "Unauthorized", "no key")
	for range requests {
		a := c.get("/v1/findings").wantsError(401, "Unauthorized", "a disabled key")
		if !bytes.Equal(a.body, nobody.body) {
			t.Errorf("the body differs from that of any other refusal: %s", a.body)
		}
		harness.Same(t, "WWW-Authenticate", "Bearer", a.header.Get("WWW-Authenticate"))
	}
	harness.Same(t, "the refusals that are counted", counted+requests, o.server.refusals(t, "disabled"))

	harness.Eventually(t, func(g Gomega) {
		events := testenv.List(t, g, env, &eventsv1.EventList{}, client.InNamespace(o.namespace))
		g.Expect(events.Items).To(ContainElement(WithTransform(func(e eventsv1.Event) string {
			return fmt.Sprintf("%s %s %s %s", e.Regarding.Kind, e.Regarding.Name, e.Regarding.UID, e.Reason)
		}, Equal(fmt.Sprintf("APIKey ci %s RefusedDisabled", key.UID)))))
		for _, event := range events.Items {
			signature := c.token[strings.LastIndex(c.token, ".")+1:]
			g.Expect(event.String()).NotTo(ContainSubstring(signature), "an event that contains the token")
		}
	})
}

// refusals returns how many requests were refused for that reason, according to the server's
// metrics.
func (s *server) refusals(t *testing.T, reason string) float64 {
	t.Helper()
	name := fmt.Sprintf("findings_api_key_refusals_total{reason=%q}", reason)
	n, there := s.metrics(t)[name]
	if !there {
		t.Fatalf("/metrics lacks %s", name)
	}
	return n
}
