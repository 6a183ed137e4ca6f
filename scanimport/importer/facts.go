package importer

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/scanimport/recognition"
)

// sameFacts reports whether a finding already has the reported facts. It ignores fields that depend only on the scan
// and change with every commit, except for a link that was missing, and fields that the file leaves out and another
// client may have added, because no import could remove that difference.
func sameFacts(reported, existing *v1alpha1.FindingSpec) bool {
	return bytes.Equal(comparedFacts(reported, reported), comparedFacts(existing, reported)) &&
		!addsLink(reported, existing)
}

// addsLink reports whether a location gains a link because the commit or the repository's page was unknown until now.
func addsLink(reported, existing *v1alpha1.FindingSpec) bool {
	a, b := reported.Details.Location, existing.Details.Location
	if a != nil && b != nil && a.URL != "" && b.URL == "" {
		return true
	}
	for i, place := range reported.Details.SupportingFiles {
		if i < len(existing.Details.SupportingFiles) && place.URL != "" && existing.Details.SupportingFiles[i].URL == "" {
			return true
		}
	}
	return false
}

// factsOf returns functions that return a digest of the facts of a result and of a finding, given its index. The
// reporting job and the ordinals of fingerprints do not count. Each digest is computed once, because similar results
// are compared many times.
func factsOf(results []reported, existing []v1alpha1.Finding) (ofResult, ofKnown func(index int) recognition.Facts) {
	endpoints := &v1alpha1.FindingSpec{}
	for i := range results {
		if r := &results[i].spec; len(r.Details.EndpointLocations) > 0 {
			endpoints = r // the tool reports endpoints; otherwise those of other clients are not compared
			break
		}
	}
	return digests(endpoints, func(i int) *v1alpha1.FindingSpec { return &results[i].spec }),
		digests(endpoints, func(i int) *v1alpha1.FindingSpec { return &existing[i].Spec })
}

func digests(reported *v1alpha1.FindingSpec,
	of func(index int) *v1alpha1.FindingSpec) func(index int) recognition.Facts {
	done := map[int]recognition.Facts{}
	return func(i int) recognition.Facts {
		facts, ok := done[i]
		if !ok {
			facts = factsOfSpec(of(i), reported)
			done[i] = facts
		}
		return facts
	}
}

func factsOfSpec(of, reported *v1alpha1.FindingSpec) recognition.Facts {
	spec := *of.DeepCopy()
	spec.ProjectRef, spec.Tool, spec.Analysis, spec.Agent = v1alpha1.ProjectReference{}, "", "", nil
	spec.Evidence = "" // compared already, and may contain the digest of an earlier version
	for i, f := range spec.Fingerprints {
		spec.Fingerprints[i].Value = fingerprints.WithoutOrdinal(f.Name, f.Value)
	}
	at := spec.Details.Place()
	spec.Details.Location = nil
	var own []*v1alpha1.FileLocation
	for i := range spec.Details.SupportingFiles {
		if place := &spec.Details.SupportingFiles[i]; at.FilePath != "" && place.FilePath == at.FilePath {
			place.FilePath, own = "", append(own, place)
		}
	}
	digest := func() string { return fingerprints.Hash(string(comparedFacts(&spec, reported))) }
	lines := digest()
	if len(own) == 0 {
		return recognition.Facts{Lines: lines, Distances: lines}
	}
	for _, place := range own {
		place.LineNumber -= at.LineNumber
	}
	return recognition.Facts{Lines: lines, Distances: "distances " + digest()}
}

// jobOf identifies the job that reports a finding: findings of different jobs may be one problem.
func jobOf(spec *v1alpha1.FindingSpec) string {
	return strings.Join([]string{spec.Tool, spec.Analysis, string(spec.ProjectRef.Name)}, "\n")
}

// decisionOf identifies a finding's decision, whoever made it, and the doubt about it; "" if there is no decision, and
// no undo may restore one.
func decisionOf(spec *v1alpha1.FindingSpec) string {
	t := &spec.Triage
	if findingstate.Declared(spec) == v1alpha1.UserStatusOpen && !restorable(t) {
		return ""
	}
	end, doubt := "", ""
	if t.ExpiresAt != nil {
		end = t.ExpiresAt.UTC().Format(time.RFC3339)
	}
	if spec.Doubt != nil {
		doubt = spec.Doubt.Reason
	}
	return strings.Join([]string{string(findingstate.Declared(spec)), string(t.Reason), end, t.Basis, doubt}, "\n")
}

// sameSpec reports whether two findings agree in every fact and in their triage.
func sameSpec(a, b *v1alpha1.FindingSpec) bool {
	return bytes.Equal(encodeSpec(a), encodeSpec(b))
}

// comparedFacts encodes the facts whose change rewrites a finding. facts_test.go lists those about which it differs
// from what is recorded as an update.
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
