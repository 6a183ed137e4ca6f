package findingstate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// digestBytes is how much of a SHA-256 is kept. The digests tell an object's own past from its
// present, so sixteen bytes are far beyond an accident, and nobody gains by forging one.
const digestBytes = 16

// factsDigest stands for what the scanner says is wrong. It leaves out triage, which is not
// the scanner's, what says only when and by which scan the rest was last written, what is
// kept for the next import alone, and what has transitions of its own.
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

// clearPermalinks takes out the URLs: they name the commit.
func clearPermalinks(details *v1alpha1.FindingDetails) {
	if details.Location != nil {
		details.Location.URL = ""
	}
	for i := range details.SupportingFiles {
		details.SupportingFiles[i].URL = ""
	}
}

// triageDigest stands for what people decided, why, until when, and upon what: to repeat a decision is one. Of a
// triage without basis, reason and end it is what it was before there were any.
func triageDigest(spec *v1alpha1.FindingSpec) string {
	triage := &spec.Triage
	decision := []any{Declared(spec), triage.Comments}
	if triage.Basis != "" && Declared(spec) != v1alpha1.UserStatusOpen {
		decision = append(decision, triage.Basis)
	}
	if triage.Reason != "" || triage.ExpiresAt != nil {
		// An object, which no text before it can be taken for.
		decision = append(decision, v1alpha1.FindingTriage{Reason: triage.Reason, ExpiresAt: triage.ExpiresAt})
	}
	return digest(decision)
}

// TriageDigest is the triageDigest of a status that has seen the spec's triage.
func TriageDigest(spec *v1alpha1.FindingSpec) string { return triageDigest(spec) }

// suppressionDigest stands for how and why the source suppresses the finding; "" where it does not.
func suppressionDigest(spec *v1alpha1.FindingSpec) string {
	if spec.Suppression == nil {
		return ""
	}
	return digest(spec.Suppression)
}

func digest(value any) string {
	content, err := json.Marshal(value)
	if err != nil {
		// API types always encode: they have come out of JSON themselves.
		panic(fmt.Sprintf("encode %T: %v", value, err))
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:digestBytes])
}
