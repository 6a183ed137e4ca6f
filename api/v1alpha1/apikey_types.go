package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Reasons of an APIKey's conditions.
const (
	// ReasonDisabled goes with Ready=False: spec.disabled is set.
	ReasonDisabled = "Disabled"
	// ReasonExpired goes with Ready=False and Stalled=True: the key has expired; rotate it or create another.
	ReasonExpired = "Expired"
	// ReasonSecretConflict goes with Ready=False and Stalled=True: a Secret of the token's name exists and does
	// not belong to the key, or cannot be replaced.
	ReasonSecretConflict = "SecretConflict"
	// ReasonSecretNotWritten goes with Ready=False: the object's Secret could not be written, or an APIKey's token for
	// it could not be signed.
	ReasonSecretNotWritten = "SecretNotWritten"
	// ReasonOrganizationNotFound goes with Ready=False and Stalled=True: the namespace does not belong to an
	// organization.
	ReasonOrganizationNotFound = "OrganizationNotFound"
)

// APIKeyAuthorPrefix is the prefix of an APIKey's name where an object records who decided or imported over REST.
const APIKeyAuthorPrefix = "apikey/"

// APIKeyTokenKey is the key of a Secret's data under which an APIKey's token is kept.
const APIKeyTokenKey = "token"

// Scope is a right of an API key.
//
// +kubebuilder:validation:Enum="findings:read";"findings:triage";"repos:read";"reviews:read";"webhooks:verify";"webhooks:read";"findings:import";"policies:write";"webhooks:redeliver";"keys:read"
type Scope string

// The scopes.
const (
	ScopeFindingsRead   Scope = "findings:read"
	ScopeFindingsTriage Scope = "findings:triage"
	ScopeReposRead      Scope = "repos:read"
	ScopeReviewsRead    Scope = "reviews:read"
	ScopeWebhooksVerify Scope = "webhooks:verify"
	ScopeWebhooksRead   Scope = "webhooks:read"
	ScopeFindingsImport Scope = "findings:import"
	// ScopePoliciesWrite also requires ScopeFindingsTriage, because a policy decides about findings.
	ScopePoliciesWrite     Scope = "policies:write"
	ScopeWebhooksRedeliver Scope = "webhooks:redeliver"
	ScopeKeysRead          Scope = "keys:read"
)

// Scopes are all scopes.
func Scopes() []Scope {
	return append(DefaultScopes(), ScopeWebhooksRead, ScopeFindingsImport, ScopePoliciesWrite, ScopeWebhooksRedeliver,
		ScopeKeysRead)
}

// DefaultScopes are the scopes of a key that lists none. They are fixed: a scope added later must be listed, so
// that no key gains a right by an upgrade.
func DefaultScopes() []Scope {
	return []Scope{ScopeFindingsRead, ScopeFindingsTriage, ScopeReposRead, ScopeReviewsRead, ScopeWebhooksVerify}
}

// APIKeySpec describes what a key is for and how long it is valid.
type APIKeySpec struct {
	// description is who uses the key and for what, for example "The team's dashboard". At most 512 characters.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Description string `json:"description,omitempty"`
	// disabled refuses the key while it is true. It takes effect within about a second.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
	// expiresAt is when the key expires, in RFC 3339, for example "2026-12-31T00:00:00Z". An earlier time takes effect
	// at once; a later one needs a rotation, because an issued token never outlives the expiry that it was issued with.
	// Default: 90 days after the issue, or the organization's maximum if that is less.
	// +optional
	ExpiresAt *Time `json:"expiresAt,omitempty"`
	// scopes are what the key may do, for example [findings:read, repos:read]. 1 to 16. A key without this
	// list has findings:read, findings:triage, repos:read, reviews:read and webhooks:verify; every other scope must be
	// listed. An empty list and the removal of the list are refused: set disabled to take all rights away. To write
	// policies, list findings:triage beside policies:write.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Scopes []Scope `json:"scopes,omitempty"`
	// rateLimit is the key's own limit. It takes precedence over the organization's, whose
	// spec.apiKeys.maxRequestsPerMinute limits it.
	// +optional
	RateLimit *RateLimit `json:"rateLimit,omitempty"`
	// rotation requests a new token.
	// +optional
	Rotation *APIKeyRotation `json:"rotation,omitempty"`
}

// APIKeyRotation requests a new token and sets how long the previous one stays valid.
type APIKeyRotation struct {
	// serial requests a new token each time it is raised. From 1.
	// +kubebuilder:validation:Minimum=1
	// +required
	Serial int64 `json:"serial"`
	// overlap is how long the previous token stays valid after the rotation: a duration of at most
	// "720h", for example "24h". Default: it ends at once.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('720h') && !self.matches('[ a-gi-lo-rtv-zA-Z]')",message="overlap must be hours, minutes and seconds between 0s and 720h, for example 24h"
	// +optional
	Overlap *metav1.Duration `json:"overlap,omitempty"`
}

// WantedSerial returns the serial that the rotation asks for; 0 for none.
func (r *APIKeyRotation) WantedSerial() int64 {
	if r == nil {
		return 0
	}
	return r.Serial
}

// APIKeyStatus is what the controllers observe of a key. It holds no secret.
type APIKeyStatus struct {
	// observedGeneration is the metadata.generation that the status describes. If it is smaller
	// than the current one, the status is not up to date yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// keyID is the identifier (the jti claim) of the valid token. Empty if there is none.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	KeyID string `json:"keyID,omitempty"`
	// signingKeyID is the identifier (the kid header) of the key that signed the token in the
	// Secret.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	SigningKeyID string `json:"signingKeyID,omitempty"`
	// secretRef names the Secret that holds the token, under the key "token".
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
	// rotationSerial is the spec.rotation.serial that the last token was issued for.
	// +optional
	RotationSerial int64 `json:"rotationSerial,omitempty"`
	// issuedAt is when the last token was issued. It stays when the token is lost.
	// +optional
	IssuedAt *Time `json:"issuedAt,omitempty"`
	// expiresAt is when the last token expires. It stays when the token is lost.
	// +optional
	ExpiresAt *Time `json:"expiresAt,omitempty"`
	// previous is the token from before the last rotation, during its overlap.
	// +optional
	Previous *PreviousToken `json:"previous,omitempty"`
	// lastUsedAt is when a request last carried the key. The REST API writes it, at most once per
	// minute.
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
	// signingKeyID is the identifier (the kid header) of the key that signed the token. The token
	// ends with that key, because it is stored nowhere and cannot be signed again.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	SigningKeyID string `json:"signingKeyID,omitempty"`
	// issuedAt is when the token was issued. The organization's maximum lifetime counts from then.
	// +optional
	IssuedAt *Time `json:"issuedAt,omitempty"`
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
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.spec) || !has(oldSelf.spec.scopes) || size(oldSelf.spec.scopes) == 0 || has(self.spec) && has(self.spec.scopes)",fieldPath=".spec.scopes",message="must not be removed: without the list the key has five scopes. List what the key may do, or set disabled"
type APIKey struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`
	// spec is the desired state.
	// +optional
	Spec APIKeySpec `json:"spec,omitzero"`
	// status is what the controllers observed. Only they write it.
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
