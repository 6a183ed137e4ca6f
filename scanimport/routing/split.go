package routing

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/provision"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
)

// Split assigns each result to its project: a batch becomes one batch for each project in which it has results, or in
// which the tool reports that it scanned files. Only these projects count as scanned. Findings of other projects stay
// open, because nothing shows that the tool scanned them.
//
// In a repository with one project everything belongs to it; see Batch.Outside. Otherwise a batch without any location
// is left out, unless it is incomplete or nothing else is left. If the batches cannot be assigned to projects, it
// returns an error for users.
func (t *Table) Split(batches []*importer.Batch) ([]*importer.Batch, error) {
	if _, is := t.Only(); is {
		return markOutside(t.projects[0].Path, batches), nil
	}
	if len(t.projects) == 0 {
		return nil, errors.New("the repository has no project: have one created")
	}
	lost := &lost{table: t}
	var out, idle []*importer.Batch
	for _, b := range batches {
		parts := t.split(b, lost)
		if len(parts) == 0 {
			idle = append(idle, b)
			if len(b.Incomplete) > 0 {
				lost.incomplete = append(lost.incomplete, b.Name())
			}
		}
		out = append(out, parts...)
	}
	if err := lost.err(); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no result and no scanned file (an artifact with the role analysisTarget, or the place of "+
			"a result that passed or is gone) says which of the projects %s was scanned: %s", namesOf(idle), t, t.advice("name the project, by POST /v2/repos/{id}/projects/{project_id}/scans"))
	}
	slices.SortFunc(out, (*importer.Batch).Compare)
	warnOfLeftOut(out[0], idle)
	return out, nil
}

// markOutside sets Outside of the batches if they name files, but none in the folder.
func markOutside(folder string, batches []*importer.Batch) []*importer.Batch {
	outside := ""
	for file := range importer.FilesOf(batches) {
		switch {
		case file == "":
		case provision.Holds(folder, provision.Clean(file)):
			return batches
		default:
			outside = folder
		}
	}
	out := make([]*importer.Batch, len(batches))
	for i, b := range batches {
		one := *b
		one.Outside = outside
		out[i] = &one
	}
	return out
}

func namesOf(batches []*importer.Batch) string {
	names := make([]string, len(batches))
	for i, b := range batches {
		names[i] = b.Name()
	}
	return strings.Join(names, ", ")
}

// warnOfLeftOut adds warnings to a batch about those that were left out, and counts what they skipped.
func warnOfLeftOut(b *importer.Batch, left []*importer.Batch) {
	b.Skipped, b.Warnings = maps.Clone(b.Skipped), slices.Clone(b.Warnings)
	for _, other := range left {
		b.Warnings = append(b.Warnings, fmt.Sprintf("left out of this upload: %s, which reports nothing and names no scanned file. "+
			"Which project it looked at is not known, so nothing was closed for it", other.Name()))
		b.Warnings = append(b.Warnings, other.Warnings...)
		for reason, n := range other.Skipped {
			if b.Skipped == nil {
				b.Skipped = map[string]int{}
			}
			b.Skipped[other.Name()+", left out: "+reason] += n
		}
	}
}

// split returns the parts of a batch by the name of their project.
func (t *Table) split(b *importer.Batch, lost *lost) []*importer.Batch {
	parts := map[string]*importer.Batch{}
	part := func(project string) *importer.Batch {
		if parts[project] == nil {
			one := *b
			one.Project, one.Results, one.Suppressed, one.Scanned = project, nil, nil, nil
			one.Skipped, one.Examples, one.Notes = map[string]int{}, nil, map[string]int{}
			parts[project] = &one
		}
		return parts[project]
	}
	for i := range b.Results {
		if project, ok := lost.place(&b.Results[i]); ok {
			one := part(project)
			one.Results = append(one.Results, b.Results[i])
		}
	}
	for i := range b.Suppressed {
		if project, ok := lost.place(&b.Suppressed[i]); ok {
			one := part(project)
			one.Suppressed = append(one.Suppressed, b.Suppressed[i])
		}
	}
	for _, folder := range b.Scanned {
		if project, ok := t.Of(folder); ok {
			part(project)
		}
	}
	var out []*importer.Batch
	for _, project := range slices.Sorted(maps.Keys(parts)) {
		out = append(out, parts[project])
	}
	if len(out) > 0 { // count results without a location once
		out[0].Skipped, out[0].Examples, out[0].Notes = b.Skipped, b.Examples, b.Notes
	}
	return out
}

// lost holds the results that do not belong to any project.
type lost struct {
	table *Table
	// count is their number; some of their files follow.
	count int
	files []string
	// several holds the projects that share the folder of a file.
	several []string
	// incomplete holds the batches of tools that failed without a result.
	incomplete []string
}

// maxNamed bounds how many files or projects a message names.
const maxNamed = 5

func (l *lost) place(r *sarif.Result) (project string, ok bool) {
	file := r.Location.File()
	if project, ok = l.table.Of(file); ok {
		return project, true
	}
	l.count++
	if holding := l.table.Holding(file); len(holding) > 1 && l.several == nil {
		l.several = holding
	}
	file = cmp.Or(file, "a result without a file")
	if len(l.files) < maxNamed && !slices.Contains(l.files, file) {
		l.files = append(l.files, file)
	}
	return "", false
}

func (l *lost) err() error {
	switch {
	case l.several != nil:
		return fmt.Errorf("the projects %s have the same spec.relativePath: give each its own", strings.Join(l.several, ", "))
	case l.count > 0:
		return fmt.Errorf("no project holds %d of the results (%s): the repository has the projects %s; %s", l.count,
			strings.Join(l.files, ", "), l.table, l.table.advice("set spec.relativePath of the one that holds them"))
	case len(l.incomplete) > 0:
		return fmt.Errorf("%s did not run to its end and reports nothing", strings.Join(l.incomplete, ", "))
	}
	return nil
}

// advice returns otherwise, unless a project is being deleted: the results may be of its job. Then another project must
// not be changed to hold them.
func (t *Table) advice(otherwise string) string {
	if t.leaving == "" {
		return otherwise
	}
	return "project " + t.leaving + " is being deleted: stop its jobs, and upload again when it is gone"
}

// String lists the projects with their folders, up to maxNamed.
func (t *Table) String() string {
	var names []string
	for i, p := range t.projects {
		if i == maxNamed {
			names = append(names, fmt.Sprintf("and %d more", len(t.projects)-i))
			break
		}
		names = append(names, fmt.Sprintf("%s (%s)", p.Name, cmp.Or(p.Path, "the whole repository")))
	}
	return strings.Join(names, ", ")
}
