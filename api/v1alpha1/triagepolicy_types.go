package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Conditions of a TriagePolicy besides Ready and Stalled.
const (
	// ConditionCompiled is True if spec.match of the current generation is a valid expression; if not, its message
	// names line and column. Positive polarity. Absent until the first reconcile.
	ConditionCompiled = "Compiled"
	// ConditionInForce is True while a generation of the policy decides about findings; the reason reports
	// anything unusual about that, or why none does. Positive polarity. Absent until the first reconcile.
	ConditionInForce = "InForce"
)

// Reasons of Compiled.
const (
	// ReasonCompiled goes with Compiled=True.
	ReasonCompiled = "Compiled"
	// ReasonNotCompiled goes with Compiled=False: the expression is wrong, or may cost too much.
	ReasonNotCompiled = "NotCompiled"
)

// Reasons of InForce.
const (
	// ReasonInForce goes with InForce=True: the current generation decides.
	ReasonInForce = "InForce"
	// ReasonEarlierGeneration goes with InForce=True: the current generation cannot be in force, so an earlier one
	// still decides.
	ReasonEarlierGeneration = "EarlierGeneration"
	// ReasonNeverMatched goes with InForce=True: the policy has matched no finding yet.
	ReasonNeverMatched = "NeverMatched"
	// ReasonShadowed goes with InForce=True: other policies decide about everything that this one could decide
	// about.
	ReasonShadowed = "Shadowed"
	// ReasonPreview goes with InForce=False: spec.mode is Preview.
	ReasonPreview = "Preview"
	// ReasonNotYetValid goes with InForce=False: spec.validFrom is in the future.
	ReasonNotYetValid = "NotYetValid"
	// ReasonPolicyExpired goes with InForce=False: spec.validUntil has passed.
	ReasonPolicyExpired = "Expired"
	// ReasonTooMany goes with InForce=False: more findings match than spec.maxFindings.
	ReasonTooMany = "TooMany"
	// ReasonTooManyPolicies goes with InForce=False: the maximum number of other policies is in force in the
	// organization.
	ReasonTooManyPolicies = "TooManyPolicies"
	// ReasonTooCostly goes with Ready=False, and with InForce=False if nothing else keeps the policy out of force:
	// evaluating it over all findings takes too long.
	ReasonTooCostly = "TooCostly"
)

// PolicyStatus is a policy's decision about a finding. Unlike people, a policy cannot decide that a finding is
// open.
//
// +kubebuilder:validation:Enum=active;muted
type PolicyStatus string

// PolicyMode sets whether a policy decides, or only shows what it would decide.
//
// +kubebuilder:validation:Enum=Preview;Apply
type PolicyMode string

// The modes.
const (
	PolicyPreview PolicyMode = "Preview"
	PolicyApply   PolicyMode = "Apply"
)

// Bounds of what a TriagePolicy's status lists.
const (
	// MaxPolicySamples is the maximum number of findings listed.
	MaxPolicySamples = 10
	// MaxShadowingPolicies is the maximum number of other policies listed.
	MaxShadowingPolicies = 8
)

// TriagePolicySpec selects findings and sets the decision about them.
//
// +kubebuilder:validation:XValidation:rule="!has(self.validFrom) || !has(self.validUntil) || timestamp(self.validFrom.upperAscii()) < timestamp(self.validUntil.upperAscii())",message="validUntil must be after validFrom"
type TriagePolicySpec struct {
	// match is a CEL expression over finding, project, repository and now. The policy decides about findings for
	// which it returns true, for example "finding.class == 'CWE-89' && finding.path.startsWith('test/')". 1 to
	// 4096 characters. docs/kinds/triagepolicy.md lists the members.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +required
	Match string `json:"match"`
	// set is the decision.
	// +required
	Set PolicyDecision `json:"set"`
	// mode is Preview, which shows in the status what the policy would decide, or Apply. Default: Preview.
	// +optional
	Mode PolicyMode `json:"mode,omitempty"`
	// priority decides between policies that match the same finding: the highest wins, among equal ones the
	// alphabetically first name. From 0 to 1000. Default: 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Priority int32 `json:"priority,omitempty"`
	// validFrom is when the policy comes into force, for example "2026-04-01T00:00:00Z". Absent: at once.
	// +optional
	ValidFrom *Time `json:"validFrom,omitempty"`
	// validUntil is when the policy ends, for example "2026-12-31T00:00:00Z": from then on it decides about nothing.
	// Absent: it does not end.
	// +optional
	ValidUntil *Time `json:"validUntil,omitempty"`
	// maxFindings is the highest number of findings, not counting closed ones, that the policy may match. If it
	// matches more it is stopped, with the reason TooMany in its conditions. From 1 to 100000. Default: 1000.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	MaxFindings int32 `json:"maxFindings,omitempty"`
	// by is the author of this spec, for example "ann@example.com". The API server sets it to the name of the
	// authenticated user; a value that a client sends is overwritten, unless it restores a backup. At most 320 characters.
	// +kubebuilder:validation:MaxLength=320
	// +optional
	By string `json:"by,omitempty"`
}

// DefaultMaxFindings is the limit for a policy without spec.maxFindings.
const DefaultMaxFindings = 1000

// Limit returns the highest number of findings that the policy may match.
func (s *TriagePolicySpec) Limit() int32 {
	if s.MaxFindings == 0 {
		return DefaultMaxFindings
	}
	return s.MaxFindings
}

// PolicyDecision is a policy's decision about each matching finding.
//
// +kubebuilder:validation:XValidation:rule="self.userStatus != 'muted' || has(self.reason)",message="a policy that mutes needs a reason"
type PolicyDecision struct {
	// userStatus is muted (not to be acted on) or active (confirmed).
	// +required
	UserStatus PolicyStatus `json:"userStatus"`
	// reason for the decision: false-positive, not-reachable, mitigated-elsewhere, accepted-risk, used-in-tests,
	// will-not-fix or duplicate. Required to mute.
	// +optional
	Reason DecisionReason `json:"reason,omitempty"`
	// comment explains the decision. At most 1024 characters.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Comment string `json:"comment,omitempty"`
}

// TriagePolicyStatus is what the controllers observe of a policy. The counts cover findings that are not
// closed, and are updated some seconds after findings change.
type TriagePolicyStatus struct {
	// observedGeneration is the metadata.generation that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// inForce is the generation that decides about findings: the last one that compiled and did not match too many
	// findings. Absent if none decides.
	// +optional
	InForce *PolicyInForce `json:"inForce,omitempty"`
	// matched is the number of matching findings.
	// +optional
	Matched int32 `json:"matched"`
	// applied is the number of findings that the policy decides about: the matching ones that neither a person nor
	// a policy with precedence has decided about. 0 while the policy is not in force.
	// +optional
	Applied int32 `json:"applied"`
	// wouldApply is the number of findings that the policy would decide about if it were in force. 0 while it is.
	// +optional
	WouldApply int32 `json:"wouldApply"`
	// shadowed is the number of matching findings that another policy decides about.
	// +optional
	Shadowed int32 `json:"shadowed"`
	// shadowedBy are the names of these policies, at most 8.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +optional
	ShadowedBy []ResourceName `json:"shadowedBy,omitempty"`
	// overridden is the number of matching findings about which a person decided differently.
	// +optional
	Overridden int32 `json:"overridden"`
	// failed is the number of findings for which the expression failed, or was not evaluated because the policies
	// before it cost too much. The policy does not decide about these.
	// +optional
	Failed int32 `json:"failed"`
	// failure is one of the failures.
	// +optional
	Failure *PolicyFailure `json:"failure,omitempty"`
	// samples are the alphabetically first names of matching findings, at most 10.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Samples []ResourceName `json:"samples,omitempty"`
	// lastMatchedAt is when the newest matching finding was created. Absent: none has matched yet.
	// +optional
	LastMatchedAt *Time `json:"lastMatchedAt,omitempty"`
	// conditions of the policy: Ready, Stalled, Compiled, InForce.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=4
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
}

// PolicyInForce is a generation of a policy that decides about findings.
type PolicyInForce struct {
	// generation is the metadata.generation of the policy that had this spec.
	// +required
	Generation int64 `json:"generation"`
	// spec that decides.
	// +required
	Spec TriagePolicySpec `json:"spec"`
}

// PolicyFailure is an evaluation that failed.
type PolicyFailure struct {
	// finding is the name of the finding.
	// +required
	Finding ResourceName `json:"finding"`
	// message is the error, for example "no such key: score". At most 256 characters.
	// +kubebuilder:validation:MaxLength=256
	// +required
	Message string `json:"message"`
}

// TriagePolicy decides about its organization's findings that match an expression and that no person has
// decided about.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=triagepolicies,scope=Namespaced,shortName=tp,categories=appsec
// +kubebuilder:printcolumn:name="Set",type=string,JSONPath=`.spec.set.userStatus`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="In Force",type=string,JSONPath=`.status.conditions[?(@.type=="InForce")].status`
// +kubebuilder:printcolumn:name="Why",type=string,JSONPath=`.status.conditions[?(@.type=="InForce")].reason`
// +kubebuilder:printcolumn:name="Matched",type=integer,JSONPath=`.status.matched`
// +kubebuilder:printcolumn:name="Applied",type=integer,JSONPath=`.status.applied`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.spec.set.reason`
// +kubebuilder:printcolumn:name="Priority",type=integer,priority=1,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Until",type=string,priority=1,JSONPath=`.spec.validUntil`
// +kubebuilder:printcolumn:name="Would Apply",type=integer,priority=1,JSONPath=`.status.wouldApply`
// +kubebuilder:printcolumn:name="Shadowed",type=integer,priority=1,JSONPath=`.status.shadowed`
// +kubebuilder:printcolumn:name="Overridden",type=integer,priority=1,JSONPath=`.status.overridden`
// +kubebuilder:printcolumn:name="Failed",type=integer,priority=1,JSONPath=`.status.failed`
// +kubebuilder:printcolumn:name="By",type=string,priority=1,JSONPath=`.spec.by`
// +kubebuilder:printcolumn:name="Ready",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:selectablefield:JSONPath=`.spec.mode`
// +kubebuilder:selectablefield:JSONPath=`.spec.set.userStatus`
type TriagePolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`
	// spec is the desired state.
	// +required
	Spec TriagePolicySpec `json:"spec"`
	// status is what the controllers observed. Only they write it.
	// +structType=atomic
	// +optional
	Status TriagePolicyStatus `json:"status,omitzero"`
}

// TriagePolicyList is a list of TriagePolicies.
//
// +kubebuilder:object:root=true
type TriagePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TriagePolicy `json:"items"`
}
