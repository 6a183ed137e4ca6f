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
	deployments := make(map[string]string, len(p.Spec.Deployments))
	for environment, target := range p.Spec.Deployments {
		deployments[environment] = string(target)
	}
	return &Project{
		name:    cmp.Or(p.Spec.DisplayName, p.Spec.RelativePath, p.Name),
		purpose: p.Spec.Purpose,
		context: openapi.FindingProjectContext{
			BusinessCriticality: criticality,
			Deployment:          p.Spec.DeploymentUsage,
			Exposure:            exposure,
			Owner:               p.Spec.Owner,
			SensitiveDataTypes: convert(p.Spec.SensitiveDataTypes,
				func(text v1alpha1.ShortText) string { return string(text) }),
		},
		v1: openapi.FindingV1Project{
			BusinessCriticality: criticality,
			Deployments:         deployments,
			Exposure:            exposure,
			Owner:               p.Spec.Owner,
			Summary:             cmp.Or(user.Summary, scanner.Summary),
		},
	}
}

// Equal reports whether findings show the same of both. Either may be nil.
func (p *Project) Equal(other *Project) bool { return reflect.DeepEqual(p, other) }

// Repository is what findings show of their repository. It is immutable.
type Repository struct {
	name     string
	provider string
	url      string
}

// noRepository stands in until the repository of a finding is created.
var noRepository = &Repository{}

// NewRepository takes from a repository what findings show of it.
func NewRepository(r *v1alpha1.Repository) *Repository {
	fullName := r.Spec.FullName
	return &Repository{
		name:     cmp.Or(fullName[strings.LastIndexByte(fullName, '/')+1:], r.Name),
		provider: r.Spec.Provider,
		url:      r.Spec.URL,
	}
}

// Equal reports whether findings show the same of both. Either may be nil.
func (r *Repository) Equal(other *Repository) bool { return reflect.DeepEqual(r, other) }
