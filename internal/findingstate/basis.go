package findingstate

import (
	"slices"
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/internal/truncate"
)

// critical is a severity that exists only in the basis of decisions: the worst of the high findings. The
// REST contract has no such level.
const critical = "critical"

// maxBasisPart bounds the code and the doubt in a basis, maxBasisVersion the version, in characters. The
// admission policy findings-triage-stamp truncates at the same lengths.
const (
	maxBasisPart    = 32
	maxBasisVersion = 64
	// maxBasisSeverity bounds the severity, and no severity has a longer name.
	maxBasisSeverity = len(critical)
)

// basis holds the facts that a decision is based on. Unknown facts are empty.
type basis struct {
	severity, code, doubt, version string
	// plain means that severity and code come from a finding without evidence: imported by an earlier version, which rated
	// some tools differently, or written by hand. They are compared only with another plain basis, so that the first
	// import by this version makes no decision stale.
	plain bool
}

// Basis returns the facts that a decision made now is based on, in the format of spec.triage.basis. The
// admission policy findings-triage-stamp produces the same text, except for the code of a finding without
// evidence.
func Basis(spec *v1alpha1.FindingSpec) string { return basisOf(spec).String() }

func basisOf(spec *v1alpha1.FindingSpec) basis {
	b := basis{severity: severityOf(&spec.Details), doubt: basisPart(doubtOf(spec.Doubt)), plain: spec.Evidence == ""}
	if p := spec.Package; p != nil {
		b.version = truncate.To(p.Version, maxBasisVersion)
	}
	// If the version is known, the code does not count: in a lock file, the lines around it change with other packages.
	if b.version == "" {
		b.code = basisPart(codeOf(spec))
	}
	return b
}

func severityOf(d *v1alpha1.FindingDetails) string {
	if d.Severity == v1alpha1.LevelHigh &&
		(strings.HasPrefix(d.Score, "9.") || d.Score == "10.0" || strings.EqualFold(d.ToolSeverity, critical)) {
		return critical
	}
	return string(d.Severity)
}

// levels are the severities of a basis, the lowest first.
var levels = []string{string(v1alpha1.LevelLow), string(v1alpha1.LevelMedium), string(v1alpha1.LevelHigh), critical}

// Outgrown reports whether the facts go beyond those that a decision was based on: another version of the package, or a
// higher severity. Unknown facts do not count.
func Outgrown(decided, facts *v1alpha1.FindingSpec) bool {
	was, is := basisOf(decided), basisOf(facts)
	return was.version != "" && is.version != "" && was.version != is.version || was.below(is)
}

// LessSevere reports whether the facts have a lower severity than the others. An unknown severity does not count.
func LessSevere(facts, others *v1alpha1.FindingSpec) bool {
	return basisOf(facts).below(basisOf(others))
}

func (b basis) below(other basis) bool {
	return b.plain == other.plain && b.severity != "" &&
		slices.Index(levels, b.severity) < slices.Index(levels, other.severity)
}

// doubtOf returns a text that identifies a doubt.
func doubtOf(d *v1alpha1.FindingDoubt) string {
	switch {
	case d == nil:
		return ""
	case d.ScanID != "":
		return d.ScanID
	default:
		return d.Reason
	}
}

// codeOf returns the digest of the code at the location.
func codeOf(spec *v1alpha1.FindingSpec) string {
	if spec.Evidence == "" {
		return fingerprints.CodeDigest(spec.Details.Code)
	}
	return fingerprints.ParseEvidence(spec.Evidence).Code
}

// basisPart makes a text usable as a part before others: without separators, and of bounded length.
func basisPart(s string) string {
	return truncate.To(strings.ReplaceAll(s, basisSeparator, ","), maxBasisPart)
}

const basisSeparator = ";"

// names returns the names that severity and code have in the text of the basis.
func (b basis) names() (severity, code string) {
	if b.plain {
		return "rated", "text"
	}
	return "severity", "code"
}

// String puts the version, which may be any text, last.
func (b basis) String() string {
	var parts []string
	severity, code := b.names()
	for _, part := range []struct{ name, value string }{
		{severity, b.severity}, {code, b.code}, {"doubt", b.doubt}, {"version", b.version},
	} {
		if part.value != "" {
			parts = append(parts, part.name+"="+part.value)
		}
	}
	return strings.Join(parts, basisSeparator)
}

// parseBasis parses the parts that it knows; a basis written by hand may contain anything. It truncates them as basisOf
// does, so that a basis that is completed with the facts is not longer than the status may hold.
func parseBasis(text string) (b basis) {
	for text != "" {
		name, rest, _ := strings.Cut(text, "=")
		if name == "version" {
			b.version = truncate.To(rest, maxBasisVersion)
			return b
		}
		value, more, _ := strings.Cut(rest, basisSeparator)
		switch name {
		case "severity", "rated":
			b.severity, b.plain = truncate.To(value, maxBasisSeverity), name == "rated"
		case "code", "text":
			b.code = basisPart(value)
		case "doubt":
			b.doubt = basisPart(value)
		}
		text = more
	}
	return b
}

// filled fills unknown facts from another basis. It never fills the doubt, because a doubt that arises later is a
// change.
func (b basis) filled(from basis) basis {
	if b.plain && !from.plain {
		b.severity, b.code, b.plain = "", "", false
	}
	take := func(to *string, value string) {
		if *to == "" {
			*to = value
		}
	}
	take(&b.version, from.version)
	if b.plain == from.plain {
		take(&b.severity, from.severity)
		take(&b.code, from.code)
	}
	return b
}

// within reports whether other, a recorded basis, agrees with all known facts of b, and has the same doubt. A basis
// without a doubt was made while there was none, so a recorded one with a doubt belongs to an earlier decision.
func (b basis) within(other basis) bool {
	same := func(a, b string) bool { return a == "" || a == b }
	return b.doubt == other.doubt && same(b.version, other.version) &&
		(b.plain && !other.plain || same(b.severity, other.severity) && same(b.code, other.code))
}
