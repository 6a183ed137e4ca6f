package fingerprints

import (
	"slices"
	"strings"
)

// contentFingerprints lists, best first, the names of fingerprints that scanners compute from the code. All others are
// ignored. Those of gitleaks, for example, include the commit, and would make every finding new with each commit.
var contentFingerprints = []string{
	"primarylocationlinehash", // CodeQL, and tools that follow GitHub's advice
	"matchbasedid",            // Semgrep
	"contexthash",             // Flawfinder
	"contextregionhash",       // SARIF SDK
	"equalindicator",          // Qodana
	"identity",                // Snyk Code
}

// placeholders are values that tools write instead of a fingerprint.
var placeholders = map[string]bool{
	"": true, "requires login": true, "redacted": true, "undefined": true, "null": true,
	"none": true, "nil": true, "n/a": true, "unknown": true, "0": true, "-": true,
}

// IsPlaceholder reports whether tools write this value if they have or show none.
func IsPlaceholder(value string) bool { return placeholders[strings.ToLower(strings.TrimSpace(value))] }

// Best returns the name and the value of the best usable fingerprint, as one text; "" if there is
// none. Those named in constant are ignored.
func Best(all map[string]string, constant map[string]bool) string {
	if best := bestName(all, constant); best != "" {
		return frame(best, all[best])
	}
	return ""
}

// bestName returns the name of the best usable fingerprint, or "".
func bestName(all map[string]string, constant map[string]bool) string {
	best := ""
	for name, value := range all {
		if !IsContent(name, value) || constant[name] {
			continue
		}
		if a, b := rank(name), rank(best); best == "" || a < b || a == b && name < best {
			best = name
		}
	}
	return best
}

// IsContent reports whether a fingerprint can identify a finding across scans: its name is one of
// contentFingerprints, in any version, and its value is not a placeholder.
func IsContent(name, value string) bool {
	return rank(name) < len(contentFingerprints) && !IsPlaceholder(value)
}

// rank orders fingerprint names; the version, as in "primaryLocationLineHash/v1", does not count.
func rank(name string) int {
	name, _, _ = strings.Cut(strings.ToLower(name), "/")
	if at := slices.Index(contentFingerprints, name); at >= 0 {
		return at
	}
	return len(contentFingerprints)
}

// constantFrom is how many results must share one value before it counts as an unknown placeholder. Fewer results may
// share it by chance, and one more would change the decision.
const constantFrom = 5

// Constants returns the names of fingerprints whose value is the same in all results that have them,
// if these are at least constantFrom.
func Constants(results []map[string]string) map[string]bool {
	type tally struct {
		value string
		count int
		mixed bool
	}
	tallies := map[string]*tally{}
	for _, fingerprints := range results {
		for name, value := range fingerprints {
			t := tallies[name]
			if t == nil {
				t = &tally{value: value}
				tallies[name] = t
			}
			t.count++
			t.mixed = t.mixed || value != t.value
		}
	}
	out := map[string]bool{}
	for name, t := range tallies {
		if !t.mixed && t.count >= constantFrom {
			out[name] = true
		}
	}
	return out
}

// content returns the content that identifies a result: its best usable fingerprint, else its
// message and snippet.
func content(result *Result, constant map[string]bool) string {
	if best := bestName(result.Fingerprints, constant); best != "" {
		return frame("fingerprint", best, result.Fingerprints[best])
	}
	return frame("message and snippet", result.Message, result.Snippet)
}
