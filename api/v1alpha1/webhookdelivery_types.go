package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Bounds of a WebhookDelivery.
const (
	// MaxWebhookAttempts is how many attempts a delivery keeps: the oldest make room.
	MaxWebhookAttempts = 32
	// MaxWebhookRedeliveryLength is how long a value of RedeliverAnnotation is kept as it is, in
	// bytes; of a longer one a hash is kept.
	MaxWebhookRedeliveryLength = 128
	// MaxWebhookPayloadLength is how long a payload may be, in characters.
	MaxWebhookPayloadLength = 65536
)

// RedeliverAnnotation on a WebhookDelivery asks for a redelivery each time it gets another value,
// whatever the delivery's phase: the event is sent again, at once, with the same webhook-id.
const RedeliverAnnotation = GroupName + "/redeliver"

// Reasons of a WebhookDelivery's conditions.
const (
	// ReasonDelivered goes with Ready=True: the receiver answered 2xx.
	ReasonDelivered = "Delivered"
	// ReasonDeliveryFailed goes with Ready=False and Stalled=True: no attempt is left; redeliver by hand.
	ReasonDeliveryFailed = "DeliveryFailed"
	// ReasonEndpointNotFound goes with Ready=False: the WebhookEndpoint named is not there.
	ReasonEndpointNotFound = "EndpointNotFound"
)

// WebhookEndpointReference names a WebhookEndpoint in the same namespace.
type WebhookEndpointReference struct {
	// name of the WebhookEndpoint.
	// +required
	Name ResourceName `json:"name"`
	// uid of the WebhookEndpoint: another one of that name, made later, gets nothing older
	// than itself. Absent: whichever has the name.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	UID string `json:"uid,omitempty"`
}

// WebhookEvent says what happened to what.
type WebhookEvent struct {
	// id of the event; the webhook-id header of each attempt. Of a delivery that the
	// controllers made it is the delivery's name, so that a receiver can ask for its verification.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	ID string `json:"id"`
	// type of event, for example "finding.created".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	Type string `json:"type"`
	// time of the event.
	// +required
	Time Time `json:"time"`
	// subject of the event.
	// +required
	Subject WebhookEventSubject `json:"subject"`
}

// WebhookEventSubject is the resource that an event is about.
type WebhookEventSubject struct {
	// kind of the resource.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`
	// name of the resource.
	// +required
	Name ResourceName `json:"name"`
}

// WebhookDeliverySpec is one event for one endpoint.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable"
type WebhookDeliverySpec struct {
	// endpointRef names the endpoint that receives the event.
	// +required
	EndpointRef WebhookEndpointReference `json:"endpointRef"`
	// event that is delivered.
	// +required
	Event WebhookEvent `json:"event"`
	// payload holds the exact bytes of each attempt's body.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +required
	Payload string `json:"payload"`
}

// WebhookDeliveryPhase says how far a delivery is.
//
// +kubebuilder:validation:Enum=Pending;Delivered;Failed
type WebhookDeliveryPhase string

// The delivery phases.
const (
	WebhookDeliveryPending   WebhookDeliveryPhase = "Pending"
	WebhookDeliveryDelivered WebhookDeliveryPhase = "Delivered"
	WebhookDeliveryFailed    WebhookDeliveryPhase = "Failed"
)

// WebhookAttemptOutcome says how an attempt ended.
//
// +kubebuilder:validation:Enum=Started;Succeeded;Failed;Unknown
type WebhookAttemptOutcome string

// The attempt outcomes.
const (
	// WebhookAttemptStarted is recorded before the request leaves.
	WebhookAttemptStarted WebhookAttemptOutcome = "Started"
	// WebhookAttemptSucceeded is an answer of 200 to 299.
	WebhookAttemptSucceeded WebhookAttemptOutcome = "Succeeded"
	// WebhookAttemptFailed is any other answer, or none.
	WebhookAttemptFailed WebhookAttemptOutcome = "Failed"
	// WebhookAttemptUnknown is one whose controller stopped before it had recorded the answer:
	// the receiver may have the event or not.
	WebhookAttemptUnknown WebhookAttemptOutcome = "Unknown"
)

// WebhookAttempt is one request to the receiver.
type WebhookAttempt struct {
	// at is the attempt's webhook-timestamp.
	// +required
	At Time `json:"at"`
	// endedAt is when the attempt ended; absent while it goes on, and where nobody saw its end.
	// +optional
	EndedAt *Time `json:"endedAt,omitempty"`
	// outcome of the attempt.
	// +required
	Outcome WebhookAttemptOutcome `json:"outcome"`
	// code is the HTTP status of the answer; 0 where there was none.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=999
	// +optional
	Code int32 `json:"code,omitempty"`
	// message says for people what went wrong.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Message string `json:"message,omitempty"`
	// retryAt is the earliest time of another attempt, where the receiver asked for one by retry-after.
	// +optional
	RetryAt *Time `json:"retryAt,omitempty"`
	// signatures that the attempt carried.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2
	// +optional
	Signatures []WebhookSignature `json:"signatures,omitempty"`
}

// WebhookSignature stands for a signature that was sent.
type WebhookSignature struct {
	// digest is the SHA-256 of the signature as sent, in hexadecimal.
	// +kubebuilder:validation:MaxLength=64
	// +required
	Digest string `json:"digest"`
	// secretID names the secret that made the signature.
	// +kubebuilder:validation:MaxLength=64
	// +required
	SecretID string `json:"secretID"`
	// expiresAt is when that secret stops being valid; absent while no end is known.
	// +optional
	ExpiresAt *Time `json:"expiresAt,omitempty"`
}

// WebhookRedelivery is the last redelivery that was asked for.
type WebhookRedelivery struct {
	// value of the annotation appsec.dev/redeliver that asked for it; "sha256:" and the hash of
	// one longer than 128 bytes.
	// +kubebuilder:validation:MaxLength=128
	// +required
	Value string `json:"value"`
	// at is when the controllers took it up.
	// +required
	At Time `json:"at"`
	// attempts made for it: the last ones of status.attempts.
	// +kubebuilder:validation:Minimum=0
	// +required
	Attempts int32 `json:"attempts"`
}

// WebhookDeliveryStatus is what the controllers observe of a delivery.
type WebhookDeliveryStatus struct {
	// observedGeneration is the metadata.generation that this status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase says how far the delivery is.
	// +optional
	Phase WebhookDeliveryPhase `json:"phase,omitempty"`
	// attempts in order, at most 32: the oldest make room.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Attempts []WebhookAttempt `json:"attempts,omitempty"`
	// nextAttemptAt is when the next attempt is due; absent where none is.
	// +optional
	NextAttemptAt *Time `json:"nextAttemptAt,omitempty"`
	// finishedAt is when the phase became Delivered or Failed; absent while it is Pending.
	// +optional
	FinishedAt *Time `json:"finishedAt,omitempty"`
	// redelivery is the last one that was asked for by the annotation appsec.dev/redeliver.
	// +optional
	Redelivery *WebhookRedelivery `json:"redelivery,omitempty"`
	// conditions of the delivery: Ready, Stalled.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=4
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
}

// WebhookDelivery is one event on its way to one endpoint, and the record of each attempt.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=whd,path=webhookdeliveries,singular=webhookdelivery,categories=appsec
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.spec.endpointRef.name`
// +kubebuilder:printcolumn:name="Event",type=string,JSONPath=`.spec.event.type`
// +kubebuilder:printcolumn:name="Subject",type=string,JSONPath=`.spec.event.subject.name`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.nextAttemptAt`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Codes",type=string,priority=1,JSONPath=`.status.attempts[*].code`
// +kubebuilder:printcolumn:name="Finished",type=date,priority=1,JSONPath=`.status.finishedAt`
// +kubebuilder:printcolumn:name="Ready",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:selectablefield:JSONPath=`.spec.endpointRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.event.type`
// +kubebuilder:selectablefield:JSONPath=`.spec.event.subject.name`
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
type WebhookDelivery struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`
	// spec is the event and its receiver.
	// +required
	Spec WebhookDeliverySpec `json:"spec"`
	// status is what the controllers observe.
	// +optional
	Status WebhookDeliveryStatus `json:"status,omitzero"`
}

// WebhookDeliveryList is a list of WebhookDeliveries.
//
// +kubebuilder:object:root=true
type WebhookDeliveryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WebhookDelivery `json:"items"`
}
