package deliveries

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/client"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestADeliverySaysWhatHappensNext(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	later := at.Add(time.Minute)
	attempt := func(outcome client.WebhookAttemptOutcome) []client.WebhookDeliveryAttempt {
		return []client.WebhookDeliveryAttempt{{At: at, Outcome: outcome}}
	}
	failed, started := attempt(client.WebhookAttemptOutcomeFailed), attempt(client.WebhookAttemptOutcomeStarted)
	for _, tc := range []struct {
		reason   string
		status   client.WebhookDeliveryStatus
		attempts []client.WebhookDeliveryAttempt
		next     *time.Time
		want     string
	}{
		{"it arrived", client.WebhookDeliveryStatusDelivered, failed, nil, "The receiver accepted the event"},
		{"all attempts failed", client.WebhookDeliveryStatusFailed, slices.Repeat(failed, AttemptsPerRound), nil, "if its endpoint still exists"},
		{"its endpoint was deleted after the first", client.WebhookDeliveryStatusFailed, failed, nil, "No further attempt is made"},
		{"its endpoint is gone", client.WebhookDeliveryStatusFailed, nil, nil, "or was deleted"},
		{"its endpoint was disabled too long", client.WebhookDeliveryStatusFailed, nil, nil, "was disabled for 30 days"},
		{"its endpoint was disabled too long after the first", client.WebhookDeliveryStatusFailed, failed, nil, "If the endpoint exists, enable it"},
		{"a request is on its way", client.WebhookDeliveryStatusPending, started, nil, "in progress"},
		{"its endpoint is disabled", client.WebhookDeliveryStatusPending, failed, nil, "does not exist. Its conditions say which: kubectl describe webhookendpoint team --namespace org-acme."},
		{"many are before it", client.WebhookDeliveryStatusPending, nil, nil, "conditions say so: kubectl describe webhookendpoint team --namespace org-acme."},
		{"it waits", client.WebhookDeliveryStatusPending, failed, &later, "retried automatically"},
		{"it is due, behind others", client.WebhookDeliveryStatusPending, failed, &at, "waits for its turn"},
	} {
		d := client.WebhookDelivery{EndpointId: "team", Status: tc.status, Attempts: tc.attempts, NextAttemptAt: tc.next}
		harness.Contains(t, tc.reason, next(d, "acme", at), tc.want)
	}
}

// Its last attempt was before, and says nothing of it.
func TestARedeliveryWithoutAnAttemptBlamesNoReceiver(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for redelivered, want := range map[time.Time]string{
		at.Add(-time.Hour): "All attempts have failed", at: "All attempts have failed", at.Add(time.Hour): "was disabled for 30 days, or was deleted. If the endpoint exists, enable it",
	} {
		d := client.WebhookDelivery{Status: client.WebhookDeliveryStatusFailed, RedeliveredAt: &redelivered,
			Attempts: slices.Repeat([]client.WebhookDeliveryAttempt{{At: at, Outcome: client.WebhookAttemptOutcomeFailed}}, AttemptsPerRound)}
		harness.Contains(t, fmt.Sprintf("redelivered at %s", redelivered), next(d, "acme", at), want)
		d.Status = client.WebhookDeliveryStatusPending
		if got := next(d, "acme", at); strings.Contains(got, "waits for its turn") != redelivered.After(at) {
			t.Errorf("redelivered at %s, and behind others: %q", redelivered, got)
		}
	}
}

func TestSubjectsOfOneNameAreToldApart(t *testing.T) {
	scan := client.WebhookDelivery{SubjectKind: "Scan", SubjectId: "main"}
	policy := client.WebhookDelivery{SubjectKind: "TriagePolicy", SubjectId: "main"}
	found, err := readSubjects(t.Context(), &page.Visit{}, []client.WebhookDelivery{scan, policy, scan})
	harness.Must(t, err)
	if got := found.of(scan); got.Kind != "scan" || got.Page != "/console/scans/main" {
		t.Errorf("the scan is %+v", got)
	}
	if got := found.of(policy); got.Kind != "policy" || got.Page != "/console/policies/main" {
		t.Errorf("the policy is %+v", got)
	}
}

func TestDeliveriesAreShownWithoutTheTitlesOfTheirSubjects(t *testing.T) {
	d := client.WebhookDelivery{SubjectKind: "Finding", SubjectId: "f-1"}
	other := client.WebhookDelivery{SubjectKind: "Finding", SubjectId: "f-2"}
	for refusal, wanted := range map[struct {
		status int
		code   string
	}]int{
		{http.StatusNotFound, "not_found"}: 2, {http.StatusInternalServerError, "stale"}: 1,
		{http.StatusInternalServerError, "internal"}: 0, {http.StatusTooManyRequests, "rate_limited"}: 0,
	} {
		asked := 0
		service := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked++
			w.WriteHeader(refusal.status)
			_, _ = fmt.Fprintf(w, `{"code":%q,"detail":"why"}`, refusal.code)
		})
		v := &page.Visit{API: api.New(service, "", ""), Who: client.WhoAmI{Scopes: []string{"findings:read"}}}
		found, err := readSubjects(t.Context(), v, []client.WebhookDelivery{d, other})
		readable := wanted > 0
		if (err == nil) != readable || readable && (found.of(d).Title != "f-1" || found.of(other).Title != "f-2") {
			t.Errorf("after %v: %+v, %v", refusal, found, err)
		}
		if readable {
			harness.Same(t, fmt.Sprint("requests, each answered with ", refusal), wanted, asked)
		}
	}
}

func TestAnAnswerIsShownInWords(t *testing.T) {
	for code, want := range map[int32]string{0: "none", 204: "204 No Content", 599: "599"} {
		harness.Same(t, fmt.Sprint("the answer ", code), want, answer(client.WebhookDeliveryAttempt{StatusCode: code}))
	}
}

func TestAnAttemptTakesAsLongAsIsKnown(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	later := at.Add(3 * time.Second)
	for _, tc := range []struct {
		ended *time.Time
		want  string
	}{{nil, "not known"}, {&at, "less than 1 s"}, {&later, "3 s"}} {
		harness.Same(t, "it takes", tc.want, took(client.WebhookDeliveryAttempt{At: at, EndedAt: tc.ended}))
	}
}

func TestEveryEventCanBeChosen(t *testing.T) {
	spec, err := openapi3.NewLoader().LoadFromFile("../../openapi/openapi.yaml")
	harness.Must(t, err)
	offered := map[any]bool{}
	for _, event := range events {
		offered[string(event)] = true
	}
	known := spec.Paths.Value(apiPath).Get.Parameters.GetByInAndName("query", "event").Schema.Value.Enum
	for _, event := range known {
		if !offered[event] {
			t.Errorf("the form does not offer %v", event)
		}
	}
	harness.Same(t, "events that the form offers", len(known), len(offered))
}
