package render

import (
	"bytes"
	"unique"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// rest is what the full shape shows in addition to shape v2. Findings of one rule, vulnerability and package
// share the JSON of their facts; findings of one scan and decision share that of their course. Only the
// fingerprints are specific to each finding.
type rest struct {
	course, facts unique.Handle[string]
	// fingerprints is empty if there are none.
	fingerprints string
}

const (
	beforeFacts        = `,"facts":`
	beforeFingerprints = `,"fingerprints":`
	noFingerprints     = `[]`
)

func newRest(f *v1alpha1.Finding) (rest, error) {
	facts, err := JSON(factsOf(&f.Spec))
	if err != nil {
		return rest{}, err
	}
	r := rest{course: unique.Make(courseOf(f)), facts: unique.Make(string(facts))}
	if len(f.Spec.Fingerprints) > 0 {
		fingerprints, err := JSON(convert(f.Spec.Fingerprints, fingerprintOf))
		if err != nil {
			return rest{}, err
		}
		r.fingerprints = string(fingerprints)
	}
	return r, nil
}

// courseOf returns the members about the course of a finding, such as when it was closed.
func courseOf(f *v1alpha1.Finding) string {
	closed := valueOf(f.Spec.Closed)
	var buffer bytes.Buffer
	w := writer{buffer: &buffer, first: true}
	w.time("closed_at", &closed.At)
	w.text("closed_scan_id", closed.ScanID)
	w.text("commit_hash", f.Spec.CommitHash)
	w.text("decided_by", f.Spec.Triage.By)
	w.text("decision_stale", findingstate.WhyStale(f))
	w.time("expires_at", f.Spec.Triage.ExpiresAt)
	w.enum("reason", string(f.Spec.Triage.Reason))
	w.object("verdict", func() { w.verdict(valueOf(findingstate.Verdict(f))) })
	return buffer.String()
}

func (w *writer) verdict(v v1alpha1.FindingVerdict) {
	w.text("by", v.By)
	w.text("comment", v.Comment)
	w.text("policy", string(v.Policy))
	w.enum("reason", string(v.Reason))
	w.text("review_issue", v.ReviewIssue)
	w.time("since", &v.Since)
	w.enum("user_status", string(v.UserStatus))
}

func (r *rest) length() int {
	return len(`,`) + len(r.course.Value()) + len(beforeFacts) + len(r.facts.Value()) + len(beforeFingerprints) +
		max(len(r.fingerprints), len(noFingerprints))
}

// append appends the members to an object without its closing brace.
func (r *rest) append(to []byte) []byte {
	to = append(append(to, ','), r.course.Value()...)
	to = append(append(to, beforeFacts...), r.facts.Value()...)
	to = append(to, beforeFingerprints...)
	if r.fingerprints == "" {
		return append(to, noFingerprints...)
	}
	return append(to, r.fingerprints...)
}

// LenFull returns how many bytes AppendFull appends.
func (f *Finding) LenFull(shown *Shown) int { return f.LenV2(shown) + f.rest.length() }

// AppendFull appends the JSON of the full shape.
func (f *Finding) AppendFull(to []byte, shown *Shown) []byte {
	to = f.AppendV2(to, shown)
	return append(f.rest.append(bytes.TrimSuffix(to, []byte("}"))), '}')
}

func factsOf(spec *v1alpha1.FindingSpec) openapi.FindingFacts {
	inPackage, vulnerability, suppression := valueOf(spec.Package), valueOf(spec.Vulnerability), valueOf(spec.Suppression)
	facts := openapi.FindingFacts{
		Category:   enum[openapi.FindingCategory](spec.Category),
		Class:      spec.Class,
		Confidence: enum[openapi.Level](spec.Confidence),
		Package: openapi.FindingPackage{
			FixedVersion: inPackage.FixedVersion, Name: inPackage.Name, Purl: inPackage.PURL, Version: inPackage.Version,
		},
		RuleId:     spec.RuleID,
		SecretType: spec.SecretType,
		Suppression: openapi.FindingSuppression{
			Justification: suppression.Justification, Kind: enum[openapi.SuppressionKind](suppression.Kind),
		},
		Tool:          spec.Tool,
		ToolSeverity:  spec.Details.ToolSeverity,
		Vulnerability: openapi.FindingVulnerability{Aliases: stringsOf(vulnerability.Aliases), Id: vulnerability.ID},
	}
	if tenths, ok := findingquery.Tenths(spec.Details.Score); ok {
		facts.Score = new(float32(tenths) / 10)
	}
	return facts
}

func fingerprintOf(f v1alpha1.Fingerprint) openapi.Fingerprint {
	return openapi.Fingerprint{Name: f.Name, Value: f.Value}
}
