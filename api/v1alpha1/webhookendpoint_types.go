package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ConditionBacklogged is True while too many deliveries to an endpoint are pending. Its reason states which changes
// still become deliveries; the others are recorded, and become deliveries once fewer than half as many are pending.
// Negative polarity: absent otherwise.
const ConditionBacklogged = "Backlogged"

// Reasons of a WebhookEndpoint's conditions.
const (
	// ReasonTooManyPending goes with Backlogged=True: only single decisions still become deliveries.
	ReasonTooManyPending = "TooManyPending"
	// ReasonDecisionsHeldBack goes with Backlogged=True: twice as many are pending, and nothing becomes a delivery.
	ReasonDecisionsHeldBack = "DecisionsHeldBack"
	// ReasonTooManyEndpoints goes with Ready=False and Stalled=True: the namespace has more than the 50 endpoints that
	// can get events, and this is not one of the oldest 50.
	ReasonTooManyEndpoints = "TooManyEndpoints"
	// ReasonSecretNotFound goes with Ready=False: the Secret in spec.secretRef does not exist.
	ReasonSecretNotFound = "SecretNotFound"
	// ReasonSecretInvalid goes with Ready=False: the Secret holds no usable signing secret.
	ReasonSecretInvalid = "SecretInvalid"
	// ReasonEndpointDisabled goes with Ready=False: spec.disabled is set.
	ReasonEndpointDisabled = "EndpointDisabled"
	// ReasonGone goes with Ready=False and Stalled=True: the receiver answered 410 Gone, and nothing more is sent
	// until the spec changes.
	ReasonGone = string(WebhookDisabledGone)
	// ReasonFailingTooLong goes with Ready=False and Stalled=True: five days without a success, and
	// nothing more is sent until the spec changes.
	ReasonFailingTooLong = string(WebhookDisabledFailingTooLong)
	// ReasonNoUsableSecret goes with Ready=False and Stalled=True: five days without a usable signing secret, and
	// nothing more is sent until there is one.
	ReasonNoUsableSecret = string(WebhookDisabledNoUsableSecret)
	// ReasonUnknownEvents goes with Ready=True: entries of spec.events match no event.
	ReasonUnknownEvents = "UnknownEvents"
	// ReasonDeliveryFailing goes with Ready=False: the last attempts failed; retries continue.
	ReasonDeliveryFailing = "DeliveryFailing"
)

// Keys of the data of a WebhookEndpoint's Secret.
// spec.rotation has the controllers rotate a Secret that they created. To rotate one that spec.secretRef names,
// move the signing secret to WebhookPreviousSecretKey, set its expiry, and put the new one in its place, all in
// one write.
const (
	// WebhookSecretKey holds the newest signing secret: "whsec_" and 24 to 64 bytes in base64.
	WebhookSecretKey = "secret"
	// WebhookPreviousSecretKey holds the previous one, in the same form. It also signs until it expires. Optional.
	WebhookPreviousSecretKey = "previous-secret"
	// WebhookPreviousSecretExpiresAtKey holds its expiry, in RFC 3339. Required with WebhookPreviousSecretKey.
	WebhookPreviousSecretExpiresAtKey = "previous-secret-expires-at"
)

// MaxWebhookSecrets is the maximum number of signing secrets in an endpoint's status, including expired ones.
const MaxWebhookSecrets = 4

// WebhookBatch sets how the changes of findings by one scan, TriageOperation or TriagePolicy become events.
//
// +kubebuilder:validation:Enum=None;PerScan
type WebhookBatch string

// The batch modes.
const (
	WebhookBatchNone    WebhookBatch = "None"
	WebhookBatchPerScan WebhookBatch = "PerScan"
)

// WebhookEventPattern is an event's type, or a group of them: "*", "finding.*".
//
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:Pattern=`^(\*|[a-z_]+\.(\*|[a-z_]+))$`
type WebhookEventPattern string

// WebhookEndpointSpec sets where events are sent, and which.
//
// +kubebuilder:validation:XValidation:rule="!has(self.rotation) || !has(self.secretRef)",message="rotation is for the Secret that is made for the endpoint; rotate one that secretRef names where it comes from"
type WebhookEndpointSpec struct {
	// url that receives the events by POST, for example "https://hooks.example.com/findings". http
	// or https, with a host and without credentials. 1 to 2048 characters. Everybody who may read
	// the endpoint can read it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^https?://[^/?#]*@')",message="url must hold no credentials: leave out the user and the password"
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getHostname() != ''",message="must be a URL with a host"
	// +required
	URL string `json:"url"`
	// events that are sent: types or groups of types, for example ["finding.*", "scan.completed"].
	// 1 to 16. Default: all. An empty list is refused: set disabled to send none.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Events []WebhookEventPattern `json:"events,omitempty"`
	// secretRef names the Secret that holds the signing secret, under the key "secret". Default: a
	// Secret named after the endpoint with the suffix "-webhook", which a controller creates.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
	// rotation requests a new signing secret in the Secret that was created for the endpoint. Not
	// together with secretRef.
	// +optional
	Rotation *WebhookSecretRotation `json:"rotation,omitempty"`
	// disabled stops sending while it is true. Pending deliveries are sent when it is enabled again; events that occur
	// while it is disabled are not.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
	// batch is how the changes of findings by one scan, TriageOperation or TriagePolicy become events: None, one event
	// per change, or PerScan, in pages after its end, or while a policy decides. Default: None.
	// +optional
	Batch WebhookBatch `json:"batch,omitempty"`
}

// WebhookSecretRotation requests a new signing secret and sets how long the previous one also signs.
type WebhookSecretRotation struct {
	// serial requests a new signing secret each time it is raised. From 1.
	// +kubebuilder:validation:Minimum=1
	// +required
	Serial int64 `json:"serial"`
	// overlap is how long the previous secret signs too: a duration of at most "720h", for example
	// "24h". Default: it ends at once.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('720h') && !self.matches('[ a-gi-lo-rtv-zA-Z]')",message="overlap must be hours, minutes and seconds between 0s and 720h, for example 24h"
	// +optional
	Overlap *metav1.Duration `json:"overlap,omitempty"`
}

// WantedSerial returns the serial that the rotation asks for; 0 for none.
func (r *WebhookSecretRotation) WantedSerial() int64 {
	if r == nil {
		return 0
	}
	return r.Serial
}

// WebhookDisabledReason is why the controllers stopped sending to an endpoint.
//
// +kubebuilder:validation:Enum=Gone;FailingTooLong;NoUsableSecret
type WebhookDisabledReason string

// The reasons of the controllers.
const (
	// WebhookDisabledGone is an answer of 410.
	WebhookDisabledGone WebhookDisabledReason = "Gone"
	// WebhookDisabledFailingTooLong is five days without a success.
	WebhookDisabledFailingTooLong WebhookDisabledReason = "FailingTooLong"
	// WebhookDisabledNoUsableSecret is five days without a usable signing secret.
	WebhookDisabledNoUsableSecret WebhookDisabledReason = "NoUsableSecret"
)

// WebhookDisabled records that the controllers stopped sending to an endpoint.
type WebhookDisabled struct {
	// at is when the controllers stopped sending.
	// +required
	At Time `json:"at"`
	// reason for programs: Gone (the receiver answered 410), FailingTooLong (five days without a success) or
	// NoUsableSecret (five days without a usable signing secret).
	// +required
	Reason WebhookDisabledReason `json:"reason"`
	// message for people. At most 256 characters.
	// +kubebuilder:validation:MaxLength=256
	// +required
	Message string `json:"message"`
	// generation is the metadata.generation for which sending failed. A later generation is tried
	// again.
	// +required
	Generation int64 `json:"generation"`
}

// WebhookSecretStatus identifies a signing secret and its expiry, without anything that helps to guess it.
type WebhookSecretStatus struct {
	// id of the secret, as in the signatures of deliveries. It is derived from the secret by a
	// one-way function.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	ID string `json:"id"`
	// expiresAt is when the secret expires or expired. Absent while no end is known.
	// +optional
	ExpiresAt *Time `json:"expiresAt,omitempty"`
}

// WebhookEndpointStatus is what the controllers observe of an endpoint.
type WebhookEndpointStatus struct {
	// observedGeneration is the metadata.generation that the status describes. If it is smaller
	// than the current one, the status is not up to date yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// secretRef names the Secret in use. Absent while there is no usable one.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
	// secrets are the identifiers of the signing secrets: those in use first, the newest before the
	// others. At most 4.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	// +optional
	Secrets []WebhookSecretStatus `json:"secrets,omitempty"`
	// rotationSerial is the last spec.rotation.serial that was carried out.
	// +optional
	RotationSerial int64 `json:"rotationSerial,omitempty"`
	// pingedAt is when the endpoint's webhook.ping was created. There is only one.
	// +optional
	PingedAt *Time `json:"pingedAt,omitempty"`
	// lastSuccessAt is when an attempt last succeeded. Updated at most once per minute while all
	// attempts succeed.
	// +optional
	LastSuccessAt *Time `json:"lastSuccessAt,omitempty"`
	// consecutiveFailures is the number of failed attempts since the last success or change of the
	// spec, counted up to 100.
	// +optional
	ConsecutiveFailures int32 `json:"consecutiveFailures"`
	// failingSince is when the first of these attempts was made or, if that is later, since when there is no usable
	// signing secret.
	// +optional
	FailingSince *Time `json:"failingSince,omitempty"`
	// disabled is set while the controllers send nothing, because the receiver is gone or has failed for too long, or
	// there was no usable signing secret for too long. Any change of the spec ends it; NoUsableSecret also ends with a
	// usable secret.
	// +optional
	Disabled *WebhookDisabled `json:"disabled,omitempty"`
	// conditions of the endpoint: Ready, Stalled, Backlogged.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=4
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
}

// WebhookEndpoint is a receiver of events.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=whe,categories=appsec
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.spec.url`
// +kubebuilder:printcolumn:name="Disabled",type=boolean,JSONPath=`.spec.disabled`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Last Success",type=date,JSONPath=`.status.lastSuccessAt`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Events",type=string,priority=1,JSONPath=`.spec.events`
// +kubebuilder:printcolumn:name="Batch",type=string,priority=1,JSONPath=`.spec.batch`
// +kubebuilder:printcolumn:name="Failing Since",type=date,priority=1,JSONPath=`.status.failingSince`
// +kubebuilder:printcolumn:name="Failures",type=integer,priority=1,JSONPath=`.status.consecutiveFailures`
// +kubebuilder:selectablefield:JSONPath=`.spec.disabled`
// +kubebuilder:selectablefield:JSONPath=`.spec.url`
type WebhookEndpoint struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`
	// spec is the desired state.
	// +required
	Spec WebhookEndpointSpec `json:"spec"`
	// status is what the controllers observed. Only they write it.
	// +optional
	Status WebhookEndpointStatus `json:"status,omitzero"`
}

// DisabledByControllers returns why the controllers send nothing to the endpoint with its current spec; nil if
// they do.
func (e *WebhookEndpoint) DisabledByControllers() *WebhookDisabled {
	if disabled := e.Status.Disabled; disabled != nil && disabled.Generation == e.Generation {
		return disabled
	}
	return nil
}

// IsDisabled reports whether people or the controllers have disabled the endpoint.
func (e *WebhookEndpoint) IsDisabled() bool {
	return e.Spec.Disabled || e.DisabledByControllers() != nil
}

// WebhookEndpointList is a list of WebhookEndpoints.
//
// +kubebuilder:object:root=true
type WebhookEndpointList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WebhookEndpoint `json:"items"`
}
