package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BusinessCriticality rates how much the business depends on a project.
//
// +kubebuilder:validation:Enum=critical;high;medium;low
type BusinessCriticality string

// Exposure is who can reach a running project.
//
// +kubebuilder:validation:Enum=public;internal;private
type Exposure string

// ProjectSpec describes a project: a part of a repository that is built and deployed as a unit.
//
// +kubebuilder:validation:XValidation:rule="self.repositoryRef == oldSelf.repositoryRef",message="spec.repositoryRef is immutable"
type ProjectSpec struct {
	// repositoryRef names the Repository that the project is part of. Immutable.
	// +required
	RepositoryRef RepositoryReference `json:"repositoryRef"`
	// displayName is the name shown to people, for example "Payments API". At most 200 characters.
	// +kubebuilder:validation:MaxLength=200
	// +optional
	DisplayName string `json:"displayName,omitempty"`
	// relativePath is the project's folder, relative to the root of the repository, for example
	// "services/api", without "..". Empty: the whole repository. At most 1024 characters.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule=`!self.trim().matches(r'(^|[/\\])[.][.]([/\\]|$)')`,message="relativePath must be a folder in the repository, for example services/api, without .."
	// +optional
	RelativePath string `json:"relativePath,omitempty"`
	// enabled tells clients whether the project should be scanned. Imports ignore it. Absent means true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// scanner holds the scanners' assessment of the project.
	// +optional
	Scanner ProjectAssessment `json:"scanner,omitzero"`
	// user holds people's assessment of the project. Each field takes precedence over the
	// scanner's. Changing it requires the verb triage on projects.
	// +optional
	User ProjectAssessment `json:"user,omitzero"`
	// owner is the person or team responsible for the project, for example "team-payments". At most
	// 256 characters.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Owner string `json:"owner,omitempty"`
	// purpose describes what the project is for, for example "Takes payments." At most 4096
	// characters.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Purpose string `json:"purpose,omitempty"`
	// evidence explains why scanners consider the folder a project, for example "it has a go.mod".
	// At most 4096 characters.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Evidence string `json:"evidence,omitempty"`
	// dependenciesFile is the path of the file that lists the dependencies, for example
	// "services/api/go.mod". At most 1024 characters.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	DependenciesFile string `json:"dependenciesFile,omitempty"`
	// deployments maps an environment to where the project runs in it, for example production:
	// eu-west-1. At most 32 environments, each with a name of at most 64 characters.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(name, size(name) <= 64)",message="a deployment's name is at most 64 characters"
	// +optional
	Deployments map[string]DeploymentTarget `json:"deployments,omitempty"`
	// deploymentUsage describes how the project is deployed, for example "container behind the
	// gateway". At most 1024 characters.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	DeploymentUsage string `json:"deploymentUsage,omitempty"`
	// primaryFramework is the main framework of the code, for example "Gin". At most 64 characters.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	PrimaryFramework string `json:"primaryFramework,omitempty"`
	// primaryLanguage is the main language of the code, for example "Go". At most 64 characters.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	PrimaryLanguage string `json:"primaryLanguage,omitempty"`
	// frameworks of the code, for example [Gin, gRPC]. At most 64.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Frameworks []ShortText `json:"frameworks,omitempty"`
	// languages of the code, for example [Go, SQL]. At most 64.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Languages []ShortText `json:"languages,omitempty"`
	// fileExtensions that occur in the folder, for example [.go, .sql]. At most 128.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +optional
	FileExtensions []ShortText `json:"fileExtensions,omitempty"`
	// sensitiveDataTypes that the project handles, for example [email address]. At most 64.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	SensitiveDataTypes []ShortText `json:"sensitiveDataTypes,omitempty"`
	// components are the parts of the project. At most 32.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Components []ProjectComponent `json:"components,omitempty"`
	// size of the folder in bytes, 0 or more.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Size int64 `json:"size,omitempty"`
	// lastCommittedAt is the time of the last commit that changed the folder, in RFC 3339.
	// +optional
	LastCommittedAt *Time `json:"lastCommittedAt,omitempty"`
}

// ShortText is a word or two.
//
// +kubebuilder:validation:MaxLength=64
type ShortText string

// DeploymentTarget is where a project runs in one environment.
//
// +kubebuilder:validation:MaxLength=512
type DeploymentTarget string

// ProjectAssessment is an assessment of a project's importance.
type ProjectAssessment struct {
	// businessCriticality rates how much the business depends on the project: critical, high,
	// medium or low.
	// +optional
	BusinessCriticality BusinessCriticality `json:"businessCriticality,omitempty"`
	// exposure states who can reach the running project: public, internal or private.
	// +optional
	Exposure Exposure `json:"exposure,omitempty"`
	// summary describes what the project does. At most 8192 characters.
	// +kubebuilder:validation:MaxLength=8192
	// +optional
	Summary string `json:"summary,omitempty"`
}

// ProjectComponent is a part of a project.
type ProjectComponent struct {
	// criticality of the component from 0 (none) to 10 (highest).
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	// +optional
	Criticality int32 `json:"criticality,omitempty"`
	// description of the component. At most 1024 characters.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`
	// folderName is the component's folder within the project, for example "internal/ledger". At
	// most 512 characters.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	FolderName string `json:"folderName,omitempty"`
	// type of component, for example "api". At most 64 characters.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Type string `json:"type,omitempty"`
}

// ProjectLastScan is the scan of a project that was started last.
type ProjectLastScan struct {
	// id is the name of the Scan.
	// +kubebuilder:validation:MaxLength=253
	// +required
	ID string `json:"id"`
	// status is the phase of the Scan: Running, Completed or Failed.
	// +required
	Status ScanPhase `json:"status"`
}

// ProjectStatus is what the controllers observe of a project.
type ProjectStatus struct {
	// observedGeneration is the metadata.generation that the status describes. If it is smaller
	// than the current one, the status is not up to date yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// businessCriticality is the effective value: the user's, else the scanner's.
	// +optional
	BusinessCriticality BusinessCriticality `json:"businessCriticality,omitempty"`
	// exposure is the effective value: the user's, else the scanner's.
	// +optional
	Exposure Exposure `json:"exposure,omitempty"`
	// summary is the effective value: the user's, else the scanner's.
	// +kubebuilder:validation:MaxLength=8192
	// +optional
	Summary string `json:"summary,omitempty"`
	// findingsCount is the number of findings that are not closed.
	// +optional
	FindingsCount int32 `json:"findingsCount"`
	// lastScan is the scan that started last.
	// +optional
	LastScan *ProjectLastScan `json:"lastScan,omitempty"`
	// lastScannedAt is when the last successful scan was completed.
	// +optional
	LastScannedAt *Time `json:"lastScannedAt,omitempty"`
	// updatedAt is when the spec last changed, to the second. It never goes back.
	// +optional
	UpdatedAt *Time `json:"updatedAt,omitempty"`
	// removal is the progress of deleting the project's findings and scans. Absent unless the
	// project is being deleted.
	// +optional
	Removal *RemovalProgress `json:"removal,omitempty"`
	// conditions of the project: Ready, Stalled.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=4
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
}

// Project is a part of a repository that is built and deployed as a unit.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=proj,categories=appsec
// +kubebuilder:printcolumn:name="Repository",type=string,JSONPath=`.spec.repositoryRef.name`
// +kubebuilder:printcolumn:name="Path",type=string,JSONPath=`.spec.relativePath`
// +kubebuilder:printcolumn:name="Criticality",type=string,JSONPath=`.status.businessCriticality`
// +kubebuilder:printcolumn:name="Findings",type=integer,JSONPath=`.status.findingsCount`
// +kubebuilder:printcolumn:name="Last Scan",type=string,JSONPath=`.status.lastScan.status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Display Name",type=string,priority=1,JSONPath=`.spec.displayName`
// +kubebuilder:printcolumn:name="Exposure",type=string,priority=1,JSONPath=`.status.exposure`
// +kubebuilder:printcolumn:name="Owner",type=string,priority=1,JSONPath=`.spec.owner`
// +kubebuilder:printcolumn:name="Left",type=integer,priority=1,JSONPath=`.status.removal.remaining`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:selectablefield:JSONPath=`.spec.repositoryRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.owner`
// +kubebuilder:selectablefield:JSONPath=`.status.businessCriticality`
// +kubebuilder:selectablefield:JSONPath=`.status.exposure`
type Project struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`
	// spec is the desired state.
	// +required
	Spec ProjectSpec `json:"spec"`
	// status is what the controllers observed. Only they write it.
	// +structType=atomic
	// +optional
	Status ProjectStatus `json:"status,omitzero"`
}

// IsEnabled reports whether the project should be scanned.
func (p *Project) IsEnabled() bool { return p.Spec.Enabled == nil || *p.Spec.Enabled }

// InEffect takes each member from the user's assessment if it is set, else from the scanner's.
func (s *ProjectSpec) InEffect() ProjectAssessment {
	return ProjectAssessment{
		BusinessCriticality: cmp.Or(s.User.BusinessCriticality, s.Scanner.BusinessCriticality),
		Exposure:            cmp.Or(s.User.Exposure, s.Scanner.Exposure),
		Summary:             cmp.Or(s.User.Summary, s.Scanner.Summary),
	}
}

// ProjectList is a list of Projects.
//
// +kubebuilder:object:root=true
type ProjectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Project `json:"items"`
}
