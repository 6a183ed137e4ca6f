// Package fingerprints derives what is stored about a result's identity: the names of findings and issues, the keys by
// which a finding and the issue of a pull request are one problem, the digests in the evidence, and the names of tools.
//
// Package recognition decides which finding a result is. The name decides only for findings of versions that stored no
// evidence, for findings and issues that cannot be read, and for issues that nothing else recognises.
//
// A result is identified by its tool, category, rule and path, and by the scanner's content fingerprint, else by
// message and snippet. Line numbers do not count, because code moves. If that is not unique within a scan, the message
// is added, then the column, then an ordinal in the order of the lines. The order of the results does not matter.
package fingerprints

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
)

// Scope holds what all results of a scan have in common.
type Scope struct {
	// Project within the repository that the results belong to.
	Repository, Project, Tool, Category string
	// Analysis distinguishes scans of one tool and category; empty: none.
	Analysis string
	// Prefix of the names, including its dash; default "f-".
	Prefix string
}

// Result holds the parts of a result that determine its identity.
type Result struct {
	Rule, Path string
	// Fingerprints as the scanner gave them, by name.
	Fingerprints     map[string]string
	Message, Snippet string
	Line, Column     int32
	ResultKey
}

// ResultKey identifies a result in its scan: two results with the same key are duplicates.
type ResultKey struct {
	// Digest is that of the result's data. About distinguishes what the digest does not, such as packages.
	Digest [32]byte
	About  string
	// Detail tells apart results that agree in all else. The names of other results do not depend on it.
	Detail string
}

// Identity of a result.
type Identity struct {
	// Name of the finding. Unique among the identities that are not duplicates.
	Name string
	// Exact holds further names, most specific first, that no other result has. The finding has one
	// of them if it was created in a scan with more similar results.
	Exact []string
	// Shared holds further names, most specific first, that all similar results share. The finding
	// has one of them if it was created in a scan with fewer similar results.
	Shared []string
	// Duplicate means that an earlier result of the scan is the same; Name is that result's name.
	Duplicate bool
}

// Identify returns an identity for each result of one scan, in the order given.
func Identify(scope Scope, results []Result) []Identity {
	all := make([]map[string]string, len(results))
	for i := range results {
		all[i] = results[i].Fingerprints
	}
	constant := Constants(all)
	keyed := make([]*keyedResult, len(results)) // nil for duplicates
	alike := alikeBut(results)
	groups := map[string][]int{} // by rule, path and content
	for _, list := range alike {
		i := list[0]
		r := &results[i]
		keyed[i] = newKeyed(r, content(r, constant))
		id := frame(r.Rule, r.Path, keyed[i].base)
		groups[id] = append(groups[id], i)
	}
	out := make([]Identity, len(results))
	for _, group := range groups {
		identifyGroup(scope, keyed, group, out)
	}
	for _, list := range alike {
		details := 0
		for at, i := range list[1:] {
			before := list[at]
			if results[before].Detail == results[i].Detail {
				out[i] = Identity{Name: out[before].Name, Duplicate: true}
				continue
			}
			details++
			out[i] = Identity{Name: derived(out[list[0]].Name, "detail", details)}
		}
	}
	return out
}

// alikeBut returns lists of the results that agree in all but the detail, sorted by it and then as given.
func alikeBut(results []Result) map[ResultKey][]int {
	out := make(map[ResultKey][]int, len(results))
	for i := range results {
		key := results[i].ResultKey
		key.Detail = ""
		out[key] = append(out[key], i)
	}
	for _, list := range out {
		slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(results[a].Detail, results[b].Detail) })
	}
	return out
}

// keyedResult holds the keys of a result, increasingly specific.
type keyedResult struct {
	*Result
	base, message, column string
}

func newKeyed(r *Result, content string) *keyedResult {
	k := &keyedResult{Result: r}
	k.base = content
	k.message = frame(content, "message", r.Message)
	k.column = frame(content, "message and column", r.Message, strconv.Itoa(int(r.Column)))
	return k
}

// identifyGroup names results that have rule, path and content in common.
func identifyGroup(scope Scope, keyed []*keyedResult, group []int, out []Identity) {
	messages := map[string]int{}
	for _, i := range group {
		messages[keyed[i].message]++
	}
	// The order distinguishes results that also have the same column.
	slices.SortFunc(group, func(a, b int) int {
		x, y := keyed[a], keyed[b]
		return cmp.Or(cmp.Compare(x.Line, y.Line), cmp.Compare(x.Snippet, y.Snippet),
			bytes.Compare(x.Digest[:], y.Digest[:]), cmp.Compare(x.About, y.About))
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
