package v1alpha1

// NamespacePrefix is put before an organization's name to make its namespace's name.
const NamespacePrefix = "org-"

// UploadsServiceAccount is the name, in each organization's namespace, under which the REST facade imports
// uploads. It has only the scanner's role there. No ServiceAccount object is created, so that nobody gets a
// token.
const UploadsServiceAccount = "findings-uploads"

// Annotations that this API group defines.
const (
	// OrganizationUIDAnnotation on a Namespace holds the UID of the Organization that owns
	// it. A namespace without it, or with another's, is never adopted.
	OrganizationUIDAnnotation = GroupName + "/organization-uid"
	// ImporterAnnotation on a Scan names the program that imported and its version, for example
	// "kubectl-findings/1.4.0".
	ImporterAnnotation = GroupName + "/importer"
	// BesideAnnotation on a Project that an import created holds the spec.imports.projects of the Organization at
	// that time, one per line: the folders that they match belong to separate projects, not to this one.
	BesideAnnotation = GroupName + "/beside"
)

// UncountedLabel on a Scan is why it does not count as a scan of the project: UncountedReview or UncountedRefused.
// Imports do not read scans with it. Those that an earlier version recorded do not have it.
const (
	UncountedLabel   = GroupName + "/uncounted"
	UncountedReview  = "review"
	UncountedRefused = "refused"
)

// Labels on the Namespace of an Organization, by which admission policies know what its spec asks for.
const (
	// RequireReasonLabel is "true" with spec.triage.requireReason.
	RequireReasonLabel = GroupName + "/require-reason"
	// ImportsCreateLabel is "false" without spec.imports.create.
	ImportsCreateLabel = GroupName + "/imports-create"
)

// The label and its value on every Namespace, RoleBinding, ServiceAccount and Secret that the
// controllers made.
const (
	ManagedByLabel = "app.kubernetes.io/managed-by"
	ManagedBy      = "findings-operator"
)

// CleanupFinalizer keeps an Organization, a Repository, a Project or a Review until its children are removed.
const CleanupFinalizer = GroupName + "/cleanup"

// The field managers under which this API group's own programs write.
const (
	// ScannerFieldManagerPrefix is the prefix of the tool's name in an importer's field manager.
	ScannerFieldManagerPrefix = "scanner/"
	// APIFieldManager is the REST facade's.
	APIFieldManager = "findings-api"
	// ControllerFieldManager is the controllers'.
	ControllerFieldManager = "findings-controller"
)

// MaxFieldManagerLength is the maximum length of a field manager's name in bytes; the API server refuses more.
const MaxFieldManagerLength = 128

// Level is a scanner's or a person's estimate on a three-step scale. A severity of
// "critical" counts as high in this vocabulary.
//
// +kubebuilder:validation:Enum=high;medium;low
type Level string

// The levels.
const (
	LevelHigh   Level = "high"
	LevelMedium Level = "medium"
	LevelLow    Level = "low"
)

// Effort rates how hard it is to exploit or to fix a problem.
//
// +kubebuilder:validation:Enum=easy;medium;hard
type Effort string

// The efforts.
const (
	EffortEasy   Effort = "easy"
	EffortMedium Effort = "medium"
	EffortHard   Effort = "hard"
)

// ResourceName is the name of a resource in the same namespace: an RFC 1123 subdomain.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
type ResourceName string

// RepositoryReference names a Repository in the same namespace.
type RepositoryReference struct {
	// name of the Repository.
	// +required
	Name ResourceName `json:"name"`
}

// ProjectReference names a Project in the same namespace.
type ProjectReference struct {
	// name of the Project.
	// +required
	Name ResourceName `json:"name"`
}

// SecretReference names a Secret in the same namespace.
type SecretReference struct {
	// name of the Secret.
	// +required
	Name ResourceName `json:"name"`
}

// RateLimit bounds how often a client may call the REST API.
type RateLimit struct {
	// requestsPerMinute is how many requests are allowed within 60 seconds: from 1 to 1000000, for
	// example 600.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	RequestsPerMinute *int32 `json:"requestsPerMinute,omitempty"`
}

// RemovalProgress is the progress of deleting an object's children. It is counted again every 10 seconds, or sooner
// after 5,000 more deletions.
type RemovalProgress struct {
	// observedAt is when the objects were counted.
	// +required
	ObservedAt Time `json:"observedAt"`
	// total is the highest counted number of objects to delete.
	// +optional
	Total int32 `json:"total"`
	// remaining is how many of them still exist.
	// +optional
	Remaining int32 `json:"remaining"`
}
