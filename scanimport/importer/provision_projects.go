package importer

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/scanimport/provision"
)

// projects finds or creates the projects of the import.
func (p *provisioner) projects(ctx context.Context, batches []*Batch) error {
	if p.place.Project != "" {
		return p.namedProject(ctx)
	}
	var folders []string
	allExist := func(ctx context.Context) (all bool, err error) {
		folders, err = p.missing(ctx, batches)
		return len(folders) == 0, err
	}
	if all, err := allExist(ctx); err != nil || all {
		return err
	}
	return p.createProjectsOnce(ctx, allExist, func(ctx context.Context) error {
		for _, folder := range folders {
			if err := p.createProjectOf(ctx, folder); err != nil {
				return err
			}
		}
		return nil
	})
}

// createProjectsOnce creates missing projects of the repository. Of two imports that do so at the same time, such as
// one that names a project and one that does not, only one creates the project of a folder.
func (p *provisioner) createProjectsOnce(ctx context.Context, allExist func(ctx context.Context) (all bool, err error),
	create func(ctx context.Context) error) error {
	return p.createOnce(ctx, fingerprints.Hash("project", p.found.Repository.Name), allExist, create)
}

// existing lists the projects of the repository, and notes whether it has any. It refuses unreadable ones, whose
// findings would be imported into a second project.
func (p *provisioner) existing(ctx context.Context) ([]v1alpha1.Project, error) {
	list, unreadable, err := Projects(ctx, p.client, p.key(p.found.Repository.Name))
	if err != nil {
		return nil, err
	}
	p.hadProjects = len(list) > 0
	return list, RefuseUnreadable("project", unreadable)
}

// namedProject finds or creates the named project.
func (p *provisioner) namedProject(ctx context.Context) error {
	key := p.key(p.place.Project)
	exists := func(ctx context.Context) (found bool, err error) { return p.findProject(ctx, key) }
	if found, err := exists(ctx); err != nil || found {
		return err
	}
	if err := checkName("project", key); err != nil {
		return err
	}
	return p.createProjectsOnce(ctx, exists, func(ctx context.Context) error { return p.newProject(ctx, key) })
}

// findProject reports whether the project exists.
func (p *provisioner) findProject(ctx context.Context, key client.ObjectKey) (found bool, err error) {
	project := &v1alpha1.Project{}
	found, err = find(ctx, p.client, "project", key, project)
	if found {
		p.found.Projects = append(p.found.Projects, *project)
		err = cmp.Or(err, checkBelongs(project, p.found.Repository.Name, p.place.Repository))
	}
	return found, err
}

// newProject creates the named project. In a repository that has projects, it refuses an unknown name without a folder,
// or with the folder of an existing project: the name is probably misspelt, and all findings would exist twice.
func (p *provisioner) newProject(ctx context.Context, key client.ObjectKey) error {
	folder := provision.Clean(p.place.Folder)
	list, err := p.existing(ctx)
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(list, func(other v1alpha1.Project) bool {
		return folder != "" && folder != provision.Clean(other.Spec.RelativePath)
	})
	if len(others) == 0 {
		return p.createProject(ctx, key.Name, folder)
	}
	staying := slices.IndexFunc(others, func(other v1alpha1.Project) bool { return other.DeletionTimestamp == nil })
	switch {
	case staying < 0:
		return refuseUndescribed("project", key, fmt.Sprintf("the repository %s has the project %s, which is being deleted: "+
			"wait until it is gone", p.found.Repository.Name, others[0].Name))
	case folder == "":
		return refuseUndescribed("project", key, fmt.Sprintf("the repository %s has others, for example %s: to add one, "+
			"give its folder with --project-path (kubectl findings only), create the Project, or set "+
			"spec.imports.projects of the Organization",
			p.found.Repository.Name, others[staying].Name))
	default:
		return refuseUndescribed("project", key, fmt.Sprintf("the folder %s is that of the project %s: name that one, "+
			"or give another folder with --project-path", folder, others[staying].Name))
	}
}

// missing looks up the projects of the repository, and returns the folders of those that the results need in addition.
func (p *provisioner) missing(ctx context.Context, batches []*Batch) ([]string, error) {
	if !p.place.DryRun || len(p.found.Provisioned) == 0 { // a repository that is not created yet has no projects
		list, err := p.existing(ctx)
		if err != nil {
			return nil, err
		}
		p.found.Projects = slices.DeleteFunc(list, func(p v1alpha1.Project) bool { return p.DeletionTimestamp != nil })
	}
	var existing []provision.Existing
	for i := range p.found.Projects {
		existing = append(existing, provision.ExistingOf(&p.found.Projects[i]))
	}
	folders, err := p.place.Patterns.Missing(existing, FilesOf(batches))
	if err != nil {
		return nil, &RefusedError{err.Error()}
	}
	return folders, nil
}

// FilesOf yields the files of all results, "" for a result without one, and one file per scanned folder.
func FilesOf(batches []*Batch) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, b := range batches {
			for _, r := range b.All() {
				if !yield(r.Location.File()) {
					return
				}
			}
			for _, folder := range b.Scanned { // as if it were a file in it
				if !yield(folder + "/*") {
					return
				}
			}
		}
	}
}

// createProject creates the named project, or uses the existing one of that name.
func (p *provisioner) createProject(ctx context.Context, name, folder string) error {
	created, err := p.tryProject(ctx, name, folder)
	if err != nil || created {
		return err
	}
	found, err := p.findProject(ctx, p.key(name)) // another client created it at the same time
	if err == nil && !found {
		err = noSuch("project", p.key(name))
	}
	return err
}

// maxProjectNames bounds the names that are tried for the project of a folder.
const maxProjectNames = 5

// createProjectOf creates the project of a folder under the first of its names that no other project has: a person may
// have moved the project of that name to another folder, or have chosen the name.
func (p *provisioner) createProjectOf(ctx context.Context, folder string) error {
	repository := p.found.Repository
	first := provision.ProjectName(repository.Name, folder)
	wanted := identityOf(provision.Project(repository, first, folder, nil))
	name := first
	for range maxProjectNames {
		created, err := p.tryProject(ctx, name, folder)
		if err != nil || created {
			return err
		}
		existing := &v1alpha1.Project{}
		found, err := find(ctx, p.client, "project", p.key(name), existing)
		isWanted := identityOf(existing) == wanted
		if err != nil && (isWanted || !found) { // another one that is being deleted does not matter
			return err
		}
		if found && isWanted { // another client created it at the same time
			p.found.Projects = append(p.found.Projects, *existing)
			return nil
		}
		name = provision.NextProjectName(repository.Name, folder, name)
	}
	return &RefusedError{fmt.Sprintf("the names that an import would give to the project of the folder %q of repository "+
		"%s are those of other projects (%s and %d more): create a Project with another name, and with that folder as "+
		"spec.relativePath", cmp.Or(folder, "."), repository.Name, first, maxProjectNames-1)}
}

// tryProject creates a project. created is false if a project of that name exists, whatever its repository and folder.
func (p *provisioner) tryProject(ctx context.Context, name, folder string) (created bool, err error) {
	project := provision.Project(p.found.Repository, name, folder, p.place.Patterns)
	created, err = p.create(ctx, "project", project)
	if created && err == nil {
		p.found.Projects = append(p.found.Projects, *project)
		p.found.Provisioned = append(p.found.Provisioned,
			Provisioned{Kind: "Project", Name: name, Of: folder, Beside: p.hadProjects})
	}
	return created, err
}
