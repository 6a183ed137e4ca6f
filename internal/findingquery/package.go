package findingquery

import (
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

const purlScheme = "pkg:"

// PackageName is the one spelling of a package's name: names are compared whatever their case.
func PackageName(name string) string { return strings.ToLower(name) }

// PackageKey is what all findings of a package have in common that is asked for by its name or by its package URL:
// the name, or the URL without version, qualifiers and subpath.
func PackageKey(wanted string) string {
	if !strings.HasPrefix(wanted, purlScheme) {
		return PackageName(wanted)
	}
	if end := strings.IndexAny(wanted, "?#"); end >= 0 {
		wanted = wanted[:end]
	}
	last := strings.LastIndexByte(wanted, '/') + 1
	name, _, _ := strings.Cut(wanted[last:], "@")
	return wanted[:last] + name
}

// PackageKeys are the keys that a package is found by.
func PackageKeys(name, purl string) []string {
	var keys []string
	if name != "" {
		keys = append(keys, PackageName(name))
	}
	if purl != "" {
		keys = append(keys, PackageKey(purl))
	}
	return keys
}

// IsPackage reports whether a package is the one asked for: by its name, whatever the case, or by its package URL, of
// which one without a version means every version.
func IsPackage(p *v1alpha1.FindingPackage, wanted string) bool {
	return p != nil && IsPackageOf(p.Name, p.PURL, wanted)
}

// IsPackageOf is IsPackage of a package by its name and its package URL.
func IsPackageOf(name, purl, wanted string) bool {
	if !strings.HasPrefix(wanted, purlScheme) {
		return PackageName(name) == PackageName(wanted)
	}
	rest, is := strings.CutPrefix(purl, wanted)
	return is && (rest == "" || strings.ContainsAny(rest[:1], "@?#"))
}
