// Package version holds the release of findings-operator that a binary was built from.
package version

// stamped is set by the linker in releases and images:
// -X github.com/appsec-dev/findings-operator/internal/version.stamped=1.2.3
var stamped = "devel"

// String returns the version without a leading v, for example "1.2.3"; "devel" if the binary is not from a
// release.
func String() string { return stamped }
