package provision

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/internal/truncate"
)

const (
	// A name consists of slugLength readable characters and hashLength characters that make it unique.
	slugLength = 40
	hashLength = 10
	// maxDisplayName is the schema's limit.
	maxDisplayName = 200
)

// RepositoryName returns the name of the Repository that an import creates. It is the same for the same site and full
// name, ignoring case, and different for all others.
func RepositoryName(site, fullName string) string {
	return named(fullName, "repository", Fold(site), Fold(fullName))
}

// ProjectName returns the first name to try for the Project that an import creates for a folder of a repository: the
// repository's name for the whole repository.
func ProjectName(repository, folder string) string {
	if folder == "" {
		return repository
	}
	return named(folder, "project", repository, folder)
}

// NextProjectName returns the name to try after one that another project has.
func NextProjectName(repository, folder, taken string) string {
	return named(cmp.Or(folder, repository), "project", repository, folder, taken)
}

// notReadable matches what may not be in the readable part of a name.
var notReadable = regexp.MustCompile(`[^a-z0-9]+`)

// named returns a DNS label that begins with a readable part of the text and ends with a hash of the identity.
func named(text, otherwise string, identity ...string) string {
	slug := strings.Trim(notReadable.ReplaceAllString(Fold(text), "-"), "-")
	slug = strings.TrimRight(slug[:min(len(slug), slugLength)], "-")
	return cmp.Or(slug, otherwise) + "-" + fingerprints.Hash(identity...)[:hashLength]
}

// Repository returns the Repository that an import creates under the name.
func Repository(namespace, name string, facts Facts) *v1alpha1.Repository {
	repository := &v1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.RepositorySpec{
			Provider: facts.Provider, URL: facts.URL, CloneURL: facts.CloneURL, FullName: facts.FullName,
			ScanBranch: facts.Branch, ScanEnabled: true,
		},
	}
	if facts.Commit != "" {
		repository.Spec.LastCommit = &v1alpha1.Commit{Hash: facts.Commit}
	}
	return repository
}

// Project returns the Project that an import creates under the name for a folder of the repository ("" for the whole
// repository). beside holds the patterns in force.
func Project(repository *v1alpha1.Repository, name, folder string, beside Patterns) *v1alpha1.Project {
	shown := cmp.Or(folder, path.Base(cmp.Or(repository.Spec.FullName, name)))
	project := &v1alpha1.Project{
		ObjectMeta: metav1.ObjectMeta{Namespace: repository.Namespace, Name: name},
		Spec: v1alpha1.ProjectSpec{
			RepositoryRef: v1alpha1.RepositoryReference{Name: v1alpha1.ResourceName(repository.Name)},
			RelativePath:  folder, DisplayName: truncate.To(shown, maxDisplayName),
		},
	}
	if len(beside) > 0 {
		project.Annotations = map[string]string{v1alpha1.BesideAnnotation: strings.Join(beside, "\n")}
	}
	return project
}

// ExistingOf returns what Missing needs to know about a project.
func ExistingOf(project *v1alpha1.Project) Existing {
	existing := Existing{Folder: project.Spec.RelativePath}
	if beside := project.Annotations[v1alpha1.BesideAnnotation]; beside != "" {
		patterns := strings.FieldsFunc(beside, func(r rune) bool { return r == '\n' }) // without empty lines
		existing.Beside = patterns[:min(len(patterns), maxPatterns)]
	}
	return existing
}

// isOn reports whether the repository's page is on the host of the facts.
func isOn(r *v1alpha1.RepositorySpec, facts Facts) bool {
	host := hostOf(facts.URL)
	return host != "" && host == hostOf(r.URL)
}

// isClonedFrom reports whether git clones the repository from the host of the facts, which may serve SSH alone.
func isClonedFrom(r *v1alpha1.RepositorySpec, facts Facts) bool {
	host := hostOf(facts.URL)
	return host != "" && host == hostOf(r.CloneURL)
}

// mayBeOn reports whether the repository may be on the site of the facts. An unknown value matches any.
func mayBeOn(r *v1alpha1.RepositorySpec, facts Facts) bool {
	known, given := cmp.Or(hostOf(r.URL), pageHostOf(r.CloneURL)), hostOf(facts.URL)
	if known != "" && given != "" {
		return known == given
	}
	provider := cmp.Or(Fold(r.Provider), providerOf(hostOf(r.CloneURL)))
	return facts.Provider == "" || provider == "" || Fold(facts.Provider) == provider
}

// Find returns the repository of an organization that matches the facts, or nil. It compares the host with that of the
// page; if none matches, with the one that git clones from; if none matches again, it looks for one that may be there:
// whose host is unknown and whose provider is the same. If several match, it returns an error for users.
func Find(repositories []v1alpha1.Repository, facts Facts) (*v1alpha1.Repository, error) {
	for _, matches := range []func(*v1alpha1.RepositorySpec, Facts) bool{isOn, isClonedFrom, mayBeOn} {
		var found *v1alpha1.Repository
		var names []string
		for i := range repositories {
			r := &repositories[i]
			if SameName(r.Spec.FullName, facts.FullName) && matches(&r.Spec, facts) {
				found, names = r, append(names, r.Name)
			}
		}
		switch {
		case len(names) > 1:
			slices.Sort(names)
			return nil, fmt.Errorf("several repositories have the full name %s: %s", quote(facts.FullName),
				strings.Join(names[:min(len(names), 5)], ", "))
		case found != nil:
			return found, nil
		}
	}
	return nil, nil
}
