package importer

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/internal/truncate"
)

// The bounds of the CRDs, in characters as the API server counts them: code points.
const (
	maxTool            = 128
	maxToolVersion     = 128
	MaxCommit          = 128
	maxRuleID          = 512
	maxClass           = 256
	maxVulnerabilityID = 128
	maxAliases         = 8
	maxPURL            = 512
	maxPackageName     = 256
	maxPackageVersion  = 128
	maxFixedVersion    = 256
	maxToolSeverity    = 64
	maxAgentName       = 128
	maxSecretType      = 128
	maxFingerprints    = 8
	maxFingerprintName = 128
	maxFingerprint     = 256
	maxTitle           = 512
	maxDescription     = 16000
	maxCode            = 9000
	maxRemediation     = 9000
	maxFilePath        = 1024
	maxURL             = 1536
	maxSupportingFiles = 10
	maxEndpoints       = 10
	maxEndpointAction  = 128
	maxScanMessage     = 4096
	maxJustification   = 256
	maxAnalysis        = 256
)

// cutMark ends a text that was cut.
const cutMark = fingerprints.CutMark

// cut shortens s to at most limit characters, the mark included.
func cut(s string, limit int) string { return truncate.Marked(s, limit, cutMark) }

// clean returns a text that the API server stores unchanged. An apply request is read as YAML, which refuses most
// control characters and folds some line ends into blanks; a text that came back changed would look new at every
// import.
func clean(s string) string {
	if isPlain(s) {
		return s
	}
	s = lineEnds.Replace(strings.ToValidUTF8(s, "\uFFFD"))
	return strings.Map(func(r rune) rune {
		if inYAML(r) {
			return r
		}
		return utf8.RuneError
	}, s)
}

// inYAML reports whether YAML accepts the character in a quoted text. There it would fold a line feed, U+2028 and
// U+2029, but encoding/json escapes these.
func inYAML(r rune) bool {
	return r == '\t' || r == '\n' || r >= 0x20 && r <= 0x7e || r >= 0xa0 && r <= 0xd7ff ||
		r >= 0xe000 && r <= 0xfffd && r != 0xfeff || r >= 0x10000
}

// inUTF8 percent-encodes the bytes of a path that are not valid UTF-8. clean would replace all of them with U+FFFD, and
// two files could have one path.
func inUTF8(path string) string {
	if utf8.ValidString(path) {
		return path
	}
	var b strings.Builder
	for path != "" {
		r, n := utf8.DecodeRuneInString(path)
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, "%%%02X", path[0])
		} else {
			b.WriteString(path[:n])
		}
		path = path[n:]
	}
	return b.String()
}

var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// isPlain reports whether a text holds only printable ASCII, tabs and line feeds, as most texts do: then there is
// nothing to clean.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 && c != '\t' && c != '\n' || c > 0x7e {
			return false
		}
	}
	return true
}

// paragraph returns a clean text without blanks around it.
func paragraph(s string) string { return strings.TrimSpace(clean(s)) }

// block returns a clean text that keeps the indentation of its first line.
func block(s string) string {
	return strings.TrimRight(strings.TrimLeft(clean(s), "\n"), " \t\n")
}

// line returns the first non-blank line of a text, with single blanks.
func line(s string) string {
	for l := range strings.Lines(clean(s)) {
		if fields := strings.Fields(l); len(fields) > 0 {
			return strings.Join(fields, " ")
		}
	}
	return ""
}

// OneLine returns the first non-blank line of a text, cut to the limit.
func OneLine(s string, limit int) string { return cut(line(s), limit) }

// ciCommand matches what GitHub's runner, Azure's agent and TeamCity execute if a job prints it, anywhere in a line.
var ciCommand = regexp.MustCompile(`##([A-Za-z]*\[)`)

// WithoutCommands returns a text with those commands of CI systems broken up that stand anywhere in a line.
func WithoutCommands(s string) string { return ciCommand.ReplaceAllString(s, `#\x23$1`) }
