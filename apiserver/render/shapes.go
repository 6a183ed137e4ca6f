package render

import "time"

// The shapes of the REST contract beside those of findings. A pointer is a member that may be
// null; everything else has an empty value of its own.

type repositoryShape struct {
	ID                 string           `json:"id"`
	OrganizationID     string           `json:"organization_id"`
	Name               string           `json:"name"`
	FullName           string           `json:"full_name"`
	Provider           string           `json:"provider"`
	ProviderID         string           `json:"provider_id"`
	InstallationID     string           `json:"installation_id"`
	URL                string           `json:"url"`
	CloneURL           string           `json:"clone_url"`
	Description        string           `json:"description"`
	Summary            string           `json:"summary"`
	DefaultBranchName  string           `json:"default_branch_name"`
	ScanBranch         string           `json:"scan_branch"`
	Private            bool             `json:"private"`
	Archived           bool             `json:"archived"`
	CastScanEnabled    bool             `json:"cast_scan_enabled"`
	Languages          map[string]int64 `json:"languages"`
	Size               int64            `json:"size"`
	LastCommitHash     string           `json:"last_commit_hash"`
	LastCommitHashLink string           `json:"last_commit_hash_link"`
	LastCommittedAt    *time.Time       `json:"last_committed_at"`
	LastScannedAt      *time.Time       `json:"last_scanned_at"`
	PackageFindings    int32            `json:"package_findings"`
	SecretFindings     int32            `json:"secret_findings"`
	CreatedAt          time.Time        `json:"created_at"`
	UpdatedAt          time.Time        `json:"updated_at"`

	Projects []projectInRepositoryShape `json:"projects"`
}

// projectShape is a project on its own.
type projectShape struct {
	ID                      string            `json:"id"`
	OrganizationID          string            `json:"organization_id"`
	Owner                   string            `json:"owner"`
	Provider                string            `json:"provider"`
	Purpose                 string            `json:"purpose"`
	RelativePath            string            `json:"relative_path"`
	Summary                 string            `json:"summary"`
	Evidence                string            `json:"evidence"`
	DependenciesFile        string            `json:"dependencies_file"`
	BusinessCriticality     *string           `json:"business_criticality"`
	Exposure                *string           `json:"exposure"`
	UserBusinessCriticality *string           `json:"user_business_criticality"`
	UserExposure            *string           `json:"user_exposure"`
	UserSummary             string            `json:"user_summary"`
	Deployments             map[string]string `json:"deployments"`
	Enabled                 bool              `json:"enabled"`
	FileExtensions          []string          `json:"file_extensions"`
	Frameworks              []string          `json:"frameworks"`
	Languages               []string          `json:"languages"`
	SensitiveDataTypes      []string          `json:"sensitive_data_types"`
	Components              []componentShape  `json:"components"`
	Size                    int64             `json:"size"`
	FindingsCount           int32             `json:"findings_count"`
	LastScanID              string            `json:"last_scan_id"`
	LastScanStatus          *string           `json:"last_scan_status"`
	LastScannedAt           *time.Time        `json:"last_scanned_at"`
	LastCommittedAt         *time.Time        `json:"last_committed_at"`
	CreatedAt               time.Time         `json:"created_at"`
	UpdatedAt               time.Time         `json:"updated_at"`
	Repo                    projectsRepo      `json:"repo"`
}

// projectInRepositoryShape is a project as an item of a repository's projects.
type projectInRepositoryShape struct {
	projectShape

	CastScanEnabled            bool    `json:"cast_scan_enabled"`
	DeploymentUsage            string  `json:"deployment_usage"`
	HasCustomMetadata          bool    `json:"has_custom_metadata"`
	PrimaryFramework           string  `json:"primary_framework"`
	PrimaryLanguage            string  `json:"primary_language"`
	ScannerBusinessCriticality *string `json:"scanner_business_criticality"`
	ScannerExposure            *string `json:"scanner_exposure"`
	ScannerSummary             string  `json:"scanner_summary"`
}

type componentShape struct {
	Criticality int32  `json:"criticality"`
	Description string `json:"description"`
	FolderName  string `json:"folder_name"`
	Type        string `json:"type"`
}

type projectsRepo struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	URL  string `json:"url"`
}

type reviewShape struct {
	ID               string     `json:"id"`
	Provider         string     `json:"provider"`
	RepoID           string     `json:"repo_id"`
	RepoName         string     `json:"repo_name"`
	RepoOwner        string     `json:"repo_owner"`
	PRNumber         int32      `json:"pr_number"`
	PRTitle          string     `json:"pr_title"`
	PRAuthor         string     `json:"pr_author"`
	PRStatus         string     `json:"pr_status"`
	OpenIssueCount   int32      `json:"open_issue_count"`
	OpenHighCount    int32      `json:"open_high_count"`
	OpenMediumCount  int32      `json:"open_medium_count"`
	OpenLowCount     int32      `json:"open_low_count"`
	ClosedIssueCount int32      `json:"closed_issue_count"`
	LastReviewAt     *time.Time `json:"last_review_at"`
	CreatedAt        time.Time  `json:"created_at"`
	UpdatedAt        time.Time  `json:"updated_at"`
}

type reviewIssueShape struct {
	ID               string     `json:"id"`
	ReviewID         string     `json:"review_id"`
	Title            string     `json:"title"`
	Description      string     `json:"description"`
	Severity         string     `json:"severity"`
	Status           string     `json:"status"`
	Provider         string     `json:"provider"`
	RepoID           string     `json:"repo_id"`
	RepoName         string     `json:"repo_name"`
	RepoOwner        string     `json:"repo_owner"`
	PRNumber         int32      `json:"pr_number"`
	FilePath         string     `json:"file_path"`
	LineNumber       int32      `json:"line_number"`
	FileLocationLink string     `json:"file_location_link"`
	CommitSHA        string     `json:"commit_sha"`
	CommitLink       string     `json:"commit_link"`
	SeenInCommits    []string   `json:"seen_in_commits"`
	FirstSeenAt      *time.Time `json:"first_seen_at"`
	LastSeenAt       *time.Time `json:"last_seen_at"`
	ResolvedAt       *time.Time `json:"resolved_at"`
	ResolvedBy       string     `json:"resolved_by"`
	CreatedAt        time.Time  `json:"created_at"`
	UpdatedAt        time.Time  `json:"updated_at"`
}
