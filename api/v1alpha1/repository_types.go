package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RepositorySpec describes a code repository.
type RepositorySpec struct {
	// provider hosts the repository, for example "github". At most 63 characters.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Provider string `json:"provider,omitempty"`
	// url is the repository's web page, for example "https://github.com/acme/payments". It must hold
	// no credentials. At most 2048 characters.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="!self.trim().matches('(?i)^([a-z][a-z0-9+.-]*://([^/?#@]*:[^/?#@]*|[^[/?#@]*:[^/?#@]*[^0-9/?#@][^@]*)@|https?://[^/?#]*@)')",message="url must hold no credentials: leave out the password, and over HTTP the user"
	// +optional
	URL string `json:"url,omitempty"`
	// cloneURL is the URL that git clones, for example "https://github.com/acme/payments.git". It
	// must hold no credentials: no password, and over HTTP no user either, because it may be a token.
	// Uploads by full name are matched by the host of url, or else by the host of this one, which may serve
	// only SSH. At most 2048 characters.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="!self.trim().matches('(?i)^([a-z][a-z0-9+.-]*://([^/?#@]*:[^/?#@]*|[^[/?#@]*:[^/?#@]*[^0-9/?#@][^@]*)@|https?://[^/?#]*@)')",message="cloneURL must hold no credentials: leave out the password, and over HTTP the user"
	// +optional
	CloneURL string `json:"cloneURL,omitempty"`
	// fullName is the owner and the name, for example "acme/payments". At most 512 characters.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	FullName string `json:"fullName,omitempty"`
	// description of the repository, as its provider shows it. At most 4096 characters.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Description string `json:"description,omitempty"`
	// defaultBranch is the default branch at the provider, for example "main".
	// +kubebuilder:validation:MaxLength=255
	// +optional
	DefaultBranch string `json:"defaultBranch,omitempty"`
	// scanBranch is the branch that is scanned, for example "main"; "refs/heads/main" is the same branch.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	ScanBranch string `json:"scanBranch,omitempty"`
	// private is true if the provider shows the repository only to its members.
	// +optional
	Private bool `json:"private,omitempty"`
	// archived is true if the repository is read-only at the provider. Imports ignore it.
	// +optional
	Archived bool `json:"archived,omitempty"`
	// installationID is the provider's id of the app installation that reads the repository, for
	// example "48213377".
	// +kubebuilder:validation:MaxLength=128
	// +optional
	InstallationID string `json:"installationID,omitempty"`
	// providerID is the provider's own id of the repository, for example "R_kgDOJ2x9zQ".
	// +kubebuilder:validation:MaxLength=128
	// +optional
	ProviderID string `json:"providerID,omitempty"`
	// scanEnabled tells clients whether the repository should be scanned. Imports ignore it.
	// +optional
	ScanEnabled bool `json:"scanEnabled,omitempty"`
	// languages maps each language to its bytes of code, for example Go: 482133. At most 64
	// languages.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(name, size(name) <= 64)",message="a language's name is at most 64 characters"
	// +kubebuilder:validation:XValidation:rule="self.all(name, self[name] >= 0)",message="a language has 0 bytes of code or more"
	// +optional
	Languages map[string]int64 `json:"languages,omitempty"`
	// size of the repository in bytes, 0 or more.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Size int64 `json:"size,omitempty"`
	// summary describes what the code is for. At most 8192 characters.
	// +kubebuilder:validation:MaxLength=8192
	// +optional
	Summary string `json:"summary,omitempty"`
	// lastCommit is the last commit on the scanned branch.
	// +optional
	LastCommit *Commit `json:"lastCommit,omitempty"`
}

// Commit is a commit of a repository.
type Commit struct {
	// hash of the commit, for example "8f3e1c2d". At most 128 characters.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Hash string `json:"hash,omitempty"`
	// link is the web page of the commit, for example "https://github.com/acme/payments/commit/8f3e1c2d".
	// It must hold no credentials. At most 2048 characters.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="!self.trim().matches('(?i)^([a-z][a-z0-9+.-]*://([^/?#@]*:[^/?#@]*|[^[/?#@]*:[^/?#@]*[^0-9/?#@][^@]*)@|https?://[^/?#]*@)')",message="link must hold no credentials: leave out the password, and over HTTP the user"
	// +optional
	Link string `json:"link,omitempty"`
	// committedAt is the time of the commit, in RFC 3339.
	// +optional
	CommittedAt *Time `json:"committedAt,omitempty"`
}

// RepositoryCounts are numbers of findings that are not closed, by category.
type RepositoryCounts struct {
	// findings is the total number.
	// +optional
	Findings int32 `json:"findings"`
	// code is the number of findings of category Code.
	// +optional
	Code int32 `json:"code"`
	// package is the number of findings of category Package.
	// +optional
	Package int32 `json:"package"`
	// secret is the number of findings of category Secret.
	// +optional
	Secret int32 `json:"secret"`
}

// RepositoryStatus is what the controllers observe of a repository.
type RepositoryStatus struct {
	// observedGeneration is the metadata.generation that the status describes. If it is smaller
	// than the current one, the status is not up to date yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// counts of the repository's findings that are not closed. During an import they are updated
	// once per second.
	// +optional
	Counts RepositoryCounts `json:"counts"`
	// projects is the number of Projects that refer to the repository.
	// +optional
	Projects int32 `json:"projects"`
	// lastScannedAt is when the last successful scan was completed.
	// +optional
	LastScannedAt *Time `json:"lastScannedAt,omitempty"`
	// updatedAt is when the spec last changed, to the second. It never goes back.
	// +optional
	UpdatedAt *Time `json:"updatedAt,omitempty"`
	// removal is the progress of deleting the repository's projects, findings, scans and reviews.
	// Absent unless the repository is being deleted.
	// +optional
	Removal *RemovalProgress `json:"removal,omitempty"`
	// conditions of the repository: Ready, Stalled.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=4
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
}

// Repository is a code repository of the organization whose namespace it is in.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=repo,categories=appsec
// +kubebuilder:printcolumn:name="Full Name",type=string,JSONPath=`.spec.fullName`
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.provider`
// +kubebuilder:printcolumn:name="Projects",type=integer,JSONPath=`.status.projects`
// +kubebuilder:printcolumn:name="Findings",type=integer,JSONPath=`.status.counts.findings`
// +kubebuilder:printcolumn:name="Last Scan",type=date,JSONPath=`.status.lastScannedAt`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Code",type=integer,priority=1,JSONPath=`.status.counts.code`
// +kubebuilder:printcolumn:name="Package",type=integer,priority=1,JSONPath=`.status.counts.package`
// +kubebuilder:printcolumn:name="Secret",type=integer,priority=1,JSONPath=`.status.counts.secret`
// +kubebuilder:printcolumn:name="URL",type=string,priority=1,JSONPath=`.spec.url`
// +kubebuilder:printcolumn:name="Left",type=integer,priority=1,JSONPath=`.status.removal.remaining`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:selectablefield:JSONPath=`.spec.provider`
// +kubebuilder:selectablefield:JSONPath=`.spec.fullName`
// +kubebuilder:selectablefield:JSONPath=`.spec.archived`
// +kubebuilder:selectablefield:JSONPath=`.spec.scanEnabled`
type Repository struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`
	// spec is the desired state.
	// +optional
	Spec RepositorySpec `json:"spec,omitzero"`
	// status is what the controllers observed. Only they write it.
	// +structType=atomic
	// +optional
	Status RepositoryStatus `json:"status,omitzero"`
}

// RepositoryList is a list of Repositories.
//
// +kubebuilder:object:root=true
type RepositoryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Repository `json:"items"`
}
