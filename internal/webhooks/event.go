// Package webhooks holds the rules of webhooks that need no I/O: the payload of an event,
// when an attempt is due, and the result of a verification.
package webhooks

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// EventPing is the event that a new endpoint gets, once.
const EventPing = "webhook.ping"

// nameLength is the length of the hash in a delivery's name, in base32 characters: 130 bits.
const nameLength = 26

// Event is something that happened to a resource.
type Event struct {
	// Type, for example "finding.created".
	Type string
	// Time of the event; the payload has it to the second.
	Time time.Time
	// Subject is the resource that the event is about.
	Subject v1alpha1.WebhookEventSubject
	// SubjectUID and Sequence identify the event: the Sequence-th of the subject.
	SubjectUID types.UID
	Sequence   int64
	// Data is encoded as the payload's data. It holds identifiers and what has changed, never
	// source code.
	Data any
}

// envelope is a payload in the form that Standard Webhooks recommends.
type envelope struct {
	Type      string        `json:"type"`
	Timestamp v1alpha1.Time `json:"timestamp"`
	Data      any           `json:"data"`
}

// NewDelivery returns the delivery of the event to the endpoint. Its name, which is also its webhook-id, depends only
// on the event and the endpoint, so that creating it twice makes one.
func NewDelivery(event Event, endpoint *v1alpha1.WebhookEndpoint) (*v1alpha1.WebhookDelivery, error) {
	return namedDelivery(DeliveryName(event.SubjectUID, event.Sequence, endpoint.UID), event, endpoint)
}

func namedDelivery(name string, event Event, endpoint *v1alpha1.WebhookEndpoint) (*v1alpha1.WebhookDelivery, error) {
	at := v1alpha1.NewTime(event.Time)
	payload, err := json.Marshal(envelope{Type: event.Type, Timestamp: at, Data: event.Data})
	if err != nil {
		return nil, fmt.Errorf("encode the payload of a %s event: %w", event.Type, err)
	}
	if len(payload) > v1alpha1.MaxWebhookPayloadLength {
		return nil, fmt.Errorf("the payload of a %s event is %d bytes long; at most %d are allowed", event.Type, len(payload),
			v1alpha1.MaxWebhookPayloadLength)
	}
	return &v1alpha1.WebhookDelivery{
		ObjectMeta: metav1.ObjectMeta{Namespace: endpoint.Namespace, Name: name},
		Spec: v1alpha1.WebhookDeliverySpec{
			EndpointRef: v1alpha1.WebhookEndpointReference{Name: v1alpha1.ResourceName(endpoint.Name),
				UID: string(endpoint.UID)},
			Event: v1alpha1.WebhookEvent{
				ID: name, Type: event.Type, Time: at, Subject: event.Subject,
			},
			Payload: string(payload),
		},
	}, nil
}

// DeliveryName returns the name of the delivery of a subject's event with that sequence number.
func DeliveryName(subject types.UID, sequence int64, endpoint types.UID) string {
	return hashName(string(subject), strconv.FormatInt(sequence, 10), string(endpoint))
}

// hashName derives a name from the parts. No part holds a line break, so two different lists never give
// the same text.
func hashName(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return "d-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))[:nameLength]
}

// Ping returns the event that a new endpoint gets.
func Ping(endpoint *v1alpha1.WebhookEndpoint, now time.Time) Event {
	return Event{
		Type:       EventPing,
		Time:       now,
		Subject:    v1alpha1.WebhookEventSubject{Kind: "WebhookEndpoint", Name: v1alpha1.ResourceName(endpoint.Name)},
		SubjectUID: endpoint.UID,
		Data:       map[string]string{"endpoint": endpoint.Name},
	}
}
