package dataset

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// makeRepositories makes repositories and their projects, and counts the findings of each.
func (d *Data) makeRepositories() {
	n := max(minRepositories, d.options.Findings/findingsPerRepository)
	for i := range n {
		repository := d.repository(i)
		d.Repositories = append(d.Repositories, repository)
		for j := range 1 + i%projectsPerRepository {
			d.Projects = append(d.Projects, d.project(repository, j))
			repository.Status.Projects++
		}
	}
	d.count()
	for _, repository := range d.Repositories {
		repository.Status.Conditions = ready(v1alpha1.NewTime(repository.CreationTimestamp.Time),
			"The status is that of the spec.")
		settle(&repository.ObjectMeta, "kubectl", repository.Spec, repository.Status)
	}
	for _, project := range d.Projects {
		project.Status.Conditions = ready(v1alpha1.NewTime(project.CreationTimestamp.Time), "The status is that of the spec.")
		settle(&project.ObjectMeta, "kubectl", project.Spec, project.Status)
	}
}

func (d *Data) repository(i int) *v1alpha1.Repository {
	r := dice("repository", i)
	name := fmt.Sprintf("%s-%d", pick(r, "payments", "orders", "accounts", "search", "billing", "notifications", "identity",
		"storefront"), i)
	committed, created := moment(r, d.options.Now), moment(r, d.options.Now)
	hash := sha(r)
	return &v1alpha1.Repository{
		TypeMeta:   typeMeta("Repository"),
		ObjectMeta: d.meta("Repository", name, created),
		Spec: v1alpha1.RepositorySpec{
			Provider: "github", URL: "https://code.example.org/acme/" + name, CloneURL: "https://code.example.org/acme/" + name +
				".git",
			FullName: "acme/" + name, Description: "What customers see of " + name +
				", and the jobs behind it.", DefaultBranch: "main", ScanBranch: "main",
			Private: chance(r, 80), ProviderID: fmt.Sprint(100_000 + i), InstallationID: "4711",
			ScanEnabled: true, Size: r.Int64N(1 << 30),
			Languages: map[string]int64{"Go": r.Int64N(1 << 22), "TypeScript": r.Int64N(1 << 21),
				"Dockerfile": r.Int64N(1 << 12)},
			Summary: "A service with an HTTP interface, a queue of jobs and a database of its own.",
			LastCommit: &v1alpha1.Commit{Hash: hash, Link: "https://code.example.org/acme/" + name + "/commit/" + hash,
				CommittedAt: &committed},
		},
		Status: v1alpha1.RepositoryStatus{ObservedGeneration: 1, UpdatedAt: &created},
	}
}

func (d *Data) project(repository *v1alpha1.Repository, i int) *v1alpha1.Project {
	d.projects++
	r := dice("project", d.projects)
	created, part := v1alpha1.NewTime(repository.CreationTimestamp.Time), pick(r, "api", "worker", "web", "migrations")
	assessment := v1alpha1.ProjectAssessment{
		BusinessCriticality: pick(r, v1alpha1.BusinessCriticality("high"), "medium", "low"),
		Exposure:            pick(r, v1alpha1.Exposure("public"), "internal", "private"),
		Summary:             "Takes requests, checks them and puts them into the queue.",
	}
	return &v1alpha1.Project{
		TypeMeta:   typeMeta("Project"),
		ObjectMeta: d.meta("Project", fmt.Sprintf("%s-%s-%d", repository.Name, part, i), created),
		Spec: v1alpha1.ProjectSpec{
			RepositoryRef: v1alpha1.RepositoryReference{Name: v1alpha1.ResourceName(repository.Name)},
			DisplayName:   repository.Name + " " + part, RelativePath: "services/" + part, Scanner: assessment,
			Owner: pick(r, "team-payments", "team-platform", "team-web"), PrimaryLanguage: "Go", PrimaryFramework: "net/http",
			Languages: []v1alpha1.ShortText{"Go", "SQL"}, Frameworks: []v1alpha1.ShortText{"net/http"}, Size: r.Int64N(1 << 26),
		},
		Status: v1alpha1.ProjectStatus{
			ObservedGeneration: 1, UpdatedAt: &created,
			BusinessCriticality: assessment.BusinessCriticality, Exposure: assessment.Exposure, Summary: assessment.Summary,
		},
	}
}

// count fills in the numbers of open findings.
func (d *Data) count() {
	repositories, projects := map[string]*v1alpha1.Repository{}, map[string]*v1alpha1.Project{}
	for _, repository := range d.Repositories {
		repositories[repository.Name] = repository
	}
	for _, project := range d.Projects {
		projects[project.Name] = project
	}
	for i := range d.options.Findings {
		spec := &d.declare(i).Spec
		if spec.Closed != nil {
			continue
		}
		projects[string(spec.ProjectRef.Name)].Status.FindingsCount++
		counts := &repositories[string(spec.RepositoryRef.Name)].Status.Counts
		counts.Findings++
		switch spec.Category {
		case v1alpha1.CategoryCode:
			counts.Code++
		case v1alpha1.CategoryPackage:
			counts.Package++
		case v1alpha1.CategorySecret:
			counts.Secret++
		}
	}
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind}
}

func (d *Data) meta(kind, name string, created v1alpha1.Time) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: d.options.Namespace, Name: name, UID: uid(d.options.Namespace, kind, name),
		CreationTimestamp: metav1.NewTime(created.Time), Generation: 1,
	}
}

// settle adds the metadata that the API server and the controllers write.
func settle(meta *metav1.ObjectMeta, manager string, spec, status any) {
	at := v1alpha1.NewTime(meta.CreationTimestamp.Time)
	meta.Finalizers = []string{v1alpha1.CleanupFinalizer}
	meta.ManagedFields = []metav1.ManagedFieldsEntry{applied(manager, at).entry("spec", "", spec),
		observed(at).entry("status", "", status)}
}
