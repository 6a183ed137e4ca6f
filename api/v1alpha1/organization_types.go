package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Reasons of an Organization's conditions.
const (
	// ReasonNamespaceConflict goes with Ready=False and Stalled=True: a namespace of the
	// organization's name is there and not ours.
	ReasonNamespaceConflict = "NamespaceConflict"
	// ReasonNamespaceTerminating goes with Ready=False: the namespace is being removed.
	ReasonNamespaceTerminating = "NamespaceTerminating"
	// ReasonNotEmpty goes with Ready=False and Stalled=True: the organization is to be removed
	// and still has repositories, projects, findings, scans, reviews or webhook endpoints.
	ReasonNotEmpty = "NotEmpty"
	// ReasonQuotaReached goes with QuotaExceeded=True: as many objects of a kind are there as may be.
	ReasonQuotaReached = "QuotaReached"
)

// ConditionQuotaExceeded is True while a quota is used up: nothing more of that kind can be
// made, and imports fail. Negative polarity: absent while there is room.
const ConditionQuotaExceeded = "QuotaExceeded"

// RemoveContentsAnnotation on an Organization that is being deleted, with the value "true",
// lets it take everything that it holds along.
const RemoveContentsAnnotation = GroupName + "/remove-contents"

// OrganizationSpec says what an organization is allowed and how long its past is kept.
type OrganizationSpec struct {
	// displayName is the name that people see.
	// +kubebuilder:validation:MaxLength=200
	// +optional
	DisplayName string `json:"displayName,omitempty"`
	// rateLimit holds for every key of the organization that has no figure of its own.
	// +optional
	RateLimit *RateLimit `json:"rateLimit,omitempty"`
	// apiKeys bounds the organization's API keys.
	// +optional
	APIKeys *OrganizationAPIKeys `json:"apiKeys,omitempty"`
	// retention says how long finished things are kept. What it does not name is kept, but for
	// finished deliveries.
	// +optional
	Retention *Retention `json:"retention,omitempty"`
	// quotas bound how many objects of a kind the organization may have. What they do not name
	// is not bounded.
	// +optional
	Quotas *OrganizationQuotas `json:"quotas,omitempty"`
}

// OrganizationQuotas bounds how many objects of a kind an organization may have. They become a
// ResourceQuota in its namespace; what is there already when a bound is drawn closer stays.
type OrganizationQuotas struct {
	// findings counts closed ones too, until retention takes them.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Findings *int64 `json:"findings,omitempty"`
	// repositories that there may be.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Repositories *int64 `json:"repositories,omitempty"`
	// projects that there may be.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Projects *int64 `json:"projects,omitempty"`
	// scans counts finished ones too, until retention takes them. An import makes one for each
	// tool and category.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Scans *int64 `json:"scans,omitempty"`
	// reviews that there may be.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Reviews *int64 `json:"reviews,omitempty"`
	// reviewIssues counts resolved ones too.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ReviewIssues *int64 `json:"reviewIssues,omitempty"`
	// apiKeys counts disabled and expired ones too.
	// +kubebuilder:validation:Minimum=0
	// +optional
	APIKeys *int64 `json:"apiKeys,omitempty"`
	// webhookEndpoints that there may be.
	// +kubebuilder:validation:Minimum=0
	// +optional
	WebhookEndpoints *int64 `json:"webhookEndpoints,omitempty"`
	// webhookDeliveries counts finished ones too, until retention takes them. Where they are
	// used up, events wait until there is room.
	// +kubebuilder:validation:Minimum=0
	// +optional
	WebhookDeliveries *int64 `json:"webhookDeliveries,omitempty"`
}

// OrganizationAPIKeys bounds an organization's API keys.
type OrganizationAPIKeys struct {
	// maxLifetime is the longest life of a key from its issue, for example "2160h".
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && !self.matches('[ a-gi-lo-rtv-zA-Z]')",message="maxLifetime must be hours, minutes and seconds of at least 1m, for example 2160h"
	// +optional
	MaxLifetime *metav1.Duration `json:"maxLifetime,omitempty"`
}

// Retention says how long finished things are kept after they are finished.
type Retention struct {
	// closedFindings is how long a closed finding is kept, for example "8760h". Absent: for ever.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && !self.matches('[ a-gi-lo-rtv-zA-Z]')",message="closedFindings must be hours, minutes and seconds and not negative, for example 8760h for a year"
	// +optional
	ClosedFindings *metav1.Duration `json:"closedFindings,omitempty"`
	// includeTriaged lets closed findings be retired that a person has muted or commented.
	// +optional
	IncludeTriaged bool `json:"includeTriaged,omitempty"`
	// finishedScans is how long a completed or failed scan is kept. Absent: for ever. The last of
	// each repository, project, tool and category is kept all the same.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && !self.matches('[ a-gi-lo-rtv-zA-Z]')",message="finishedScans must be hours, minutes and seconds and not negative, for example 8760h for a year"
	// +optional
	FinishedScans *metav1.Duration `json:"finishedScans,omitempty"`
	// finishedDeliveries is how long a delivered or failed webhook delivery is kept. Absent: a week.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && !self.matches('[ a-gi-lo-rtv-zA-Z]')",message="finishedDeliveries must be hours, minutes and seconds and not negative, for example 8760h for a year"
	// +optional
	FinishedDeliveries *metav1.Duration `json:"finishedDeliveries,omitempty"`
}

// OrganizationCounts are sums over the organization's namespace.
type OrganizationCounts struct {
	// repositories is the number of Repositories.
	// +optional
	Repositories int32 `json:"repositories"`
	// projects is the number of Projects.
	// +optional
	Projects int32 `json:"projects"`
	// findings is the number of findings that are not closed.
	// +optional
	Findings int32 `json:"findings"`
	// apiKeys is the number of APIKeys, disabled and expired ones included.
	// +optional
	APIKeys int32 `json:"apiKeys"`
}

// OrganizationStatus is what the controllers observe of an organization.
type OrganizationStatus struct {
	// observedGeneration is the metadata.generation that this status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// namespace holds the organization's resources; empty until it is adopted.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// counts of what the organization has.
	// +optional
	Counts OrganizationCounts `json:"counts"`
	// conditions of the organization: Ready, Stalled, QuotaExceeded.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=4
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
}

// Organization owns the namespace org-<name> and everything of the API group in it. Its
// name is the REST API's organization_id.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=org,categories=appsec
// +kubebuilder:printcolumn:name="Display Name",type=string,JSONPath=`.spec.displayName`
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.status.namespace`
// +kubebuilder:printcolumn:name="Repos",type=integer,JSONPath=`.status.counts.repositories`
// +kubebuilder:printcolumn:name="Findings",type=integer,JSONPath=`.status.counts.findings`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Projects",type=integer,priority=1,JSONPath=`.status.counts.projects`
// +kubebuilder:printcolumn:name="Keys",type=integer,priority=1,JSONPath=`.status.counts.apiKeys`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:selectablefield:JSONPath=`.status.namespace`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 59 && !self.metadata.name.contains('.')",message="metadata.name must be at most 59 characters and hold no dot: it becomes the namespace org-<name>"
type Organization struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`
	// spec is what is declared.
	// +optional
	Spec OrganizationSpec `json:"spec,omitzero"`
	// status is what the controllers observe.
	// +optional
	Status OrganizationStatus `json:"status,omitzero"`
}

// OrganizationList is a list of Organizations.
//
// +kubebuilder:object:root=true
type OrganizationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Organization `json:"items"`
}
