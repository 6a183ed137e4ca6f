package fingerprints

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

// Takes reports whether the set contains a possible name of the result's record, and removes that name, because no
// other result can have the record.
func (id *Identity) Takes(names sets.Set[string]) bool {
	for _, name := range slices.Concat([]string{id.Name}, id.Exact, id.Shared) {
		if names.Has(name) {
			names.Delete(name)
			return true
		}
	}
	return false
}

// Match returns for each result the name of its record. That is the name of its identity, unless the record was created
// in a scan with more or fewer similar results: then its name is more or less specific.
//
// If several results match a record, it goes to the first for which one of fits returns true. These are tried in order,
// and report whether the result agrees with the named record. The identities must contain no duplicates and be sorted
// by name, so that the order in a file does not matter.
func Match(identities []Identity, recorded func(name string) bool, fits ...func(result int,
	name string) bool) []string {
	names := make([]string, len(identities))
	taken := map[string]bool{}
	claim := func(i int, name string) bool {
		if names[i] != "" || taken[name] || !recorded(name) {
			return false
		}
		names[i], taken[name] = name, true
		return true
	}
	for i := range identities {
		for _, name := range identities[i].Exact {
			if claim(i, name) {
				break
			}
		}
	}
	for i := range identities {
		claim(i, identities[i].Name)
	}
	for _, fit := range fits {
		for i := range identities {
			for _, name := range identities[i].Shared {
				if recorded(name) && fit(i, name) && claim(i, name) {
					break
				}
			}
		}
	}
	for i := range identities {
		if names[i] == "" {
			names[i] = identities[i].Name
		}
	}
	return names
}
