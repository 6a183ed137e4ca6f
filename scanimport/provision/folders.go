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

// Patterns select the folders of a repository that are separate projects, in the form of an Organization's
// spec.imports.projects: "services/*" is every folder in services. A star matches any part of one folder's name.
type Patterns []string

const (
	// maxFolder is the schema's limit for a project's path, in characters.
	maxFolder = 1024
	// MaxProjects bounds the Projects that one import creates.
	MaxProjects = 50
	// maxPatterns is the schema's limit for spec.imports.projects.
	maxPatterns = 32
)

// Folder returns the folder of the project that a file belongs to: the longest folder that a pattern matches. It is ""
// if none does, or if the folder cannot be a project's path.
func (p Patterns) Folder(file string) string {
	parts := strings.Split(Clean(file), "/")
	longest := 0
	for _, pattern := range p {
		if wanted := strings.Split(pattern, "/"); len(wanted) > longest && within(wanted, parts) {
			longest = len(wanted)
		}
	}
	folder := strings.Join(parts[:longest], "/")
	if folder != Clean(folder) || !utf8.ValidString(folder) || utf8.RuneCountInString(folder) > maxFolder ||
		strings.ContainsFunc(folder, unicode.IsControl) {
		return ""
	}
	return folder
}

// within reports whether the file is in the folder that the pattern matches.
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

// Existing is an existing project of a repository.
type Existing struct {
	// Folder as written in the Project; empty for the whole repository.
	Folder string
	// Beside holds the patterns in force when an import created the project: files in folders that they match never went
	// to it.
	Beside Patterns
}

// Missing returns, in order, the folders that need a new project so that each file belongs to one. existing holds the
// repository's projects. Without files and projects it returns the whole repository. If there are too many folders, it
// returns an error for users.
func (p Patterns) Missing(existing []Existing, files iter.Seq[string]) ([]string, error) {
	there := map[string]Patterns{}
	for _, project := range existing {
		there[Clean(project.Folder)] = project.Beside
	}
	missing, empty := map[string]bool{}, true
	for file := range files {
		empty = false
		folder := p.Folder(file)
		if len(p) == 0 && len(existing) == 1 || covered(there, folder, file) {
			continue
		}
		missing[folder] = true
	}
	if empty && len(there) == 0 {
		missing[""] = true
	}
	if len(missing) > MaxProjects {
		return nil, fmt.Errorf("the results are of %d folders that are no projects yet (%s, ...), and one import creates at most %d projects: "+
			"name fewer folders in spec.imports.projects of the Organization, or create the Projects",
			len(missing), strings.Join(slices.Sorted(maps.Keys(missing))[:3], ", "), MaxProjects)
	}
	return slices.Sorted(maps.Keys(missing)), nil
}

// covered reports whether an existing project takes the file: the one with the longest folder that contains it. A
// project with a wider folder than the pattern's may already have findings in the file, which a second project would
// duplicate. So it keeps the file, unless its Beside already assigned the file to a narrower folder.
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

// Holds reports whether the folder contains the file, or is the file. Both must be clean.
func Holds(folder, file string) bool {
	rest, under := strings.CutPrefix(file, folder)
	return under && (folder == "" || rest == "" || rest[0] == '/')
}

// Clean returns a path relative to the root of the repository, which it never leaves: "" for the root itself.
func Clean(p string) string { return strings.TrimPrefix(path.Clean("/"+slashed(p)), "/") }

// Leaves reports whether a path leads out of the repository. Clean would turn it into another path.
func Leaves(p string) bool {
	relative := path.Clean(strings.TrimLeft(slashed(p), "/"))
	return relative == ".." || strings.HasPrefix(relative, "../")
}

func slashed(p string) string { return strings.ReplaceAll(strings.TrimSpace(p), `\`, "/") }
