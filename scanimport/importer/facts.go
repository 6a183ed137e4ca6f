package importer

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
)

// sameFacts reports whether a finding already has the reported facts. Fields that depend only on the scan, and so
// change at every commit, are not compared, except for a link that was missing. Fields that the file leaves out and
// another client may have added are not compared either: no import could settle that difference.
func sameFacts(reported, there *v1alpha1.FindingSpec) bool {
	return bytes.Equal(comparedFacts(reported, reported), comparedFacts(there, reported)) && !addsLink(reported, there)
}

// addsLink reports whether a location gains a link because the commit or the repository's page was unknown before.
func addsLink(reported, there *v1alpha1.FindingSpec) bool {
	a, b := reported.Details.Location, there.Details.Location
	if a != nil && b != nil && a.URL != "" && b.URL == "" {
		return true
	}
	for i, place := range reported.Details.SupportingFiles {
		if i < len(there.Details.SupportingFiles) && place.URL != "" && there.Details.SupportingFiles[i].URL == "" {
			return true
		}
	}
	return false
}

// saysTheSame returns a function that reports whether a result and a finding, given by index, have the same facts,
// regardless of the tool's name and the analysis. It digests each once, since similar ones are compared many times.
func saysTheSame(results []reported, there []v1alpha1.Finding) func(result, known int) bool {
	type side struct {
		known     bool
		at        int
		endpoints bool // whether the result has any; only then those of the finding are compared
	}
	digests := map[side][sha256.Size]byte{}
	digest := func(s side, spec v1alpha1.FindingSpec, reported *v1alpha1.FindingSpec) [sha256.Size]byte {
		d, done := digests[s]
		if !done {
			spec.Tool, spec.Analysis, spec.Agent = "", "", nil
			spec.Evidence = "" // has been compared, and may contain the digest of an earlier version
			d = sha256.Sum256(comparedFacts(&spec, reported))
			digests[s] = d
		}
		return d
	}
	return func(r, k int) bool {
		reported := &results[r].spec
		endpoints := len(reported.Details.EndpointLocations) > 0
		is := digest(side{false, r, endpoints}, *reported, reported)
		return is == digest(side{true, k, endpoints}, there[k].Spec, reported)
	}
}

// factsOf returns a digest of a finding's facts, with the tool's name, the analysis and the project. Findings that
// differ only in these may be one problem that several jobs report. The digests of an earlier version and the ordinals
// of fingerprints tell no findings apart.
func factsOf(spec *v1alpha1.FindingSpec) string {
	facts := *spec
	facts.Evidence = ""
	facts.Fingerprints = slices.Clone(spec.Fingerprints)
	for i, f := range facts.Fingerprints {
		facts.Fingerprints[i].Value = fingerprints.WithoutOrdinal(f.Name, f.Value)
	}
	return fingerprints.Hash(string(comparedFacts(&facts, &facts)))
}

// decisionOf returns a text that is the same for findings with the same decision, whoever made it, and the same doubt
// about it; "" if nobody has decided.
func decisionOf(spec *v1alpha1.FindingSpec) string {
	t := &spec.Triage
	if !decided(t) {
		return ""
	}
	end, doubt := "", ""
	if t.ExpiresAt != nil {
		end = t.ExpiresAt.UTC().Format(time.RFC3339)
	}
	if spec.Doubt != nil {
		doubt = spec.Doubt.Reason
	}
	return strings.Join([]string{string(t.UserStatus), string(t.Reason), end, t.Basis, doubt}, "\n")
}

// sameSpec reports whether two findings agree in every fact and in their triage.
func sameSpec(a, b *v1alpha1.FindingSpec) bool {
	return bytes.Equal(encodeSpec(a), encodeSpec(b))
}

func comparedFacts(spec, reported *v1alpha1.FindingSpec) []byte {
	c := spec.DeepCopy()
	c.DetectedAt, c.CommitHash, c.Scan = nil, "", nil
	c.Closed, c.Doubt = nil, nil
	c.Triage = v1alpha1.FindingTriage{}
	if c.Agent != nil {
		c.Agent = &v1alpha1.FindingAgent{Name: c.Agent.Name}
	}
	d := &c.Details
	d.ExploitFeasibility, d.ExploitWalkthrough, d.RemediationEffort = "", "", ""
	d.ValidationEvidence = nil
	if len(reported.Details.EndpointLocations) == 0 {
		d.EndpointLocations = nil
	}
	if d.Location != nil {
		d.Location = &v1alpha1.FileLocation{FilePath: d.Location.FilePath, LineNumber: d.Location.LineNumber}
	}
	for i, f := range d.SupportingFiles {
		d.SupportingFiles[i] = v1alpha1.FileLocation{FilePath: f.FilePath, LineNumber: f.LineNumber}
	}
	return encodeSpec(c)
}

// encodeSpec encodes a spec as JSON, which omits empty fields, so that nil and an empty list are equal.
func encodeSpec(spec *v1alpha1.FindingSpec) []byte {
	encoded, err := json.Marshal(spec)
	if err != nil {
		panic("a FindingSpec has no member that JSON cannot encode: " + err.Error())
	}
	return encoded
}
