package render

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
)

// Organization is what findings show of their organization. It is immutable.
type Organization struct{ json []byte }

// NewOrganization returns what findings show of the organization with that name.
func NewOrganization(name string) *Organization { return &Organization{json: mustEncode(name)} }

// Project is what findings show of their project, as JSON. It is immutable.
type Project struct {
	// v1 is the member of shape v1, words are the members of shape v2 after the project's id.
	v1, words []byte
	owner     string
}

// noProject is used until the project of a finding is created.
var noProject = newProject("", "",
	openapi.FindingProjectContext{SensitiveDataTypes: []string{}},
	openapi.FindingV1Project{Deployments: map[string]string{}})

func newProject(name, purpose string, context openapi.FindingProjectContext, v1 openapi.FindingV1Project) *Project {
	return &Project{
		v1:    mustEncode(v1),
		words: slices.Concat(members("name", name, "purpose", purpose), []byte(`,"context":`), mustEncode(context)),
		owner: context.Owner,
	}
}

// members returns the text members of an object, without its braces.
func members(namesAndValues ...string) []byte {
	var out []byte
	for i, text := range namesAndValues {
		switch {
		case i == 0:
		case i%2 == 0:
			out = append(out, ',')
		default:
			out = append(out, ':')
		}
		out = append(out, mustEncode(text)...)
	}
	return out
}

// NewProject returns what findings show of a project. The effective assessment comes from spec, not from
// status, so that it is never older than the rest.
func NewProject(p *v1alpha1.Project) *Project {
	effective := p.Spec.InEffect()
	criticality := enum[openapi.BusinessCriticality](effective.BusinessCriticality)
	exposure := enum[openapi.Exposure](effective.Exposure)
	return newProject(cmp.Or(p.Spec.DisplayName, p.Spec.RelativePath, p.Name), p.Spec.Purpose,
		openapi.FindingProjectContext{
			BusinessCriticality: criticality,
			Deployment:          p.Spec.DeploymentUsage,
			Exposure:            exposure,
			Owner:               p.Spec.Owner,
			SensitiveDataTypes:  stringsOf(p.Spec.SensitiveDataTypes),
		},
		openapi.FindingV1Project{
			BusinessCriticality: criticality,
			Deployments:         deployments(p.Spec.Deployments),
			Exposure:            exposure,
			Owner:               p.Spec.Owner,
			Summary:             effective.Summary,
		})
}

// Owner returns the project's owner; "" if the project does not exist or has none.
func (p *Project) Owner() string {
	if p == nil {
		return ""
	}
	return p.owner
}

// Equal reports whether findings show the same of both projects. Either may be nil.
func (p *Project) Equal(other *Project) bool {
	if p == nil || other == nil {
		return p == other
	}
	return bytes.Equal(p.v1, other.v1) && bytes.Equal(p.words, other.words)
}

// Repository is what findings, projects, reviews and review issues show of their repository.
// It is immutable.
type Repository struct {
	name        string
	owner       string
	provider    string
	url         string
	scanEnabled bool

	// urlJSON is the member of shape v1 of findings, words are the members of shape v2 after the repository's
	// id.
	urlJSON, words []byte
}

// noRepository is used until a referenced repository is created.
var noRepository = newRepository(Repository{})

// NewRepository returns what other objects show of a repository.
func NewRepository(r *v1alpha1.Repository) *Repository {
	owner, name := splitFullName(r.Spec.FullName)
	return newRepository(Repository{
		name:        cmp.Or(name, r.Name),
		owner:       owner,
		provider:    r.Spec.Provider,
		url:         r.Spec.URL,
		scanEnabled: r.Spec.ScanEnabled,
	})
}

func newRepository(r Repository) *Repository {
	r.urlJSON = mustEncode(r.url)
	r.words = members("name", r.name, "provider", r.provider, "url", r.url)
	return &r
}

// splitFullName splits at the last slash: an owner may be a nested group.
func splitFullName(fullName string) (owner, name string) {
	if slash := strings.LastIndexByte(fullName, '/'); slash >= 0 {
		return fullName[:slash], fullName[slash+1:]
	}
	return "", fullName
}

// Name returns the name shown.
func (r *Repository) Name() string {
	if r == nil {
		return ""
	}
	return r.name
}

// Equal reports whether other objects show the same of both repositories. Either may be nil.
func (r *Repository) Equal(other *Repository) bool {
	if r == nil || other == nil {
		return r == other
	}
	return r.name == other.name && r.owner == other.owner && r.provider == other.provider &&
		r.url == other.url && r.scanEnabled == other.scanEnabled
}
