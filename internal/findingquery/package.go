package findingquery

import (
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

const purlScheme = "pkg:"

// PackageName returns a package's name in the form in which names are compared, which ignores case.
func PackageName(name string) string { return strings.ToLower(name) }

// PackageSpelling returns a wanted package, which is given by name or by package URL, in the form in which packages are
// compared.
func PackageSpelling(wanted string) string {
	if strings.HasPrefix(wanted, purlScheme) {
		return withPlainScope(wanted)
	}
	return PackageName(wanted)
}

// withPlainScope writes the @ of a scope as it is. Most tools encode it, as in pkg:npm/%40angular/core.
func withPlainScope(purl string) string { return strings.ReplaceAll(purl, "/%40", "/@") }

// PackageKey returns the index key for a wanted package, which is given by name or by package URL: the name, or
// the URL without version, qualifiers and subpath.
func PackageKey(wanted string) string {
	if !strings.HasPrefix(wanted, purlScheme) {
		return PackageName(wanted)
	}
	wanted = withPlainScope(wanted)
	if end := strings.IndexAny(wanted, "?#"); end >= 0 {
		wanted = wanted[:end]
	}
	for i := len(purlScheme); i < len(wanted); i++ {
		if beginsVersion(wanted[:i], wanted[i:]) {
			return wanted[:i]
		}
	}
	return wanted
}

// beginsVersion reports whether the rest of a package URL is a version, which may contain slashes. After a slash, @
// begins a scope, as in pkg:npm/@angular/core.
func beginsVersion(before, rest string) bool {
	return strings.HasPrefix(rest, "@") && !strings.HasSuffix(before, "/")
}

// PackageNameKey returns the index key of a package's name; empty if the name is not a key. A name that looks like a
// package URL is none, because a wanted URL means the package's URL.
func PackageNameKey(name string) string {
	key := PackageName(name)
	if strings.HasPrefix(key, purlScheme) {
		return ""
	}
	return key
}

// PackageKeys returns the index keys of a package, each once. A URL without its scheme is not a key, because it would
// be taken for a name.
func PackageKeys(name, purl string) []string {
	var keys []string
	if key := PackageNameKey(name); key != "" {
		keys = append(keys, key)
	}
	if strings.HasPrefix(purl, purlScheme) {
		keys = append(keys, PackageKey(purl))
	}
	return keys
}

// isPackage reports whether a package is the wanted one: by name, ignoring case, or by package URL. A URL without a
// version matches every version.
func isPackage(p *v1alpha1.FindingPackage, wanted string) bool {
	return p != nil && IsPackageOf(p.Name, p.PURL, wanted)
}

// IsPackageOf is isPackage for a package given by its name and package URL.
func IsPackageOf(name, purl, wanted string) bool {
	if !strings.HasPrefix(wanted, purlScheme) {
		return wanted != "" && PackageNameKey(name) == PackageName(wanted)
	}
	wanted = withPlainScope(wanted)
	rest, is := strings.CutPrefix(withPlainScope(purl), wanted)
	return is && (rest == "" || strings.ContainsAny(rest[:1], "?#") || beginsVersion(wanted, rest))
}
