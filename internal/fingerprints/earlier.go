package fingerprints

import (
	"regexp"
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// KeysOfEarlierPath returns the EarlierKeys, or the Keys if the stored path is one that an earlier version stored for
// any number of files.
func KeysOfEarlierPath(facts *v1alpha1.FindingSpec) []string {
	if strings.Contains(facts.Details.Place().FilePath, "\uFFFD") {
		return Keys(facts)
	}
	return EarlierKeys(facts)
}

// EarlierKeys returns the Keys of the result under the path that an earlier version stored; nil if it is the same.
// Several files may share them. Those of a long fingerprint match nothing that an earlier version stored: without its
// digest, all that begin alike would share a decision.
func EarlierKeys(facts *v1alpha1.FindingSpec) []string {
	at := facts.Details.Location
	if at == nil || EarlierPath(at.FilePath) == at.FilePath {
		return nil
	}
	earlier, location := *facts, *at
	location.FilePath = EarlierPath(at.FilePath)
	earlier.Details.Location = &location
	return Keys(&earlier)
}

// KeysOfOtherMark returns the Keys that the result has with the mark of masked code removed, or added if it has none:
// an earlier version stored masked code without the mark. It returns nil without a digest of code, and if the code
// itself is stored, which that of secrets never is.
func KeysOfOtherMark(facts *v1alpha1.FindingSpec) []string {
	e := ParseEvidence(facts.Evidence)
	if e.Code == "" || facts.Details.Code != "" {
		return nil
	}
	e.Masked = !e.Masked
	other := *facts
	other.Evidence = e.String()
	return Keys(&other)
}

// notUTF8 matches bytes that are not UTF-8, in the form that the importer writes to a path.
var notUTF8 = regexp.MustCompile(`(?:%[89A-F][0-9A-F])+`)

// EarlierPath returns a path as an earlier version stored it: with U+FFFD for bytes that are not UTF-8, so that several
// files had one path.
func EarlierPath(path string) string { return notUTF8.ReplaceAllString(path, "\uFFFD") }
