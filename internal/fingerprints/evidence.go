package fingerprints

import "strings"

// Evidence is what a finding stores as its evidence.
type Evidence struct {
	// Message, Code and Resource are digests of the message, the code and the logical location.
	Message, Code, Resource string
	// Column is empty if it is unknown.
	Column string
	// Whole is the digest of the best fingerprint if that is stored cut.
	Whole string
	// Masked means that the tool masks a secret in the code. The code of other secrets may look the same, so it
	// identifies nothing; other code still is another secret.
	Masked bool
}

// masked is the last part of evidence with masked code.
const masked = "masked"

// ParseEvidence returns the parts of a finding's evidence. Parts that are not stored are empty.
func ParseEvidence(text string) Evidence {
	var parts [6]string
	copy(parts[:], strings.Split(text, "."))
	return Evidence{
		Message: parts[0], Code: parts[1], Resource: parts[2], Column: parts[3], Whole: parts[4], Masked: parts[5] == masked,
	}
}

// String returns the text that is stored.
func (e Evidence) String() string {
	parts := []string{e.Message, e.Code, e.Resource, e.Column, e.Whole, ""}
	if e.Masked {
		parts[5] = masked
	}
	return strings.TrimRight(strings.Join(parts, "."), ".")
}
