package fingerprints

import "strings"

// Masked is the last part of a finding's evidence if the tool masks a secret in the code. The code of other secrets may
// look the same, so it identifies nothing; other code still is another secret.
const Masked = "masked"

// EvidenceParts returns the parts of a finding's evidence: the digests of message, code and resource, the column, the
// digest of a fingerprint that is stored cut, and Masked. Parts that are not stored are empty.
func EvidenceParts(evidence string) (parts [6]string) {
	copy(parts[:], strings.Split(evidence, "."))
	return parts
}
