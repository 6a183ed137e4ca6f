package fingerprints

import (
	"strconv"
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Shown is the part of a result's identity that a finding and an issue of a pull request show to users. It is the same
// for results with the same Key.
type Shown struct{ Repository, Tool, Rule, Path, Vulnerability, Package, Version, PURL string }

// ShownBy returns the part of the identity that the facts show.
func ShownBy(facts *v1alpha1.FindingSpec) Shown {
	s := Shown{
		Repository: string(facts.RepositoryRef.Name), Tool: facts.Tool, Rule: facts.RuleID,
		Path: facts.Details.Place().FilePath,
	}
	if facts.Vulnerability != nil {
		s.Vulnerability = facts.Vulnerability.ID
	}
	if in := facts.Package; in != nil {
		s.Package, s.Version, s.PURL = in.Name, in.Version, WithoutVersion(in.PURL)
	}
	return s
}

// Key returns the key that identifies a finding's result in pull requests and in the base branch: two results with the
// same key have the same rule and file, and the same evidence except for the location. The location counts, too, if no
// code, fingerprint, resource or package distinguishes results. Code in which the tool masks a secret is left out. The
// key is "" if no evidence is stored.
func Key(facts *v1alpha1.FindingSpec) string {
	if facts.Evidence == "" {
		return ""
	}
	e := ParseEvidence(facts.Evidence)
	if e.Masked {
		e.Code = ""
	}
	best := Best(Stored(facts), nil)
	s, place := ShownBy(facts), ""
	if e.Code == "" && best == "" && e.Resource == "" && (s.Vulnerability == "" || s.Package == "" && s.PURL == "") {
		place = strconv.Itoa(int(facts.Details.Place().LineNumber)) + "." + e.Column
	}
	return Hash("result", s.Repository, s.Tool, s.Rule, s.Path, e.Message, e.Code, e.Resource, best,
		s.Vulnerability, s.Package, s.Version, s.PURL, place)
}

// Keys returns the keys that the result has under all names of its tool, its own first; nil if no evidence is stored.
func Keys(facts *v1alpha1.FindingSpec) []string {
	if facts.Evidence == "" {
		return nil
	}
	keys := []string{Key(facts)}
	for _, name := range NamesOfTool(facts.Tool) {
		if name != facts.Tool {
			renamed := *facts
			renamed.Tool = name
			keys = append(keys, Key(&renamed))
		}
	}
	return keys
}

// CutMark ends a text that the importer has cut.
const CutMark = " ... [cut]"

// Stored returns the fingerprints of a finding by name, without ordinals; see WithoutOrdinal. To the best one that is
// stored cut it adds the digest of the whole, to distinguish those that begin alike; an earlier version stored no such
// digest.
func Stored(facts *v1alpha1.FindingSpec) map[string]string {
	if len(facts.Fingerprints) == 0 {
		return nil
	}
	out := make(map[string]string, len(facts.Fingerprints))
	for _, f := range facts.Fingerprints {
		out[f.Name] = WithoutOrdinal(f.Name, f.Value)
	}
	if name := BestCut(facts.Fingerprints); name != "" {
		out[name] += ParseEvidence(facts.Evidence).Whole
	}
	return out
}

// BestCut returns the name of the best fingerprint that is stored cut, or "".
func BestCut(stored []v1alpha1.Fingerprint) string {
	long := map[string]string{}
	for _, f := range stored {
		if strings.HasSuffix(f.Value, CutMark) {
			long[f.Name] = f.Value
		}
	}
	return bestName(long, nil)
}

// WithoutVersion returns a package URL without version, qualifiers and subpath.
func WithoutVersion(purl string) string {
	purl, _, _ = strings.Cut(purl, "#")
	purl, _, _ = strings.Cut(purl, "?")
	if at := strings.LastIndexByte(purl, '@'); at > strings.LastIndexByte(purl, '/') {
		purl = purl[:at]
	}
	return purl
}

// ordinals holds what separates the hash from the ordinal, by the lower-case prefix of a fingerprint's name.
var ordinals = []struct{ prefix, separator string }{
	{"primarylocationlinehash", ":"}, // CodeQL
	{"matchbasedid", "_"},            // Semgrep, Opengrep
}

// WithoutOrdinal removes the ordinal that numbers the locations with one hash, because once the first is fixed, the
// second gets its number.
func WithoutOrdinal(name, value string) string {
	name = strings.ToLower(name)
	for _, o := range ordinals {
		if hash, ordinal, ok := strings.Cut(value, o.separator); ok && strings.HasPrefix(name, o.prefix) {
			if _, err := strconv.ParseUint(ordinal, 10, 32); err == nil {
				return hash
			}
		}
	}
	return value
}
