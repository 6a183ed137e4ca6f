package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Bounds of a WebhookDelivery.
const (
	// MaxWebhookAttempts is the maximum number of attempts in a delivery; the oldest are dropped.
	MaxWebhookAttempts = 32
	// MaxWebhookRedeliveryLength is how long a value of RedeliverAnnotation is kept as it is, in
	// bytes; of a longer one a hash is kept.
	MaxWebhookRedeliveryLength = 128
	// MaxWebhookPayloadLength is how long a payload may be, in characters.
	MaxWebhookPayloadLength = 65536
)

// RedeliverAnnotation on a WebhookDelivery requests a redelivery each time its value changes, in any phase: the
// event is sent again, at once, with the same webhook-id.
const RedeliverAnnotation = GroupName + "/redeliver"

// Reasons of a WebhookDelivery's conditions.
const (
	// ReasonDelivered goes with Ready=True: the receiver answered 2xx.
	ReasonDelivered = "Delivered"
	// ReasonDeliveryFailed goes with Ready=False and Stalled=True: no attempt is left; redeliver by hand.
	ReasonDeliveryFailed = "DeliveryFailed"
	// ReasonEndpointNotFound goes with Ready=False: the WebhookEndpoint in spec.endpointRef does not exist, or is being
	// deleted.
	ReasonEndpointNotFound = "EndpointNotFound"
)

// WebhookEndpointReference names a WebhookEndpoint in the same namespace.
type WebhookEndpointReference struct {
	// name of the WebhookEndpoint.
	// +required
	Name ResourceName `json:"name"`
	// uid of the WebhookEndpoint, so that a later endpoint with the same name does not get the
	// event. Absent: any endpoint with that name.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	UID string `json:"uid,omitempty"`
}

// WebhookEvent describes a change and its subject.
type WebhookEvent struct {
	// id of the event, sent as the header webhook-id. In deliveries that the controllers create it
	// is the name of the delivery, so that a receiver can have it verified. 1 to 64 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	ID string `json:"id"`
	// type of event, for example "finding.created". 1 to 64 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	Type string `json:"type"`
	// time of the event, in RFC 3339.
	// +required
	Time Time `json:"time"`
	// subject is the resource that the event is about.
	// +required
	Subject WebhookEventSubject `json:"subject"`
}

// WebhookEventSubject is the resource that an event is about.
type WebhookEventSubject struct {
	// kind of the resource, for example "Finding".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`
	// name of the resource, for example "f-sqli".
	// +required
	Name ResourceName `json:"name"`
}

// WebhookDeliverySpec is one event for one endpoint.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable"
type WebhookDeliverySpec struct {
	// endpointRef names the WebhookEndpoint that receives the event.
	// +required
	EndpointRef WebhookEndpointReference `json:"endpointRef"`
	// event is the event that is delivered.
	// +required
	Event WebhookEvent `json:"event"`
	// payload holds the exact bytes of the request body, which are JSON. 1 to 65536 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +required
	Payload string `json:"payload"`
}

// WebhookDeliveryPhase is the progress of a delivery.
//
// +kubebuilder:validation:Enum=Pending;Delivered;Failed
type WebhookDeliveryPhase string

// The delivery phases.
const (
	WebhookDeliveryPending   WebhookDeliveryPhase = "Pending"
	WebhookDeliveryDelivered WebhookDeliveryPhase = "Delivered"
	WebhookDeliveryFailed    WebhookDeliveryPhase = "Failed"
)

// WebhookAttemptOutcome is the result of an attempt.
//
// +kubebuilder:validation:Enum=Started;Succeeded;Failed;Unknown
type WebhookAttemptOutcome string

// The attempt outcomes.
const (
	// WebhookAttemptStarted is recorded before the request is sent.
	WebhookAttemptStarted WebhookAttemptOutcome = "Started"
	// WebhookAttemptSucceeded is an answer of 200 to 299.
	WebhookAttemptSucceeded WebhookAttemptOutcome = "Succeeded"
	// WebhookAttemptFailed is any other answer, or none.
	WebhookAttemptFailed WebhookAttemptOutcome = "Failed"
	// WebhookAttemptUnknown is one whose answer could not be recorded: the receiver may or may not have the event.
	WebhookAttemptUnknown WebhookAttemptOutcome = "Unknown"
)

// WebhookAttempt is one request to the receiver.
type WebhookAttempt struct {
	// at is when the attempt began, sent as the header webhook-timestamp.
	// +required
	At Time `json:"at"`
	// endedAt is when the attempt ended. Absent while it runs, and if its end was not observed.
	// +optional
	EndedAt *Time `json:"endedAt,omitempty"`
	// outcome of the attempt: Started, Succeeded, Failed, or Unknown if the answer could not be
	// recorded.
	// +required
	Outcome WebhookAttemptOutcome `json:"outcome"`
	// code is the HTTP status of the answer, for example 503. 0 if there was no answer.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=999
	// +optional
	Code int32 `json:"code,omitempty"`
	// message describes the failure for people. At most 256 characters.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Message string `json:"message,omitempty"`
	// retryAt is the earliest time of the next attempt, if the receiver sent retry-after.
	// +optional
	RetryAt *Time `json:"retryAt,omitempty"`
	// signatures are those that the attempt sent: one, or two during a rotation.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2
	// +optional
	Signatures []WebhookSignature `json:"signatures,omitempty"`
}

// WebhookSignature identifies a signature that was sent.
type WebhookSignature struct {
	// digest is the SHA-256 of the signature as sent, in hexadecimal.
	// +kubebuilder:validation:MaxLength=64
	// +required
	Digest string `json:"digest"`
	// secretID is the identifier of the secret of the signature, as in the endpoint's status.
	// +kubebuilder:validation:MaxLength=64
	// +required
	SecretID string `json:"secretID"`
	// expiresAt is when that secret expires. Absent while no end is known.
	// +optional
	ExpiresAt *Time `json:"expiresAt,omitempty"`
}

// WebhookRedelivery is the last requested redelivery.
type WebhookRedelivery struct {
	// value of the annotation appsec.dev/redeliver that requested it. For a value of more than 128
	// bytes: "sha256:" and its hash.
	// +kubebuilder:validation:MaxLength=128
	// +required
	Value string `json:"value"`
	// at is when the controllers accepted the request.
	// +required
	At Time `json:"at"`
	// attempts is the number of attempts made for it: the last ones of status.attempts.
	// +kubebuilder:validation:Minimum=0
	// +required
	Attempts int32 `json:"attempts"`
}

// WebhookDeliveryStatus is what the controllers observe of a delivery.
type WebhookDeliveryStatus struct {
	// observedGeneration is the metadata.generation that the status describes. If it is smaller
	// than the current one, the status is not up to date yet; -1 until the controllers have stored one.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase is Pending, Delivered or Failed.
	// +optional
	Phase WebhookDeliveryPhase `json:"phase,omitempty"`
	// attempts in order, at most 32. The oldest are dropped.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Attempts []WebhookAttempt `json:"attempts,omitempty"`
	// nextAttemptAt is when the next attempt is due; in the past while it waits for its turn. Absent during an
	// attempt, before the first one after the creation or a redelivery, and if none is planned.
	// +optional
	NextAttemptAt *Time `json:"nextAttemptAt,omitempty"`
	// finishedAt is when the phase became Delivered or Failed; absent while it is Pending.
	// +optional
	FinishedAt *Time `json:"finishedAt,omitempty"`
	// redelivery is the last one that the annotation appsec.dev/redeliver requested.
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
// +kubebuilder:printcolumn:name="Code",type=string,priority=1,JSONPath=`.status.attempts[-1:].code`
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
	// +structType=atomic
	// +required
	Spec WebhookDeliverySpec `json:"spec"`
	// status is what the controllers observed. Only they write it. Until they have stored one, which they need not do
	// before the first attempt, it is this default.
	// +structType=atomic
	// +default={"phase": "Pending", "observedGeneration": -1}
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
