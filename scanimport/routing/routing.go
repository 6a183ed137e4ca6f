// Package routing finds the projects of a repository that the results of a file belong to. A project is a folder, and a
// result belongs to the project whose folder contains its file.
package routing

import (
	"cmp"
	"slices"

	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/provision"
)

// Project is a folder of a repository.
type Project struct {
	// Name is the project's id.
	Name string
	// Path is the folder, from the root of the repository, as written in the Project; empty for the whole repository.
	Path string
	// Grown means that an import created the project while imports created projects for folders.
	Grown bool
}

// Table holds the projects of one repository.
type Table struct {
	// projects are in the order of lookup: the longest path first.
	projects []Project
	// growing is NewTable's argument.
	growing bool
	// leaving is the name of a project that is being deleted; empty if there is none.
	leaving string
}

// NewTable returns the table of a repository's projects. growing means that some folders may be scanned that are no
// projects yet, because imports create projects for folders, or no longer, because a project is being deleted.
func NewTable(projects []Project, growing bool) *Table {
	t := &Table{growing: growing}
	for _, p := range projects {
		t.projects = append(t.projects, Project{Name: p.Name, Path: provision.Clean(p.Path), Grown: p.Grown})
	}
	slices.SortFunc(t.projects, func(a, b Project) int {
		return cmp.Or(cmp.Compare(len(b.Path), len(a.Path)), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Name, b.Name))
	})
	return t
}

// Projects returns the projects of the repository, the longest path first.
func (t *Table) Projects() []Project { return t.projects }

// Only returns the project of a repository that has just one. In a growing repository this must be the whole
// repository: otherwise an empty scan of another folder would close the findings of this one. Elsewhere an empty scan
// belongs to a folder, too: after its last finding is fixed, most tools report neither results nor scanned files.
func (t *Table) Only() (project string, is bool) { return t.only(t.growing) }

func (t *Table) only(growing bool) (project string, is bool) {
	if len(t.projects) != 1 || growing && t.projects[0].Path != "" {
		return "", false
	}
	return t.projects[0].Name, true
}

// Holding returns the names of the projects with the longest folder that contains the file: none if no folder does,
// several if projects share a folder. A result without a file belongs only to a project that is the whole repository.
func (t *Table) Holding(file string) []string {
	file = provision.Clean(file)
	for i, p := range t.projects {
		if !provision.Holds(p.Path, file) {
			continue
		}
		var names []string
		for _, same := range t.projects[i:] {
			if same.Path == p.Path {
				names = append(names, same.Name)
			}
		}
		return names
	}
	return nil
}

// Of returns the project that a file belongs to: the one that contains it, or the only one of the repository. ok is
// false if there are none or several.
func (t *Table) Of(file string) (project string, ok bool) {
	if only, is := t.Only(); is {
		return only, true
	}
	if holding := t.Holding(file); len(holding) == 1 {
		return holding[0], true
	}
	return "", false
}

// Scanned returns the projects that hold a result of a tool's batches, or a folder that it scanned, or else the only
// project. all means that any project may have been scanned, because a result belongs to none, or no folder is named. A
// Grown project shows that the repository may be growing, for callers that may not read the Organization.
func (t *Table) Scanned(batches []*importer.Batch) (scanned map[string]bool, all bool) {
	scanned = map[string]bool{}
	grown := slices.ContainsFunc(t.projects, func(p Project) bool { return p.Grown })
	if only, is := t.only(t.growing || grown); is {
		scanned[only] = true
		return scanned, false
	}
	add := func(file string) bool {
		holding := t.Holding(file)
		for _, project := range holding {
			scanned[project] = true
		}
		return len(holding) > 0
	}
	for _, b := range batches {
		for _, r := range b.All() {
			all = !add(r.Location.File()) || all
		}
		for _, folder := range b.Scanned {
			add(folder)
		}
	}
	return scanned, all || len(scanned) == 0
}
