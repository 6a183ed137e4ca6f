package render

import (
	"cmp"
	"reflect"
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
)

// Project is what findings show of their project. It is immutable.
type Project struct {
	name    string
	purpose string
	context openapi.FindingProjectContext
	v1      openapi.FindingV1Project
}

// noProject stands in until the project of a finding is created.
var noProject = &Project{
	context: openapi.FindingProjectContext{SensitiveDataTypes: []string{}},
	v1:      openapi.FindingV1Project{Deployments: map[string]string{}},
}

// NewProject takes from a project what findings show of it. The effective assessment comes
// from spec, not from status, so that it is never older than the rest.
func NewProject(p *v1alpha1.Project) *Project {
	user, scanner := &p.Spec.User, &p.Spec.Scanner
	criticality := word[openapi.BusinessCriticality](cmp.Or(user.BusinessCriticality, scanner.BusinessCriticality))
	exposure := word[openapi.Exposure](cmp.Or(user.Exposure, scanner.Exposure))
	return &Project{
		name:    cmp.Or(p.Spec.DisplayName, p.Spec.RelativePath, p.Name),
		purpose: p.Spec.Purpose,
		context: openapi.FindingProjectContext{
			BusinessCriticality: criticality,
			Deployment:          p.Spec.DeploymentUsage,
			Exposure:            exposure,
			Owner:               p.Spec.Owner,
			SensitiveDataTypes:  texts(p.Spec.SensitiveDataTypes),
		},
		v1: openapi.FindingV1Project{
			BusinessCriticality: criticality,
			Deployments:         deployments(p.Spec.Deployments),
			Exposure:            exposure,
			Owner:               p.Spec.Owner,
			Summary:             cmp.Or(user.Summary, scanner.Summary),
		},
	}
}

// Equal reports whether findings show the same of both. Either may be nil.
func (p *Project) Equal(other *Project) bool { return reflect.DeepEqual(p, other) }

// Repository is what findings, projects, reviews and review issues show of their repository.
// It is immutable.
type Repository struct {
	name        string
	owner       string
	provider    string
	url         string
	scanEnabled bool
}

// noRepository stands in until the repository that something names is created.
var noRepository = &Repository{}

// NewRepository takes from a repository what others show of it.
func NewRepository(r *v1alpha1.Repository) *Repository {
	owner, name := splitFullName(r.Spec.FullName)
	return &Repository{
		name:        cmp.Or(name, r.Name),
		owner:       owner,
		provider:    r.Spec.Provider,
		url:         r.Spec.URL,
		scanEnabled: r.Spec.ScanEnabled,
	}
}

// splitFullName splits at the last slash: owners may be groups in groups.
func splitFullName(fullName string) (owner, name string) {
	if slash := strings.LastIndexByte(fullName, '/'); slash >= 0 {
		return fullName[:slash], fullName[slash+1:]
	}
	return "", fullName
}

// Name is the name shown.
func (r *Repository) Name() string {
	if r == nil {
		return ""
	}
	return r.name
}

// Equal reports whether others show the same of both. Either may be nil.
func (r *Repository) Equal(other *Repository) bool {
	if r == nil || other == nil {
		return r == other
	}
	return *r == *other
}
