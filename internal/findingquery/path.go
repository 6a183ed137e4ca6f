package findingquery

import "strings"

// FileKey returns the value of a filter for exactly this path; empty if no value selects only this path, because
// a slash at its end means a folder.
func FileKey(path string) string {
	if strings.HasSuffix(path, "/") {
		return ""
	}
	return path
}

// IsIn reports whether a path is the file's or, if file ends in a slash, below that folder.
func IsIn(path, file string) bool {
	if strings.HasSuffix(file, "/") {
		return strings.HasPrefix(path, file)
	}
	return path == file
}
