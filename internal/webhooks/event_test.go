package webhooks

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func endpoint() *v1alpha1.WebhookEndpoint {
	return &v1alpha1.WebhookEndpoint{ObjectMeta: metav1.ObjectMeta{Namespace: "org-acme", Name: "team", UID: "e-uid"}}
}

func TestThePayloadOfAPing(t *testing.T) {
	at := noon.Add(700 * time.Millisecond).In(time.FixedZone("east", 3600))
	d, err := NewDelivery(Ping(endpoint(), at), endpoint())
	harness.Must(t, err)
	const want = `{"type":"webhook.ping","timestamp":"2026-03-01T12:00:00Z","data":{"endpoint":"team"}}`
	harness.Same(t, "payload", want, d.Spec.Payload)
	harness.Same(t, "the endpoint", v1alpha1.WebhookEndpointReference{Name: "team", UID: "e-uid"}, d.Spec.EndpointRef)
	if d.Namespace != "org-acme" || d.Name != d.Spec.Event.ID || d.Spec.Event.Time.UTC() != noon {
		t.Errorf("got %+v", d)
	}
}

func TestAPayloadOverTheBoundIsAnError(t *testing.T) {
	event := Ping(endpoint(), noon)
	event.Data = strings.Repeat("x", v1alpha1.MaxWebhookPayloadLength)
	if _, err := NewDelivery(event, endpoint()); err == nil {
		t.Error("it was taken")
	}
}

// Names are the same for the same event and endpoint, different for all others, and valid.
func TestADeliveryIsNamedByItsEventAndEndpoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		uid := rapid.StringMatching(`[a-f0-9-]{1,36}`)
		draw := func() (types.UID, int64, types.UID) {
			return types.UID(uid.Draw(t, "subject")), rapid.Int64().Draw(t, "sequence"), types.UID(uid.Draw(t, "endpoint"))
		}
		s1, n1, e1 := draw()
		s2, n2, e2 := draw()
		a, b := DeliveryName(s1, n1, e1), DeliveryName(s2, n2, e2)
		if same := s1 == s2 && n1 == n2 && e1 == e2; same != (a == b) {
			t.Fatalf("%s and %s", a, b)
		}
		if problems := validation.IsDNS1123Label(a); len(problems) > 0 || len(a) > 64 {
			t.Fatalf("%s: %v", a, problems)
		}
		if a != DeliveryName(s1, n1, e1) {
			t.Fatal("not the same twice")
		}
	})
	if DeliveryName("a", 12, "b") == DeliveryName("a", 1, "2b") || DeliveryName("a1", 2, "b") == DeliveryName("a", 12, "b") {
		t.Error("two events have one name")
	}
}

func TestThePayloadIsJSONWhateverTheData(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		event := Ping(endpoint(), noon)
		event.Data = map[string]string{"title": rapid.String().Draw(t, "title")}
		d, err := NewDelivery(event, endpoint())
		harness.Must(t, err)
		var decoded map[string]any
		if err := json.Unmarshal([]byte(d.Spec.Payload), &decoded); err != nil || len(decoded) != 3 {
			t.Fatalf("%s: %v", d.Spec.Payload, err)
		}
	})
}
