// Package version tells which release of findings-operator a binary is.
package version

// stamped is set by the linker in releases and images:
// -X github.com/appsec-dev/findings-operator/internal/version.stamped=1.2.3
var stamped = "devel"

// String returns the version without a leading v, for example "1.2.3"; "devel" where no release made the binary.
func String() string { return stamped }
