package fingerprints

import (
	"sort"
	"strings"
)

// contentFingerprints are, best first, the names of fingerprints that scanners compute
// from the code found. Every other name is passed over: what gitleaks writes there is the
// commit, and a value that changes with the commit would make every finding a new one.
var contentFingerprints = []string{
	"primarylocationlinehash", // CodeQL, and whoever followed GitHub's advice
	"matchbasedid",            // Semgrep
	"contexthash",             // Flawfinder
	"contextregionhash",       // SARIF SDK
	"equalindicator",          // Qodana
	"identity",                // Snyk Code
}

// placeholders are what tools write where they have no fingerprint.
var placeholders = map[string]bool{
	"": true, "requires login": true, "redacted": true, "undefined": true, "null": true,
	"none": true, "nil": true, "n/a": true, "unknown": true, "0": true, "-": true,
}

// IsPlaceholder says whether a value is one that tools write where they have none, or hide it.
func IsPlaceholder(value string) bool { return placeholders[strings.ToLower(strings.TrimSpace(value))] }

// Constants returns the names of fingerprints whose value is the same in all of many results.
func Constants(results []map[string]string) map[string]bool {
	list := make([]Result, len(results))
	for i := range results {
		list[i].Fingerprints = results[i]
	}
	return constants(list)
}

// Best returns the name and the value of the best usable fingerprint, as one text; "" where
// none is. Those named in constant are passed over.
func Best(all map[string]string, constant map[string]bool) string {
	best := ""
	for name, value := range all {
		if !IsContent(name, value) || constant[name] {
			continue
		}
		if a, b := rank(name), rank(best); best == "" || a < b || a == b && name < best {
			best = name
		}
	}
	if best == "" {
		return ""
	}
	return frame(best, all[best])
}

// IsContent says whether a fingerprint of that name and value can know a finding again:
// the name is one of content, whatever its version, and the value is no placeholder.
func IsContent(name, value string) bool {
	return rank(name) < len(contentFingerprints) && !IsPlaceholder(value)
}

// rank orders fingerprint names; "primaryLocationLineHash/v1" ranks as without its version.
func rank(name string) int {
	name, _, _ = strings.Cut(strings.ToLower(name), "/")
	for i, known := range contentFingerprints {
		if name == known {
			return i
		}
	}
	return len(contentFingerprints)
}

// constantFrom is how many results must share one value before it is held to be a
// placeholder that is not known here. Fewer may well be alike, and what is decided on few
// is decided otherwise when one more is found.
const constantFrom = 5

// constants are the names whose value is the same in every one of many results.
func constants(results []Result) map[string]bool {
	type tally struct {
		value string
		count int
		mixed bool
	}
	tallies := map[string]*tally{}
	for i := range results {
		for name, value := range results[i].Fingerprints {
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

// content returns what a result is known by: its best usable fingerprint, else its
// message and snippet.
func content(result *Result, constant map[string]bool) string {
	names := make([]string, 0, len(result.Fingerprints))
	for name, value := range result.Fingerprints {
		if IsContent(name, value) && !constant[name] {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return frame("message and snippet", result.Message, result.Snippet)
	}
	sort.Slice(names, func(i, j int) bool {
		if a, b := rank(names[i]), rank(names[j]); a != b {
			return a < b
		}
		return names[i] < names[j]
	})
	return frame("fingerprint", names[0], result.Fingerprints[names[0]])
}
