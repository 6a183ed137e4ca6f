package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Reasons of an Organization's conditions.
const (
	// ReasonNamespaceConflict goes with Ready=False and Stalled=True: a namespace of the organization's name
	// exists and does not belong to the organization.
	ReasonNamespaceConflict = "NamespaceConflict"
	// ReasonNamespaceTerminating goes with Ready=False: the namespace is being removed.
	ReasonNamespaceTerminating = "NamespaceTerminating"
	// ReasonRefused goes with Ready=False: the API server refuses the namespace, or what the organization needs in
	// it.
	ReasonRefused = "Refused"
	// ReasonNotEmpty goes with Ready=False and Stalled=True: the organization is being deleted and still has
	// repositories, projects, findings, scans, reviews, review issues, triage policies or webhook endpoints.
	ReasonNotEmpty = "NotEmpty"
	// ReasonQuotaReached goes with QuotaExceeded=True: the maximum number of objects of a kind exists.
	ReasonQuotaReached = "QuotaReached"
)

// ConditionQuotaExceeded is True while a quota is used up: no more objects of that kind can be created, and
// imports fail. Negative polarity: absent while there is room.
const ConditionQuotaExceeded = "QuotaExceeded"

// RemoveContentsAnnotation on an Organization that is being deleted, with the value "true", deletes everything
// that it holds.
const RemoveContentsAnnotation = GroupName + "/remove-contents"

// OrganizationSpec sets an organization's limits and how long finished objects are kept.
type OrganizationSpec struct {
	// displayName is the name shown to people, for example "Acme Ltd". At most 200 characters.
	// +kubebuilder:validation:MaxLength=200
	// +optional
	DisplayName string `json:"displayName,omitempty"`
	// rateLimit is the limit for each of the organization's API keys that has no limit of its own. Default: 600
	// requests per minute.
	// +optional
	RateLimit *RateLimit `json:"rateLimit,omitempty"`
	// apiKeys limits the organization's API keys.
	// +optional
	APIKeys *OrganizationAPIKeys `json:"apiKeys,omitempty"`
	// retention sets how long finished objects are kept. Fields that are not set keep them forever,
	// except that finished deliveries are kept for a week and finished triage operations for 30 days.
	// +optional
	Retention *Retention `json:"retention,omitempty"`
	// triage sets the requirements for decisions about the organization's findings.
	// +optional
	Triage *OrganizationTriage `json:"triage,omitempty"`
	// quotas limit how many objects of a kind the organization may have. A kind that is not set is
	// not limited. A controller turns them into a ResourceQuota.
	// +optional
	Quotas *OrganizationQuotas `json:"quotas,omitempty"`
	// imports sets which objects an import of scan results may create. Absent: none, and an import into a
	// repository or project that does not exist is refused.
	// +optional
	Imports *OrganizationImports `json:"imports,omitempty"`
}

// OrganizationTriage sets the requirements for decisions about findings and review issues.
type OrganizationTriage struct {
	// requireReason refuses to mute a finding or a review issue without spec.triage.reason, and triage operations that
	// mute without spec.set.reason, over kubectl and REST. Findings and issues that were muted before stay muted until
	// somebody changes their triage. Default: false.
	// +optional
	RequireReason bool `json:"requireReason,omitempty"`
}

// OrganizationImports sets which missing objects an import of scan results may create. Later imports never
// change the created objects.
type OrganizationImports struct {
	// create lets imports create their Repository and its Projects if these do not exist. Default: false.
	// +optional
	Create bool `json:"create,omitempty"`
	// maxRepositories is the number of Repositories of the organization, however created, at which imports create
	// no more. Default: 500.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	// +optional
	MaxRepositories *int32 `json:"maxRepositories,omitempty"`
	// maxProjects is the number of Projects of the organization, however created, at which imports create no more.
	// Default: 2000.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	MaxProjects *int32 `json:"maxProjects,omitempty"`
	// projects are the folders that become separate projects, for example ["services/*", "web"]: a star matches
	// any part of one folder's name. A result belongs to the longest folder that contains its file, and to the
	// project of the whole repository if there is none. Default: each repository is one project. At most 32.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Projects []ProjectPattern `json:"projects,omitempty"`
}

// ProjectPattern names folders, from the root of a repository, by a path in which a star matches any part of
// one folder's name.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:Pattern=`^[^/\\?\[\]\x00-\x1f\x7f]+(/[^/\\?\[\]\x00-\x1f\x7f]+)*$`
// +kubebuilder:validation:XValidation:rule="self.split('/').all(part, part != '.' && part != '..' && !part.contains('**'))",message="must be folders from the root of the repository, for example services/*, without . and .. and with one star at a time"
type ProjectPattern string

// OrganizationQuotas limits how many objects of a kind an organization may have. They become a ResourceQuota in
// its namespace; lowering a limit removes nothing.
type OrganizationQuotas struct {
	// findings is the maximum number of Findings, for example 50000. Closed ones count until
	// retention removes them.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Findings *int64 `json:"findings,omitempty"`
	// repositories is the maximum number of Repositories, for example 500.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Repositories *int64 `json:"repositories,omitempty"`
	// projects is the maximum number of Projects, for example 2000.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Projects *int64 `json:"projects,omitempty"`
	// scans is the maximum number of Scans, for example 5000. Finished ones count until retention removes them. An import
	// creates one per tool, category and analysis.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Scans *int64 `json:"scans,omitempty"`
	// reviews is the maximum number of Reviews, for example 10000.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Reviews *int64 `json:"reviews,omitempty"`
	// reviewIssues is the maximum number of ReviewIssues, resolved ones included, for example
	// 50000.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ReviewIssues *int64 `json:"reviewIssues,omitempty"`
	// triagePolicies is the maximum number of TriagePolicies, expired ones included, for example 100.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TriagePolicies *int64 `json:"triagePolicies,omitempty"`
	// triageOperations is the maximum number of TriageOperations, completed ones included, for example 200.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TriageOperations *int64 `json:"triageOperations,omitempty"`
	// apiKeys is the maximum number of APIKeys, disabled and expired ones included, for example 20.
	// +kubebuilder:validation:Minimum=0
	// +optional
	APIKeys *int64 `json:"apiKeys,omitempty"`
	// webhookEndpoints is the maximum number of WebhookEndpoints, for example 10.
	// +kubebuilder:validation:Minimum=0
	// +optional
	WebhookEndpoints *int64 `json:"webhookEndpoints,omitempty"`
	// webhookDeliveries is the maximum number of WebhookDeliveries, for example 20000. Finished
	// ones count until retention removes them. When the quota is used up, events wait until there
	// is room.
	// +kubebuilder:validation:Minimum=0
	// +optional
	WebhookDeliveries *int64 `json:"webhookDeliveries,omitempty"`
}

// OrganizationAPIKeys bounds an organization's API keys.
type OrganizationAPIKeys struct {
	// maxLifetime is the longest lifetime of a token from its issue: a duration of at least "1m", for example "2160h".
	// Lowering it ends older tokens earlier; raising it extends none that has expired, and none beyond the expiry that it
	// was issued with. Absent: 90 days, unless the key sets spec.expiresAt.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && !self.matches('[ a-gi-lo-rtv-zA-Z]')",message="maxLifetime must be hours, minutes and seconds of at least 1m, for example 2160h"
	// +optional
	MaxLifetime *metav1.Duration `json:"maxLifetime,omitempty"`
	// maxRequestsPerMinute is the highest limit that an API key may have, from 1 to 1000000, for example 1200. It
	// also lowers spec.rateLimit and the default of 600. Absent: a key may set any limit.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	MaxRequestsPerMinute *int32 `json:"maxRequestsPerMinute,omitempty"`
}

// Retention sets how long finished objects are kept.
type Retention struct {
	// closedFindings is how long a closed finding is kept after its closing, or after somebody last decided about it,
	// commented on it or withdrew that, if that is later: a duration in hours, minutes and seconds, for example "8760h";
	// "0s" removes it at once. Absent: forever.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && !self.matches('[ a-gi-lo-rtv-zA-Z]')",message="closedFindings must be hours, minutes and seconds and not negative, for example 8760h for a year"
	// +optional
	ClosedFindings *metav1.Duration `json:"closedFindings,omitempty"`
	// includeTriaged also removes closed findings that a person has muted or commented on. Default: false, they
	// are kept.
	// +optional
	IncludeTriaged bool `json:"includeTriaged,omitempty"`
	// finishedScans is how long a completed or failed scan is kept after its end, for example
	// "2160h". Absent: forever. The last scan of each repository, project, tool, category and
	// analysis is always kept.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && !self.matches('[ a-gi-lo-rtv-zA-Z]')",message="finishedScans must be hours, minutes and seconds and not negative, for example 8760h for a year"
	// +optional
	FinishedScans *metav1.Duration `json:"finishedScans,omitempty"`
	// idleReviews is how long a Review is kept, with its ReviewIssues, after it or one of them last changed, whatever
	// the status of the pull request, for example "4320h". Use at least "1h", because an import may take a while.
	// Absent: forever. A review is always kept while a person's decision or comment about one of its issues exists.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && !self.matches('[ a-gi-lo-rtv-zA-Z]')",message="idleReviews must be hours, minutes and seconds and not negative, for example 8760h for a year"
	// +optional
	IdleReviews *metav1.Duration `json:"idleReviews,omitempty"`
	// finishedDeliveries is how long a delivered or failed webhook delivery is kept after its end,
	// for example "720h". Absent: "168h", a week.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && !self.matches('[ a-gi-lo-rtv-zA-Z]')",message="finishedDeliveries must be hours, minutes and seconds and not negative, for example 8760h for a year"
	// +optional
	FinishedDeliveries *metav1.Duration `json:"finishedDeliveries,omitempty"`
	// finishedOperations is how long a TriageOperation is kept after it has completed or failed, for example "2160h"; from
	// then on it cannot be undone. Absent: "720h", 30 days. One that nobody commits is removed after 24 hours. One that
	// failed before its findings were selected is removed after an hour at the latest.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && !self.matches('[ a-gi-lo-rtv-zA-Z]')",message="finishedOperations must be hours, minutes and seconds and not negative, for example 8760h for a year"
	// +optional
	FinishedOperations *metav1.Duration `json:"finishedOperations,omitempty"`
}

// OrganizationCounts are sums over the organization's namespace.
type OrganizationCounts struct {
	// repositories is the number of Repositories.
	// +optional
	Repositories int32 `json:"repositories"`
	// projects is the number of Projects.
	// +optional
	Projects int32 `json:"projects"`
	// findings is the number of Findings that are not closed.
	// +optional
	Findings int32 `json:"findings"`
	// apiKeys is the number of APIKeys, disabled and expired ones included.
	// +optional
	APIKeys int32 `json:"apiKeys"`
}

// OrganizationStatus is what the controllers observe of an organization.
type OrganizationStatus struct {
	// observedGeneration is the metadata.generation that the status describes. If it is smaller
	// than the current one, the status is not up to date yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// namespace is the name of the namespace that holds the organization's resources, for example
	// "org-acme". Empty until it is adopted.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// counts are the numbers of the organization's objects, updated at most once per second.
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
	// spec is the desired state.
	// +optional
	Spec OrganizationSpec `json:"spec,omitzero"`
	// status is what the controllers observed. Only they write it. Until they have stored one, it is this default:
	// tools that wait for the Organization then see that it is not observed yet.
	// +default={"observedGeneration": -1, "counts": {"repositories": 0, "projects": 0, "findings": 0, "apiKeys": 0}}
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
