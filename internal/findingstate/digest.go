package findingstate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// digestBytes is how much of a SHA-256 is kept. A digest only detects changes of one object: sixteen bytes rule out
// accidental collisions, and nobody gains from forging one.
const digestBytes = 16

// factsDigest is a digest of the facts that the scanner reported. It leaves out triage, the time
// and scan of the last write, data that is kept only for the next import, and members whose changes
// have transitions of their own.
func factsDigest(spec *v1alpha1.FindingSpec) string {
	facts := spec.DeepCopy()
	facts.Triage = v1alpha1.FindingTriage{}
	facts.Closed, facts.Doubt, facts.Suppression = nil, nil, nil
	facts.Evidence = ""
	facts.Scan = nil
	facts.CommitHash = ""
	clearPermalinks(&facts.Details)
	return digest(facts)
}

// clearPermalinks removes the URLs, since they contain the commit.
func clearPermalinks(details *v1alpha1.FindingDetails) {
	if details.Location != nil {
		details.Location.URL = ""
	}
	for i := range details.SupportingFiles {
		details.SupportingFiles[i].URL = ""
	}
}

// TriageDigest returns a digest of the user's decision, its comments, reason, end and basis, so that repeating a
// stale decision counts as a new one. For a triage without basis, reason and end it equals the digest of
// versions that did not have these.
func TriageDigest(spec *v1alpha1.FindingSpec) string {
	triage := &spec.Triage
	decision := []any{Declared(spec), triage.Comments}
	if triage.Basis != "" && Declared(spec) != v1alpha1.UserStatusOpen {
		decision = append(decision, triage.Basis)
	}
	if triage.Reason != "" || triage.ExpiresAt != nil {
		// An object cannot be confused with the strings before it.
		decision = append(decision, v1alpha1.FindingTriage{Reason: triage.Reason, ExpiresAt: triage.ExpiresAt})
	}
	return digest(decision)
}

// suppressionDigest is a digest of how and why the source suppresses the finding; "" if it does
// not.
func suppressionDigest(spec *v1alpha1.FindingSpec) string {
	if spec.Suppression == nil {
		return ""
	}
	return digest(spec.Suppression)
}

func digest(value any) string {
	content, err := json.Marshal(value)
	if err != nil {
		// API types can always be encoded: they were decoded from JSON.
		panic(fmt.Sprintf("encode %T: %v", value, err))
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:digestBytes])
}
