// Package fingerprints decides which finding a result is, so that a rescan knows it again
// and what people decided about it stays with it.
//
// A result is known by its tool, category, rule and path, and by the content fingerprint
// that its scanner gave, else by message and snippet. Line numbers take no part: code
// moves. Where that is not unique within a scan, the message is added, then the column,
// then an ordinal in the order of the lines. Nothing depends on the order of the results.
package fingerprints

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
)

// Scope is what all results of a scan have in common.
type Scope struct {
	// Project is what within the repository the results belong to.
	Repository, Project, Tool, Category string
	// Analysis that tells scans of one tool and category apart; empty: none.
	Analysis string
	// Prefix of the names, with its dash; "f-" where empty.
	Prefix string
}

// Result is what of a result takes part in its identity.
type Result struct {
	Rule, Path string
	// Fingerprints as the scanner gave them, by name.
	Fingerprints     map[string]string
	Message, Snippet string
	Line, Column     int32
	// Digest of everything that is known of the result: two results with the same are
	// the same result twice.
	Digest [32]byte
}

// Identity of a result.
type Identity struct {
	// Name of the finding. Unique among the identities that are not duplicates.
	Name string
	// Exact are further names, most specific first, that are of no other result. The
	// finding bears one where it was created in a scan that held more results like it.
	Exact []string
	// Shared are further names, most specific first, that are of all results like it.
	// The finding bears one where it was created in a scan that held fewer of them.
	Shared []string
	// Duplicate says that another result of the scan is the same in everything; Name is
	// then that one's.
	Duplicate bool
}

// Identify returns an identity for each result of one scan, in the order given.
func Identify(scope Scope, results []Result) []Identity {
	constant := constants(results)
	keyed := make([]*keyedResult, len(results))
	for i := range results {
		keyed[i] = newKeyed(&results[i], content(&results[i], constant))
	}
	out := make([]Identity, len(results))
	for i, first := range markDuplicates(keyed) {
		out[i].Duplicate = first != i
	}
	groups := groupBy(keyed, out, func(k *keyedResult) string { return k.base })
	for _, group := range groups {
		identifyGroup(scope, keyed, group, out)
	}
	for i, k := range keyed {
		if out[i].Duplicate {
			out[i] = Identity{Name: out[k.same].Name, Duplicate: true}
		}
	}
	return out
}

// keyedResult holds the ever more specific keys of a result.
type keyedResult struct {
	*Result
	base, message, column string
	// same is the index of the first result with this digest.
	same int
}

func newKeyed(r *Result, content string) *keyedResult {
	k := &keyedResult{Result: r}
	k.base = content
	k.message = frame(content, "message", r.Message)
	k.column = frame(content, "message and column", r.Message, strconv.Itoa(int(r.Column)))
	return k
}

func markDuplicates(keyed []*keyedResult) []int {
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

// groupBy returns the indexes, duplicates left out, of results with the same rule, path and key.
func groupBy(keyed []*keyedResult, identities []Identity, key func(*keyedResult) string) map[string][]int {
	groups := map[string][]int{}
	for i, k := range keyed {
		if !identities[i].Duplicate {
			id := frame(k.Rule, k.Path, key(k))
			groups[id] = append(groups[id], i)
		}
	}
	return groups
}

// identifyGroup names results that have rule, path and content in common.
func identifyGroup(scope Scope, keyed []*keyedResult, group []int, out []Identity) {
	messages := map[string]int{}
	for _, i := range group {
		messages[keyed[i].message]++
	}
	// Results alike in the column too are told apart by where they stand to each other.
	slices.SortFunc(group, func(a, b int) int {
		x, y := keyed[a], keyed[b]
		return cmp.Or(cmp.Compare(x.Line, y.Line), cmp.Compare(x.Snippet, y.Snippet), bytes.Compare(x.Digest[:], y.Digest[:]))
	})
	ordinals := map[string]int{}
	for _, i := range group {
		k := keyed[i]
		ordinal := ordinals[k.column]
		ordinals[k.column]++
		base := name(scope, k.Result, k.base, 0)
		message := name(scope, k.Result, k.message, 0)
		column := name(scope, k.Result, k.column, ordinal)
		switch {
		case len(group) == 1:
			out[i] = Identity{Name: base, Exact: []string{column, message}}
		case messages[k.message] == 1:
			out[i] = Identity{Name: message, Exact: []string{column}, Shared: []string{base}}
		default:
			out[i] = Identity{Name: column, Shared: []string{message, base}}
		}
	}
}
