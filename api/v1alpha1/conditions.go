package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition has the form and meaning of metav1.Condition with tighter bounds: the standard
// one lets a message take 32,768 characters, a fifth of what a whole object may hold here.
type Condition struct {
	// type of condition in CamelCase, for example "Ready".
	// +kubebuilder:validation:Pattern=`^[A-Z][A-Za-z0-9]*$`
	// +kubebuilder:validation:MaxLength=64
	// +required
	Type string `json:"type"`
	// status of the condition: True, False or Unknown.
	// +kubebuilder:validation:Enum=True;False;Unknown
	// +required
	Status metav1.ConditionStatus `json:"status"`
	// observedGeneration is the metadata.generation for which the condition was set.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// lastTransitionTime is when status last changed.
	// +required
	LastTransitionTime Time `json:"lastTransitionTime"`
	// reason is a CamelCase word for programs: why the condition has its status, for example
	// "Reconciled".
	// +kubebuilder:validation:Pattern=`^[A-Z][A-Za-z0-9]*$`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	Reason string `json:"reason"`
	// message describes for people what is wrong and what to do. It holds no timestamp and no
	// counter, so that it changes only when its meaning does.
	// +kubebuilder:validation:MaxLength=1024
	// +required
	Message string `json:"message"`
}

// Conditions that every kind has.
const (
	// ConditionReady is True when the controllers have done all that the spec asks for.
	// Positive polarity. Absent until the first reconcile.
	ConditionReady = "Ready"
	// ConditionStalled is True when nothing will change until a person acts as the message describes. Negative polarity:
	// absent while all is well.
	ConditionStalled = "Stalled"
)

// Reasons that more than one kind uses.
const (
	// ReasonReconciled goes with Ready=True: nothing is left to do.
	ReasonReconciled = "Reconciled"
	// ReasonProgressing goes with Ready=False: the work continues, and nobody needs to act.
	ReasonProgressing = "Progressing"
	// ReasonDeleting goes with Ready=False: children are being removed.
	ReasonDeleting = "Deleting"
	// ReasonRepositoryNotFound goes with Ready=False: the named Repository does not exist.
	ReasonRepositoryNotFound = "RepositoryNotFound"
	// ReasonProjectNotFound goes with Ready=False: the named Project does not exist.
	ReasonProjectNotFound = "ProjectNotFound"
	// ReasonProjectInAnotherRepository goes with Ready=False: the Project named exists and
	// belongs to another Repository than the one named beside it.
	ReasonProjectInAnotherRepository = "ProjectInAnotherRepository"
)

// ReasonUnreadable is that of an Event about an object that the API server serves and that the controllers cannot read.
// No condition has it, because the status of an object that cannot be read cannot be written.
const ReasonUnreadable = "Unreadable"

// SetCondition adds the condition, or replaces the one of its type and keeps that one's LastTransitionTime if the
// status is the same. The caller must set LastTransitionTime. The list is copied, not changed in place.
func SetCondition(list *[]Condition, condition Condition) {
	next := slices.Clone(*list)
	if was := FindCondition(next, condition.Type); was == nil {
		next = append(next, condition)
	} else {
		if was.Status == condition.Status {
			condition.LastTransitionTime = was.LastTransitionTime
		}
		*was = condition
	}
	*list = next
}

// RemoveCondition removes the condition of that type. The list is copied, not changed in place.
func RemoveCondition(list *[]Condition, conditionType string) {
	*list = slices.DeleteFunc(slices.Clone(*list), func(c Condition) bool { return c.Type == conditionType })
}

// FindCondition returns the condition of that type, or nil.
func FindCondition(list []Condition, conditionType string) *Condition {
	for i := range list {
		if list[i].Type == conditionType {
			return &list[i]
		}
	}
	return nil
}

// StalledMessage returns the message of the Stalled condition; "" without one.
func StalledMessage(list []Condition) string {
	if stalled := FindCondition(list, ConditionStalled); stalled != nil {
		return stalled.Message
	}
	return ""
}

// IsConditionTrue reports whether the condition of that type exists and is True.
func IsConditionTrue(list []Condition, conditionType string) bool {
	condition := FindCondition(list, conditionType)
	return condition != nil && condition.Status == metav1.ConditionTrue
}

// StatusAndConditions points to the status, and to the conditions in it.
func (a *APIKey) StatusAndConditions() (*APIKeyStatus, *[]Condition) {
	return &a.Status, &a.Status.Conditions
}

// StatusAndConditions points to the status, and to the conditions in it.
func (f *Finding) StatusAndConditions() (*FindingStatus, *[]Condition) {
	return &f.Status, &f.Status.Conditions
}

// StatusAndConditions points to the status, and to the conditions in it.
func (o *Organization) StatusAndConditions() (*OrganizationStatus, *[]Condition) {
	return &o.Status, &o.Status.Conditions
}

// StatusAndConditions points to the status, and to the conditions in it.
func (p *Project) StatusAndConditions() (*ProjectStatus, *[]Condition) {
	return &p.Status, &p.Status.Conditions
}

// StatusAndConditions points to the status, and to the conditions in it.
func (r *Repository) StatusAndConditions() (*RepositoryStatus, *[]Condition) {
	return &r.Status, &r.Status.Conditions
}

// StatusAndConditions points to the status, and to the conditions in it.
func (r *Review) StatusAndConditions() (*ReviewStatus, *[]Condition) {
	return &r.Status, &r.Status.Conditions
}

// StatusAndConditions points to the status, and to the conditions in it.
func (r *ReviewIssue) StatusAndConditions() (*ReviewIssueStatus, *[]Condition) {
	return &r.Status, &r.Status.Conditions
}

// StatusAndConditions points to the status, and to the conditions in it.
func (s *Scan) StatusAndConditions() (*ScanStatus, *[]Condition) {
	return &s.Status, &s.Status.Conditions
}

// StatusAndConditions points to the status, and to the conditions in it.
func (o *TriageOperation) StatusAndConditions() (*TriageOperationStatus, *[]Condition) {
	return &o.Status, &o.Status.Conditions
}

// StatusAndConditions points to the status, and to the conditions in it.
func (p *TriagePolicy) StatusAndConditions() (*TriagePolicyStatus, *[]Condition) {
	return &p.Status, &p.Status.Conditions
}

// StatusAndConditions points to the status, and to the conditions in it.
func (w *WebhookDelivery) StatusAndConditions() (*WebhookDeliveryStatus, *[]Condition) {
	return &w.Status, &w.Status.Conditions
}

// StatusAndConditions points to the status, and to the conditions in it.
func (e *WebhookEndpoint) StatusAndConditions() (*WebhookEndpointStatus, *[]Condition) {
	return &e.Status, &e.Status.Conditions
}
