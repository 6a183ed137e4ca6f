package webhookendpoint

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/events"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/signatures"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// An endpoint with a misspelt type would look as if it got events.
func TestEntriesThatMatchNoEventAreNamed(t *testing.T) {
	for _, c := range []struct {
		events []v1alpha1.WebhookEventPattern
		reason string
		named  string
	}{
		{nil, v1alpha1.ReasonReconciled, ""},
		{[]v1alpha1.WebhookEventPattern{"finding.*", "scan.completed"}, v1alpha1.ReasonReconciled, ""},
		{[]v1alpha1.WebhookEventPattern{"finding.*", "findings.*", "scan.complete"}, v1alpha1.ReasonUnknownEvents, ": findings.*, scan.complete."},
		{[]v1alpha1.WebhookEventPattern{"finding.batch", "scan.completed"}, v1alpha1.ReasonUnknownEvents, ": finding.batch."},
	} {
		endpoint := builder.WebhookEndpoint("team").Events(c.events...).Batched().Build()
		verdict := judge(endpoint, true, found{name: "team-webhook"})
		if !verdict.Ready || verdict.Reason != c.reason || !strings.Contains(verdict.Message, c.named) {
			t.Errorf("%v: %+v", c.events, verdict)
		}
		endpoint.Status.ConsecutiveFailures = 1
		verdict = judge(endpoint, true, found{name: "team-webhook"})
		named := strings.Contains(verdict.Message, "No event matches")
		if verdict.Reason != v1alpha1.ReasonDeliveryFailing || !strings.Contains(verdict.Message, c.named) || named != (c.named != "") {
			t.Errorf("%v, while deliveries fail: %+v", c.events, verdict)
		}
	}
	recorder := events.NewFakeRecorder(10)
	s := newScope()
	for _, pattern := range []v1alpha1.WebhookEventPattern{"finding.create", "finding.create", "finding.close"} {
		s.Begin(noon)
		s.Object.Spec.Events = []v1alpha1.WebhookEventPattern{pattern}
		s.Judge(judge(s.Object, true, found{}))
		(&Reconciler{Base: reconcile.Base{Recorder: recorder}}).announce(s)
	}
	if n := len(recorder.Events); n != 2 || !strings.HasPrefix(<-recorder.Events, "Warning UnknownEvents No event matches") {
		t.Errorf("%d Events, want one per list", n)
	}
}

// Else nobody who looks at the endpoint learns that its deliveries end.
func TestADisabledEndpointSaysThatItsDeliveriesFail(t *testing.T) {
	endpoint := builder.WebhookEndpoint("team").Build()
	endpoint.Status.Disabled = &v1alpha1.WebhookDisabled{Reason: v1alpha1.WebhookDisabledGone, Message: "why", Generation: endpoint.Generation}
	for reason, f := range map[string]found{"by its receiver": {}, "for want of a secret": {problem: errors.New("it is empty")}} {
		verdict := judge(endpoint, true, f)
		if !verdict.Stalled || !strings.Contains(verdict.Message, "fail if they are still pending 30 days after") {
			t.Errorf("disabled %s: %+v", reason, verdict)
		}
	}
}

func TestTheTimeWithoutAUsableSecretCountsFromItsLoss(t *testing.T) {
	s := newScope()
	s.Status.SecretRef = &v1alpha1.SecretReference{Name: "team-webhook"}
	s.Status.ConsecutiveFailures, s.Status.FailingSince = 8, new(v1alpha1.NewTime(noon.AddDate(0, 0, -10)))
	for _, c := range []struct {
		reason   string
		at       time.Duration
		usable   bool
		since    time.Duration
		disabled bool
	}{
		{"attempts of a quiet endpoint failed", 0, true, -10 * 24 * time.Hour, false},
		{"the secret was lost", time.Hour, false, time.Hour, false},
		{"it is still lost", webhooks.MaxFailing, false, time.Hour, false},
		{"it has been lost for five days", webhooks.MaxFailing + time.Hour, false, time.Hour, true},
	} {
		s.Begin(noon.Add(c.at))
		if s.Status.SecretRef = nil; c.usable {
			s.Status.SecretRef = &v1alpha1.SecretReference{Name: "team-webhook"}
		}
		observeSecret(s, c.usable)
		if since := s.Status.FailingSince.Sub(noon); since != c.since || (s.Status.Disabled != nil) != c.disabled {
			t.Errorf("%s: failing since %s, want %s; disabled %+v, want %t", c.reason, since, c.since, s.Status.Disabled,
				c.disabled)
		}
	}
}

func TestRemember(t *testing.T) {
	later, earlier := noon.Add(time.Hour), noon.Add(-time.Hour)
	a, _ := signatures.NewSecret()
	b, _ := signatures.NewSecret()
	in := func(s signatures.Secret, end *v1alpha1.Time) signatures.Expiring {
		return signatures.Expiring{Secret: s, ExpiresAt: end}
	}
	entry := func(id string, end *time.Time) v1alpha1.WebhookSecretStatus {
		out := v1alpha1.WebhookSecretStatus{ID: id}
		if end != nil {
			moment := v1alpha1.NewTime(*end)
			out.ExpiresAt = &moment
		}
		return out
	}
	cases := []struct {
		reason string
		before []v1alpha1.WebhookSecretStatus
		inUse  []signatures.Expiring
		want   []v1alpha1.WebhookSecretStatus
	}{
		{"the first", nil, []signatures.Expiring{in(a, nil)}, []v1alpha1.WebhookSecretStatus{entry(a.ID(), nil)}},
		{"a rotation with an overlap", []v1alpha1.WebhookSecretStatus{entry(a.ID(), nil)},
			[]signatures.Expiring{in(b, nil), in(a, new(v1alpha1.NewTime(later)))},
			[]v1alpha1.WebhookSecretStatus{entry(b.ID(), nil), entry(a.ID(), &later)}},
		{"one that was replaced ends now", []v1alpha1.WebhookSecretStatus{entry(a.ID(), nil)},
			[]signatures.Expiring{in(b, nil)},
			[]v1alpha1.WebhookSecretStatus{entry(b.ID(), nil), entry(a.ID(), &noon)}},
		{"an overlap that is cut short ends now", []v1alpha1.WebhookSecretStatus{entry(b.ID(), nil), entry(a.ID(), &later)},
			[]signatures.Expiring{in(b, nil)},
			[]v1alpha1.WebhookSecretStatus{entry(b.ID(), nil), entry(a.ID(), &noon)}},
		{"what ended before keeps its end", []v1alpha1.WebhookSecretStatus{entry(b.ID(), nil), entry(a.ID(), &earlier)},
			[]signatures.Expiring{in(b, nil)},
			[]v1alpha1.WebhookSecretStatus{entry(b.ID(), nil), entry(a.ID(), &earlier)}},
		{"one that comes back has no end", []v1alpha1.WebhookSecretStatus{entry(b.ID(), nil), entry(a.ID(), &earlier)},
			[]signatures.Expiring{in(a, nil)},
			[]v1alpha1.WebhookSecretStatus{entry(a.ID(), nil), entry(b.ID(), &noon)}},
		{"the oldest are forgotten",
			[]v1alpha1.WebhookSecretStatus{entry("1", nil), entry("2", &earlier), entry("3", &earlier), entry("4", &earlier)},
			[]signatures.Expiring{in(a, nil)},
			[]v1alpha1.WebhookSecretStatus{entry(a.ID(), nil), entry("1", &noon), entry("2", &earlier), entry("3", &earlier)}},
	}
	for _, c := range cases {
		harness.Same(t, c.reason, c.want, remember(c.before, c.inUse, noon))
	}
}

// A leaked secret would sign on while its owner takes it for replaced.
func TestARotationThatWasCarriedOutBeforeIsSaidToDoNothing(t *testing.T) {
	for serial, want := range map[int64]bool{0: false, 2: true, 3: false} {
		s, recorder := newScope(), events.NewFakeRecorder(10)
		s.Object = builder.WebhookEndpoint("team").Build()
		s.Status = &s.Object.Status
		s.Status.RotationSerial = 3
		if serial > 0 {
			s.Object.Spec.Rotation = &v1alpha1.WebhookSecretRotation{Serial: serial}
		}
		s.Begin(noon)
		s.Status.ObservedGeneration = 2
		for _, disabled := range []bool{false, true} {
			s.Object.Spec.Disabled = disabled
			message := judge(s.Object, true, found{name: "team-webhook"}).Message
			harness.Same(t, fmt.Sprintf("serial %d: %s", serial, message), want, strings.Contains(message, "not rotated"))
		}
		r := &Reconciler{Base: reconcile.Base{Recorder: recorder}}
		r.announce(s)
		announced := ""
		if len(recorder.Events) > 0 {
			announced = <-recorder.Events
		}
		harness.Same(t, fmt.Sprintf("serial %d: %s", serial, announced), want, strings.HasSuffix(announced, "set it to 4"))
		s.Begin(noon)
		r.announce(s)
		harness.Same(t, "announced again", 0, len(recorder.Events))
	}
}
