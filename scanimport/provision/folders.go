package provision

import (
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Patterns say which folders of a repository are projects of their own, as spec.imports.projects of an Organization
// does: "services/*" is every folder in services. A star stands for any part of one folder's name.
type Patterns []string

const (
	// maxFolder is the schema's bound of a project's path, in characters.
	maxFolder = 1024
	// MostProjects is how many Projects one import creates at most.
	MostProjects = 50
)

// Folder of the project that a file belongs to: the longest folder that a pattern names, "" where none does.
func (p Patterns) Folder(file string) string {
	parts := strings.Split(Clean(file), "/")
	longest := 0
	for _, pattern := range p {
		if wanted := strings.Split(pattern, "/"); len(wanted) > longest && within(wanted, parts) {
			longest = len(wanted)
		}
	}
	folder := strings.Join(parts[:longest], "/")
	if !utf8.ValidString(folder) || utf8.RuneCountInString(folder) > maxFolder ||
		strings.ContainsFunc(folder, unicode.IsControl) {
		return ""
	}
	return folder
}

// within reports whether the folder that the pattern names holds the file.
func within(pattern, file []string) bool {
	if len(file) <= len(pattern) {
		return false
	}
	for i, part := range pattern {
		if matches, err := path.Match(part, file[i]); err != nil || !matches {
			return false
		}
	}
	return true
}

// Existing is a project that a repository has.
type Existing struct {
	// Folder as somebody wrote it; empty for the whole repository.
	Folder string
	// Beside are the patterns in force when an import created it: what they name never went to it.
	Beside Patterns
}

// Missing returns the folders, in order, for which a project is missing so that each file belongs to one. existing are
// the repository's projects. Where there is neither a file nor a project it is the whole repository.
// The error says, for people, that these are too many.
func (p Patterns) Missing(existing []Existing, files iter.Seq[string]) ([]string, error) {
	there := map[string]Patterns{}
	for _, project := range existing {
		there[Clean(project.Folder)] = project.Beside
	}
	missing := map[string]bool{}
	if len(there) == 0 {
		missing[""] = true
	}
	first := true
	for file := range files {
		if first && len(there) == 0 {
			delete(missing, "") // unless a file belongs there
		}
		first = false
		folder := p.Folder(file)
		if len(p) == 0 && len(existing) == 1 || covered(there, folder, file) {
			continue
		}
		missing[folder] = true
	}
	if len(missing) > MostProjects {
		return nil, fmt.Errorf("the results are of %d folders that are no projects yet (%s, ...), and one import creates at most %d projects: "+
			"name fewer folders in spec.imports.projects of the Organization, or create the Projects",
			len(missing), strings.Join(slices.Sorted(maps.Keys(missing))[:3], ", "), MostProjects)
	}
	return slices.Sorted(maps.Keys(missing)), nil
}

// covered reports whether one of the projects is to have the file: the one with the longest folder that holds it. A
// wider one than the folder that a pattern names may have findings in that folder, and a project beside it would double
// them: it gives way only where it came beside such folders.
func covered(there map[string]Patterns, folder, file string) bool {
	for at := Clean(file); ; at = at[:max(strings.LastIndexByte(at, '/'), 0)] {
		if beside, is := there[at]; is {
			return len(at) >= len(folder) || len(beside.Folder(file)) <= len(at)
		}
		if at == "" {
			return false
		}
	}
}

// Clean is a path from the root of the repository, which it never leaves: "" for the root itself.
func Clean(p string) string {
	return strings.TrimPrefix(path.Clean("/"+strings.ReplaceAll(strings.TrimSpace(p), `\`, "/")), "/")
}
