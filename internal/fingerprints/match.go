package fingerprints

import "slices"

// Takes reports whether the set holds a name that the record of a result may bear, and takes it out: it is no
// other's record.
func (id *Identity) Takes(names map[string]bool) bool {
	for _, name := range slices.Concat([]string{id.Name}, id.Exact, id.Shared) {
		if names[name] {
			delete(names, name)
			return true
		}
	}
	return false
}

// Match finds for each result the name of what was recorded of it. That is the name of its
// identity, unless the record was made in a scan with more or fewer results like it: it then
// bears a name that is more, or less, specific, and is the same record all the same.
//
// A record of which several results could be the next goes to one for which fits holds, tried
// in their order: does the result say what the record of that name says? The identities hold
// no duplicates, and are sorted by name, so that nothing depends on the order of a file.
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
