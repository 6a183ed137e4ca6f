package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Reasons of an APIKey's conditions.
const (
	// ReasonDisabled goes with Ready=False: spec.disabled is set.
	ReasonDisabled = "Disabled"
	// ReasonExpired goes with Ready=False and Stalled=True: the key's life is over; rotate it or make another.
	ReasonExpired = "Expired"
	// ReasonSecretConflict goes with Ready=False and Stalled=True: a Secret of the key's name is there and not ours.
	ReasonSecretConflict = "SecretConflict"
	// ReasonOrganizationNotFound goes with Ready=False and Stalled=True: the namespace is no organization's.
	ReasonOrganizationNotFound = "OrganizationNotFound"
)

// APIKeyTokenKey is the key of a Secret's data under which an APIKey's token is kept.
const APIKeyTokenKey = "token"

// Scope is a right that an API key may be limited to.
//
// +kubebuilder:validation:Enum="findings:read";"findings:triage";"repos:read";"reviews:read";"webhooks:verify"
type Scope string

// The scopes.
const (
	ScopeFindingsRead   Scope = "findings:read"
	ScopeFindingsTriage Scope = "findings:triage"
	ScopeReposRead      Scope = "repos:read"
	ScopeReviewsRead    Scope = "reviews:read"
	ScopeWebhooksVerify Scope = "webhooks:verify"
)

// APIKeySpec says what a key is for and how long it lives.
type APIKeySpec struct {
	// description says who uses the key and for what.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Description string `json:"description,omitempty"`
	// disabled refuses the key at once, and may be taken back.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
	// expiresAt ends the key's life. It may be brought forward at any time; a token that was
	// issued never outlives the expiry it was issued with, so a longer life takes a rotation.
	// Default: 90 days after the issue, or the organization's maximum where that is less.
	// +optional
	ExpiresAt *Time `json:"expiresAt,omitempty"`
	// scopes limit what the key may do; a key with none listed may do everything.
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Scopes []Scope `json:"scopes,omitempty"`
	// rateLimit comes before the organization's.
	// +optional
	RateLimit *RateLimit `json:"rateLimit,omitempty"`
	// rotation asks for a new token.
	// +optional
	Rotation *APIKeyRotation `json:"rotation,omitempty"`
}

// APIKeyRotation asks for a new token and says how long the one before stays valid.
type APIKeyRotation struct {
	// serial asks for a new token each time it is raised.
	// +kubebuilder:validation:Minimum=1
	// +required
	Serial int64 `json:"serial"`
	// overlap is how long the token before stays valid. Default: none.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('720h') && !self.matches('[ a-gi-lo-rtv-zA-Z]')",message="overlap must be hours, minutes and seconds between 0s and 720h, for example 24h"
	// +optional
	Overlap *metav1.Duration `json:"overlap,omitempty"`
}

// APIKeyStatus is what the controllers observe of a key. It holds no secret.
type APIKeyStatus struct {
	// observedGeneration is the metadata.generation that this status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// keyID is the identifier (the jti claim) of the token that is valid now.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	KeyID string `json:"keyID,omitempty"`
	// signingKeyID names the signing key (the kid header) that the token in the Secret is signed by.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	SigningKeyID string `json:"signingKeyID,omitempty"`
	// secretRef names the Secret that holds the token under the key "token".
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
	// rotationSerial is the spec.rotation.serial that the token was issued for.
	// +optional
	RotationSerial int64 `json:"rotationSerial,omitempty"`
	// issuedAt is when the token was issued.
	// +optional
	IssuedAt *Time `json:"issuedAt,omitempty"`
	// expiresAt is when the token stops being valid.
	// +optional
	ExpiresAt *Time `json:"expiresAt,omitempty"`
	// previous is the token before the last rotation, while it is still valid.
	// +optional
	Previous *PreviousToken `json:"previous,omitempty"`
	// lastUsedAt is when a request last carried the key; written at most once a minute.
	// +optional
	LastUsedAt *Time `json:"lastUsedAt,omitempty"`
	// conditions of the key: Ready, Stalled.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=4
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
}

// PreviousToken is a token that a rotation has replaced.
type PreviousToken struct {
	// keyID is the token's identifier (the jti claim).
	// +kubebuilder:validation:MaxLength=64
	// +required
	KeyID string `json:"keyID"`
	// expiresAt is when the overlap ends.
	// +required
	ExpiresAt Time `json:"expiresAt"`
}

// APIKey is a bearer credential of the REST API for the organization whose namespace it is in.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=akey,categories=appsec
// +kubebuilder:printcolumn:name="Description",type=string,JSONPath=`.spec.description`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.status.expiresAt`
// +kubebuilder:printcolumn:name="Last Used",type=date,JSONPath=`.status.lastUsedAt`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Secret",type=string,priority=1,JSONPath=`.status.secretRef.name`
// +kubebuilder:printcolumn:name="Signing Key",type=string,priority=1,JSONPath=`.status.signingKeyID`
// +kubebuilder:printcolumn:name="Scopes",type=string,priority=1,JSONPath=`.spec.scopes`
// +kubebuilder:selectablefield:JSONPath=`.spec.disabled`
// +kubebuilder:selectablefield:JSONPath=`.status.keyID`
type APIKey struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`
	// spec is what is declared.
	// +optional
	Spec APIKeySpec `json:"spec,omitzero"`
	// status is what the controllers observe.
	// +optional
	Status APIKeyStatus `json:"status,omitzero"`
}

// APIKeyList is a list of APIKeys.
//
// +kubebuilder:object:root=true
type APIKeyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []APIKey `json:"items"`
}
