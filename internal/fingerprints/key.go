package fingerprints

import (
	"strconv"
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Key is what the result behind a finding's facts is known by in pull requests and in the base branch: two results with
// the same key are of one rule in one file, and agree in all evidence but the place. Where neither code, a fingerprint,
// a resource nor a package tells one result from the next, the place counts too. "" where no evidence is stored.
func Key(facts *v1alpha1.FindingSpec) string {
	if facts.Evidence == "" {
		return ""
	}
	parts := append(strings.Split(facts.Evidence, "."), "", "", "")
	message, code, resource, column := parts[0], parts[1], parts[2], parts[3]
	best := Best(Stored(facts.Fingerprints), nil)
	vulnerability, in := "", v1alpha1.FindingPackage{}
	if facts.Vulnerability != nil {
		vulnerability = facts.Vulnerability.ID
	}
	if facts.Package != nil {
		in = *facts.Package
	}
	path, line := "", int32(0)
	if at := facts.Details.Location; at != nil {
		path, line = at.FilePath, at.LineNumber
	}
	place := ""
	if code == "" && best == "" && resource == "" && (vulnerability == "" || in.Name == "" && in.PURL == "") {
		place = strconv.Itoa(int(line)) + "." + column
	}
	return Hash("result", string(facts.RepositoryRef.Name), facts.Tool, facts.RuleID, path, message, code, resource, best,
		vulnerability, in.Name, in.Version, WithoutVersion(in.PURL), place)
}

// Stored are the fingerprints of a finding by name, without what numbers the places of one hash.
func Stored(all []v1alpha1.Fingerprint) map[string]string {
	if len(all) == 0 {
		return nil
	}
	out := make(map[string]string, len(all))
	for _, f := range all {
		out[f.Name] = WithoutOrdinal(f.Name, f.Value)
	}
	return out
}

// WithoutVersion is a package URL without version, qualifiers and subpath.
func WithoutVersion(purl string) string {
	purl, _, _ = strings.Cut(purl, "#")
	purl, _, _ = strings.Cut(purl, "?")
	if at := strings.LastIndexByte(purl, '@'); at > strings.LastIndexByte(purl, '/') {
		purl = purl[:at]
	}
	return purl
}

// WithoutOrdinal takes off what numbers the places of one hash: once the first is repaired, the
// second has its number.
func WithoutOrdinal(name, value string) string {
	if hash, ordinal, ok := strings.Cut(value, ":"); ok && strings.HasPrefix(strings.ToLower(name),
		"primarylocationlinehash") {
		if _, err := strconv.ParseUint(ordinal, 10, 32); err == nil {
			return hash
		}
	}
	return value
}
