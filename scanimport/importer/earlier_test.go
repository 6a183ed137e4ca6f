package importer

// The identity of the version before findings were recognised by evidence, as it was: findings that
// it named are in clusters, and must be recognised.

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"slices"
	"sort"
	"strconv"
	"strings"
)

type earlierScope struct {
	Repository, Project, Tool, Category string
	Prefix                              string
}

type earlierResult struct {
	Rule, Path       string
	Fingerprints     map[string]string
	Message, Snippet string
	Line, Column     int32
	Digest           [32]byte
}

type earlierIdentity struct {
	Name      string
	Exact     []string
	Shared    []string
	Duplicate bool
}

func earlierIdentify(scope earlierScope, results []earlierResult) []earlierIdentity {
	constant := earlierConstants(results)
	keyed := make([]*earlierKeyedResult, len(results))
	for i := range results {
		keyed[i] = earlierNewKeyed(&results[i], earlierContent(&results[i], constant))
	}
	out := make([]earlierIdentity, len(results))
	for i, first := range earlierMarkDuplicates(keyed) {
		out[i].Duplicate = first != i
	}
	groups := earlierGroupBy(keyed, out, func(k *earlierKeyedResult) string { return k.base })
	for _, group := range groups {
		earlierIdentifyGroup(scope, keyed, group, out)
	}
	for i, k := range keyed {
		if out[i].Duplicate {
			out[i] = earlierIdentity{Name: out[k.same].Name, Duplicate: true}
		}
	}
	return out
}

type earlierKeyedResult struct {
	*earlierResult
	base, message, column string
	same                  int
}

func earlierNewKeyed(r *earlierResult, content string) *earlierKeyedResult {
	k := &earlierKeyedResult{earlierResult: r}
	k.base = content
	k.message = earlierFrame(content, "message", r.Message)
	k.column = earlierFrame(content, "message and column", r.Message, strconv.Itoa(int(r.Column)))
	return k
}

func earlierMarkDuplicates(keyed []*earlierKeyedResult) []int {
	firsts := make(map[[32]byte]int, len(keyed))
	out := make([]int, len(keyed))
	for i, k := range keyed {
		first, there := firsts[k.Digest]
		if !there {
			first = i
			firsts[k.Digest] = i
		}
		k.same = first
		out[i] = first
	}
	return out
}

func earlierGroupBy(keyed []*earlierKeyedResult, identities []earlierIdentity, key func(*earlierKeyedResult) string) map[string][]int {
	groups := map[string][]int{}
	for i, k := range keyed {
		if !identities[i].Duplicate {
			id := earlierFrame(k.Rule, k.Path, key(k))
			groups[id] = append(groups[id], i)
		}
	}
	return groups
}

func earlierIdentifyGroup(scope earlierScope, keyed []*earlierKeyedResult, group []int, out []earlierIdentity) {
	messages := map[string]int{}
	for _, i := range group {
		messages[keyed[i].message]++
	}
	slices.SortFunc(group, func(a, b int) int {
		x, y := keyed[a], keyed[b]
		return cmp.Or(cmp.Compare(x.Line, y.Line), cmp.Compare(x.Snippet, y.Snippet), bytes.Compare(x.Digest[:], y.Digest[:]))
	})
	ordinals := map[string]int{}
	for _, i := range group {
		k := keyed[i]
		ordinal := ordinals[k.column]
		ordinals[k.column]++
		base := earlierName(scope, k.earlierResult, k.base, 0)
		message := earlierName(scope, k.earlierResult, k.message, 0)
		column := earlierName(scope, k.earlierResult, k.column, ordinal)
		switch {
		case len(group) == 1:
			out[i] = earlierIdentity{Name: base, Exact: []string{column, message}}
		case messages[k.message] == 1:
			out[i] = earlierIdentity{Name: message, Exact: []string{column}, Shared: []string{base}}
		default:
			out[i] = earlierIdentity{Name: column, Shared: []string{message, base}}
		}
	}
}

const earlierNameLength = 26

var earlierLowerBase32 = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

const earlierDefaultPrefix = "f-"

func earlierName(scope earlierScope, r *earlierResult, fingerprint string, ordinal int) string {
	return cmp.Or(scope.Prefix, earlierDefaultPrefix) + earlierHash(scope.Repository, scope.Project, scope.Tool, scope.Category,
		r.Rule, r.Path, fingerprint, strconv.Itoa(ordinal))
}

func earlierHash(fields ...string) string {
	sum := sha256.Sum256([]byte(earlierFrame(fields...)))
	return earlierLowerBase32.EncodeToString(sum[:])[:earlierNameLength]
}

func earlierFrame(fields ...string) string {
	var b strings.Builder
	for _, f := range fields {
		b.WriteString(strconv.Itoa(len(f)))
		b.WriteByte(':')
		b.WriteString(f)
	}
	return b.String()
}

var earlierContentFingerprints = []string{
	"primarylocationlinehash", // CodeQL, and whoever followed GitHub's advice
	"matchbasedid",            // Semgrep
	"contexthash",             // Flawfinder
	"contextregionhash",       // SARIF SDK
	"equalindicator",          // Qodana
	"identity",                // Snyk Code
}

var earlierPlaceholders = map[string]bool{
	"": true, "requires login": true, "redacted": true, "undefined": true, "null": true,
	"none": true, "nil": true, "n/a": true, "unknown": true, "0": true, "-": true,
}

func earlierIsContent(name, value string) bool {
	return earlierRank(name) < len(earlierContentFingerprints) && !earlierPlaceholders[strings.ToLower(strings.TrimSpace(value))]
}

func earlierRank(name string) int {
	name, _, _ = strings.Cut(strings.ToLower(name), "/")
	for i, known := range earlierContentFingerprints {
		if name == known {
			return i
		}
	}
	return len(earlierContentFingerprints)
}

const earlierConstantFrom = 5

func earlierConstants(results []earlierResult) map[string]bool {
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
		if !t.mixed && t.count >= earlierConstantFrom {
			out[name] = true
		}
	}
	return out
}

func earlierContent(result *earlierResult, constant map[string]bool) string {
	names := make([]string, 0, len(result.Fingerprints))
	for name, value := range result.Fingerprints {
		if earlierIsContent(name, value) && !constant[name] {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return earlierFrame("message and snippet", result.Message, result.Snippet)
	}
	sort.Slice(names, func(i, j int) bool {
		if a, b := earlierRank(names[i]), earlierRank(names[j]); a != b {
			return a < b
		}
		return names[i] < names[j]
	})
	return earlierFrame("fingerprint", names[0], result.Fingerprints[names[0]])
}
