package deliveries

import (
	"net/http"
	"strconv"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
	"github.com/appsec-dev/findings-operator/client"
)

// tones are the colours for the deliveries' states.
var tones = map[client.WebhookDeliveryStatus]ui.Tone{
	client.WebhookDeliveryStatusPending:   ui.Going,
	client.WebhookDeliveryStatusDelivered: ui.Good,
	client.WebhookDeliveryStatusFailed:    ui.Bad,
}

// attemptTones are the colours for the outcomes of attempts.
var attemptTones = map[client.WebhookAttemptOutcome]ui.Tone{
	client.WebhookAttemptOutcomeStarted:   ui.Going,
	client.WebhookAttemptOutcomeSucceeded: ui.Good,
	client.WebhookAttemptOutcomeFailed:    ui.Bad,
	client.WebhookAttemptOutcomeUnknown:   ui.Doubt,
}

// last returns the last attempt, or nil.
func last(d client.WebhookDelivery) *client.WebhookDeliveryAttempt {
	if len(d.Attempts) == 0 {
		return nil
	}
	return &d.Attempts[len(d.Attempts)-1]
}

// answer returns the receiver's response in words.
func answer(a client.WebhookDeliveryAttempt) string {
	if a.StatusCode == 0 {
		return "none"
	}
	code := strconv.Itoa(int(a.StatusCode))
	if text := http.StatusText(int(a.StatusCode)); text != "" {
		return code + " " + text
	}
	return code
}

// took returns the duration of an attempt, to the second like the API's times.
func took(a client.WebhookDeliveryAttempt) string {
	switch {
	case a.EndedAt == nil:
		return "not known"
	case a.EndedAt.Sub(a.At) < time.Second:
		return "less than 1 s"
	}
	return strconv.Itoa(int(a.EndedAt.Sub(a.At)/time.Second)) + " s"
}

// endpointStopped explains why a delivery failed with attempts left, and what to do.
const endpointStopped = "its endpoint was disabled for 30 days, or was deleted. If the endpoint exists, enable it, " +
	"then send it again."

// next explains what happens next, and what the user can do about it.
func next(d client.WebhookDelivery, organization string, now time.Time) string {
	a := last(d)
	describe := "kubectl describe webhookendpoint " + d.EndpointId + " --namespace org-" + organization
	switch {
	case d.Status == client.WebhookDeliveryStatusDelivered:
		return "The receiver accepted the event. There is nothing to do."
	case d.Status == client.WebhookDeliveryStatusFailed:
		return nextOfFailed(d)
	case a != nil && a.Outcome == client.WebhookAttemptOutcomeStarted:
		return "An attempt is in progress. It takes at most 15 seconds."
	case d.NextAttemptAt == nil && attemptsOfRound(d) == 0:
		return "It waits for its turn: deliveries to an endpoint are sent a few at a time. If its endpoint is disabled or has " +
			"no secret, the endpoint's conditions say so: " + describe + "."
	case d.NextAttemptAt == nil:
		return "No attempt is planned: the endpoint is disabled, has no secret or does not exist. Its conditions say " +
			"which: " + describe + "."
	case !d.NextAttemptAt.After(now):
		return "It waits for its turn: deliveries to an endpoint are sent a few at a time."
	}
	return "It is retried automatically, with longer pauses each time. If the receiver works again, redeliver it now."
}

// nextOfFailed is next for a delivery that has failed.
func nextOfFailed(d client.WebhookDelivery) string {
	switch attempts := attemptsOfRound(d); {
	case len(d.Attempts) == 0:
		return "No attempt was made, and none will be: " + endpointStopped
	case attempts == 0:
		return "It was not sent again, and will not be: " + endpointStopped
	case attempts < AttemptsPerRound:
		return "No further attempt is made: " + endpointStopped
	}
	return "All attempts have failed. Fix what the last attempt's message names, then send it again, if " +
		"its endpoint still exists."
}

// AttemptsPerRound is how many attempts a delivery gets, and each redelivery of it. The REST API does not contain the
// number.
const AttemptsPerRound = 8

// attemptsOfRound returns how many attempts were made, or since the delivery was to be sent again.
func attemptsOfRound(d client.WebhookDelivery) (n int) {
	for _, a := range d.Attempts {
		if d.RedeliveredAt == nil || !a.At.Before(*d.RedeliveredAt) {
			n++
		}
	}
	return n
}

// aboutDue is how soon an attempt must be due for the page to wait for it.
const aboutDue = 30 * time.Second

// underWay reports whether the delivery is about to change by itself.
func underWay(d client.WebhookDelivery, now time.Time) bool {
	a := last(d)
	switch {
	case d.Status != client.WebhookDeliveryStatusPending:
		return false
	case a != nil && a.Outcome == client.WebhookAttemptOutcomeStarted:
		return true
	case d.NextAttemptAt != nil:
		return d.NextAttemptAt.Sub(now) < aboutDue
	}
	return d.RedeliveredAt != nil && now.Sub(*d.RedeliveredAt) < aboutDue
}

// redeliverCommand returns the command that sends the delivery again.
func redeliverCommand(d client.WebhookDelivery, organization string) string {
	return "kubectl findings redeliver " + d.Id + " --organization " + organization + " --wait"
}

// facts returns the facts about the delivery.
func facts(d client.WebhookDelivery) []ui.Fact {
	return []ui.Fact{
		{Name: "Event", Value: d.EventType, Link: of("event", d.EventType)},
		{Name: "Happened", At: &d.EventTime},
		{Name: "About", Value: d.SubjectKind + " " + d.SubjectId, Link: newSubject(d).Page},
		{Name: "Endpoint", Value: d.EndpointId, Link: of("endpoint_id", d.EndpointId)},
		{Name: "Made", At: &d.CreatedAt},
		{Name: "Next attempt due", At: d.NextAttemptAt},
		{Name: "Ended", At: d.FinishedAt},
		{Name: "Redelivery requested", At: d.RedeliveredAt},
		{Name: "webhook-id header", Value: d.EventId},
		{Name: "Delivery", Value: d.Id},
	}
}
