package findingstate

import (
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Basis is what a decision about a finding rests on. Where it changes, the decision is kept, and
// may be stale.
type Basis struct {
	// Code at the place, as a digest; of a Secret it is the secret.
	Code string
	// Version of the package.
	Version string
	// Severity that the scanner gives.
	Severity string
	// Doubt is the scan that recognised the finding on weak evidence, the last one.
	Doubt string
}

// BasisOf returns what a decision about the finding rests on now. What counts depends on the
// category: of a package its version, of code and of a secret the code at the place.
func BasisOf(spec *v1alpha1.FindingSpec) Basis {
	b := Basis{Severity: string(spec.Details.Severity)}
	if spec.Category != v1alpha1.CategoryPackage {
		b.Code = codeOf(spec)
	}
	if spec.Package != nil {
		b.Version = spec.Package.Version
	}
	if spec.Doubt != nil {
		b.Doubt = spec.Doubt.ScanID
	}
	return b
}

// codeOf returns the digest of the code that the importer stores, the second part of the evidence.
func codeOf(spec *v1alpha1.FindingSpec) string {
	_, rest, _ := strings.Cut(spec.Evidence, ".")
	code, _, _ := strings.Cut(rest, ".")
	return code
}

// Changed says what a decision that was made on b no longer rests on; nil where it rests on the
// same. What was not known at the time of the decision has not changed.
func (b Basis) Changed(now Basis) []string {
	var out []string
	add := func(name, was, is string) {
		if was != "" && is != "" && was != is {
			out = append(out, name)
		}
	}
	add("code", b.Code, now.Code)
	add("version", b.Version, now.Version)
	add("severity", b.Severity, now.Severity)
	if now.Doubt != "" && now.Doubt != b.Doubt {
		out = append(out, "identity")
	}
	return out
}
