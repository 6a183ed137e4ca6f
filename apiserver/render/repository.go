package render

import (
	"bytes"
	"cmp"
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
)

// DatedProject is a project with the time to show for its last change.
type DatedProject struct {
	Project   *v1alpha1.Project
	UpdatedAt time.Time
	// JSON is what the repository shows of the project; nil if it is to be rendered.
	JSON []byte
}

// RepositoryJSON renders a repository with its projects, in the order given. It sets their JSON to the part of the
// result that shows them: a repository may have thousands of projects, and is rendered each time one of them changes.
//
// updatedAt is the time to show; see Finding. The same arguments always give the same bytes.
func RepositoryJSON(organization string, r *v1alpha1.Repository, updatedAt time.Time,
	projects []DatedProject) ([]byte, error) {
	joined := NewRepository(r)
	spec := &r.Spec
	commit := valueOf(spec.LastCommit)
	empty, err := encodeNamed("repository", r.Name, repositoryWithProjects{&openapi.Repository{
		Id:                 r.Name,
		OrganizationId:     organization,
		Name:               joined.name,
		FullName:           spec.FullName,
		Provider:           spec.Provider,
		ProviderId:         spec.ProviderID,
		InstallationId:     spec.InstallationID,
		Url:                spec.URL,
		CloneUrl:           spec.CloneURL,
		Description:        spec.Description,
		Summary:            spec.Summary,
		DefaultBranchName:  spec.DefaultBranch,
		ScanBranch:         spec.ScanBranch,
		Private:            spec.Private,
		Archived:           spec.Archived,
		CastScanEnabled:    spec.ScanEnabled,
		Languages:          languages(spec.Languages),
		Size:               spec.Size,
		LastCommitHash:     commit.Hash,
		LastCommitHashLink: commit.Link,
		LastCommittedAt:    optionalSecond(commit.CommittedAt),
		LastScannedAt:      optionalSecond(r.Status.LastScannedAt),
		PackageFindings:    r.Status.Counts.Package,
		SecretFindings:     r.Status.Counts.Secret,
		CreatedAt:          second(r.CreationTimestamp.Time),
		UpdatedAt:          second(updatedAt),
	}, []repositoryProject{}})
	if err != nil {
		return nil, err
	}
	return withProjects(empty, organization, projects, joined)
}

// repositoryWithProjects is openapi.Repository; its own member is the one that is encoded, as the last.
type repositoryWithProjects struct {
	*openapi.Repository

	Projects []repositoryProject `json:"projects"`
}

// withProjects inserts the projects into the JSON of a repository without projects.
func withProjects(empty []byte, organization string, projects []DatedProject, joined *Repository) ([]byte, error) {
	size := len(empty)
	for i := range projects {
		p := &projects[i]
		if p.JSON == nil {
			var err error
			shown := projectInRepository(organization, p.Project, p.UpdatedAt, joined)
			if p.JSON, err = encodeNamed("project", p.Project.Name, shown); err != nil {
				return nil, err
			}
		}
		size += len(",") + len(p.JSON)
	}
	end := []byte("]}")
	out := append(make([]byte, 0, size), bytes.TrimSuffix(empty, end)...)
	for i := range projects {
		if i > 0 {
			out = append(out, ',')
		}
		begin := len(out)
		out = append(out, projects[i].JSON...)
		projects[i].JSON = out[begin:len(out):len(out)]
	}
	return append(out, end...), nil
}

// ProjectJSON renders a single project. repository is what is shown of its repository; nil if that does not
// exist.
func ProjectJSON(organization string, p *v1alpha1.Project, updatedAt time.Time,
	repository *Repository) ([]byte, error) {
	return encodeNamed("project", p.Name, project(organization, p, updatedAt, repository))
}

func project(organization string, p *v1alpha1.Project, updatedAt time.Time, repository *Repository) openapi.Project {
	repository = cmp.Or(repository, noRepository)
	spec, user, effective := &p.Spec, &p.Spec.User, p.Spec.InEffect()
	scan := valueOf(p.Status.LastScan)
	return openapi.Project{
		Id:                      p.Name,
		OrganizationId:          organization,
		Owner:                   spec.Owner,
		Provider:                repository.provider,
		Purpose:                 spec.Purpose,
		RelativePath:            spec.RelativePath,
		Summary:                 effective.Summary,
		Evidence:                spec.Evidence,
		DependenciesFile:        spec.DependenciesFile,
		BusinessCriticality:     enum[openapi.BusinessCriticality](effective.BusinessCriticality),
		Exposure:                enum[openapi.Exposure](effective.Exposure),
		UserBusinessCriticality: enum[openapi.BusinessCriticality](user.BusinessCriticality),
		UserExposure:            enum[openapi.Exposure](user.Exposure),
		UserSummary:             user.Summary,
		Deployments:             deployments(spec.Deployments),
		Enabled:                 p.IsEnabled(),
		FileExtensions:          stringsOf(spec.FileExtensions),
		Frameworks:              stringsOf(spec.Frameworks),
		Languages:               stringsOf(spec.Languages),
		SensitiveDataTypes:      stringsOf(spec.SensitiveDataTypes),
		Components: convert(spec.Components, func(c v1alpha1.ProjectComponent) openapi.ProjectComponent {
			return openapi.ProjectComponent{Criticality: c.Criticality, Description: c.Description, FolderName: c.FolderName,
				Type: c.Type}
		}),
		Size:            spec.Size,
		FindingsCount:   p.Status.FindingsCount,
		LastScanId:      scan.ID,
		LastScanStatus:  enum[openapi.ScanStatus](strings.ToLower(string(scan.Status))),
		LastScannedAt:   optionalSecond(p.Status.LastScannedAt),
		LastCommittedAt: optionalSecond(spec.LastCommittedAt),
		CreatedAt:       second(p.CreationTimestamp.Time),
		UpdatedAt:       second(updatedAt),
		Repo:            openapi.ProjectRepo{Id: string(spec.RepositoryRef.Name), Name: repository.name, Url: repository.url},
	}
}

// repositoryProject is openapi.RepositoryProject in two parts. They have no member in common: JSON would omit it.
type repositoryProject struct {
	openapi.Project
	openapi.RepositoryProjectDetails
}

func projectInRepository(organization string, p *v1alpha1.Project, updatedAt time.Time,
	repository *Repository) repositoryProject {
	spec, scanner := &p.Spec, &p.Spec.Scanner
	return repositoryProject{project(organization, p, updatedAt, repository), openapi.RepositoryProjectDetails{
		CastScanEnabled:            repository.scanEnabled,
		DeploymentUsage:            spec.DeploymentUsage,
		HasCustomMetadata:          spec.User != v1alpha1.ProjectAssessment{},
		PrimaryFramework:           spec.PrimaryFramework,
		PrimaryLanguage:            spec.PrimaryLanguage,
		ScannerBusinessCriticality: enum[openapi.BusinessCriticality](scanner.BusinessCriticality),
		ScannerExposure:            enum[openapi.Exposure](scanner.Exposure),
		ScannerSummary:             scanner.Summary,
	}}
}

func deployments(of map[string]v1alpha1.DeploymentTarget) map[string]string {
	out := make(map[string]string, len(of))
	for environment, target := range of {
		out[environment] = string(target)
	}
	return out
}

// stringsOf never returns nil, which would be shown as null.
func stringsOf[T ~string](in []T) []string {
	return convert(in, func(text T) string { return string(text) })
}

// languages returns the bytes of code by language. A negative count, stored before the schema refused it, is
// shown as zero.
func languages(stored map[string]int64) map[string]int64 {
	shown := make(map[string]int64, len(stored))
	for name, count := range stored {
		shown[name] = max(0, count)
	}
	return shown
}
