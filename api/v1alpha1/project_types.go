package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BusinessCriticality says how much the business depends on a project.
//
// +kubebuilder:validation:Enum=critical;high;medium;low
type BusinessCriticality string

// Exposure says who can reach a project where it runs.
//
// +kubebuilder:validation:Enum=public;internal;private
type Exposure string

// ProjectSpec says what is known of a project: a part of a repository that is built and
// deployed as one.
//
// +kubebuilder:validation:XValidation:rule="self.repositoryRef == oldSelf.repositoryRef",message="spec.repositoryRef is immutable"
type ProjectSpec struct {
	// repositoryRef names the repository that the project is part of. Immutable.
	// +required
	RepositoryRef RepositoryReference `json:"repositoryRef"`
	// displayName is the name that people see.
	// +kubebuilder:validation:MaxLength=200
	// +optional
	DisplayName string `json:"displayName,omitempty"`
	// relativePath is the project's folder in the repository.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	RelativePath string `json:"relativePath,omitempty"`
	// enabled lets the project be scanned. Absent means true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// scanner is what scanners say of the project.
	// +optional
	Scanner ProjectAssessment `json:"scanner,omitzero"`
	// user is what people say of the project; each member comes before the scanner's.
	// +optional
	User ProjectAssessment `json:"user,omitzero"`
	// owner is the person or team that answers for the project.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Owner string `json:"owner,omitempty"`
	// purpose says what the project is for.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Purpose string `json:"purpose,omitempty"`
	// evidence says why scanners took the folder for a project.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Evidence string `json:"evidence,omitempty"`
	// dependenciesFile is the path of the file that lists the dependencies.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	DependenciesFile string `json:"dependenciesFile,omitempty"`
	// deployments maps an environment to where the project runs there.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(name, size(name) <= 64)",message="a deployment's name is at most 64 characters"
	// +optional
	Deployments map[string]DeploymentTarget `json:"deployments,omitempty"`
	// deploymentUsage says how the project is deployed.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	DeploymentUsage string `json:"deploymentUsage,omitempty"`
	// primaryFramework of the code.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	PrimaryFramework string `json:"primaryFramework,omitempty"`
	// primaryLanguage of the code.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	PrimaryLanguage string `json:"primaryLanguage,omitempty"`
	// frameworks of the code.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Frameworks []ShortText `json:"frameworks,omitempty"`
	// languages of the code.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Languages []ShortText `json:"languages,omitempty"`
	// fileExtensions found in the folder.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +optional
	FileExtensions []ShortText `json:"fileExtensions,omitempty"`
	// sensitiveDataTypes that the project handles, for example "email address".
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	SensitiveDataTypes []ShortText `json:"sensitiveDataTypes,omitempty"`
	// components of the project.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Components []ProjectComponent `json:"components,omitempty"`
	// size of the folder in bytes.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Size int64 `json:"size,omitempty"`
	// lastCommittedAt is the time of the last commit that touched the folder.
	// +optional
	LastCommittedAt *Time `json:"lastCommittedAt,omitempty"`
}

// ShortText is a word or two.
//
// +kubebuilder:validation:MaxLength=64
type ShortText string

// DeploymentTarget says where a project runs in one environment.
//
// +kubebuilder:validation:MaxLength=512
type DeploymentTarget string

// ProjectAssessment is an opinion of a project's weight.
type ProjectAssessment struct {
	// businessCriticality says how much the business depends on the project.
	// +optional
	BusinessCriticality BusinessCriticality `json:"businessCriticality,omitempty"`
	// exposure says who can reach the project where it runs.
	// +optional
	Exposure Exposure `json:"exposure,omitempty"`
	// summary says what the project does.
	// +kubebuilder:validation:MaxLength=8192
	// +optional
	Summary string `json:"summary,omitempty"`
}

// ProjectComponent is a part of a project.
type ProjectComponent struct {
	// criticality from 0, none, to 10, the most.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	// +optional
	Criticality int32 `json:"criticality,omitempty"`
	// description for people.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`
	// folderName is the component's folder within the project.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	FolderName string `json:"folderName,omitempty"`
	// type of component, for example "api".
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Type string `json:"type,omitempty"`
}

// ProjectLastScan is the scan of a project that was started last.
type ProjectLastScan struct {
	// id is the Scan's name.
	// +kubebuilder:validation:MaxLength=253
	// +required
	ID string `json:"id"`
	// status is the Scan's phase.
	// +required
	Status ScanPhase `json:"status"`
}

// ProjectStatus is what the controllers observe of a project.
type ProjectStatus struct {
	// observedGeneration is the metadata.generation that this status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// businessCriticality in effect: the user's, else the scanner's.
	// +optional
	BusinessCriticality BusinessCriticality `json:"businessCriticality,omitempty"`
	// exposure in effect: the user's, else the scanner's.
	// +optional
	Exposure Exposure `json:"exposure,omitempty"`
	// summary in effect: the user's, else the scanner's.
	// +kubebuilder:validation:MaxLength=8192
	// +optional
	Summary string `json:"summary,omitempty"`
	// findingsCount is the number of findings that are not closed.
	// +optional
	FindingsCount int32 `json:"findingsCount"`
	// lastScan is the scan that was started last.
	// +optional
	LastScan *ProjectLastScan `json:"lastScan,omitempty"`
	// lastScannedAt is when the last scan that succeeded was completed.
	// +optional
	LastScannedAt *Time `json:"lastScannedAt,omitempty"`
	// updatedAt is when the spec last changed; never goes back.
	// +optional
	UpdatedAt *Time `json:"updatedAt,omitempty"`
	// removal says how far the removal of what belongs to the project is.
	// +optional
	Removal *RemovalProgress `json:"removal,omitempty"`
	// conditions of the project: Ready, Stalled.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=4
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
}

// Project is a part of a repository that is built and deployed as one.
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
	// spec is what is declared.
	// +required
	Spec ProjectSpec `json:"spec"`
	// status is what the controllers observe.
	// +optional
	Status ProjectStatus `json:"status,omitzero"`
}

// IsEnabled reports whether the project may be scanned.
func (p *Project) IsEnabled() bool { return p.Spec.Enabled == nil || *p.Spec.Enabled }

// ProjectList is a list of Projects.
//
// +kubebuilder:object:root=true
type ProjectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Project `json:"items"`
}
