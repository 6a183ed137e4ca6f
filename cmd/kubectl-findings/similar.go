package main

import (
	"slices"
	"strings"
)

// maxSimilar bounds how many names are suggested.
const maxSimilar = 3

// similar returns the names that begin with the given one, or else those a few letters away from it.
func similar(name string, names []string) []string {
	var near []string
	for _, other := range names {
		if name != "" && strings.HasPrefix(other, name) {
			near = append(near, other)
		}
	}
	if len(near) == 0 {
		near = slices.DeleteFunc(slices.Clone(names),
			func(other string) bool { return distance(name, other) > max(2, len(name)/8) })
		slices.SortStableFunc(near, func(a, b string) int { return distance(name, a) - distance(name, b) })
	}
	return near[:min(len(near), maxSimilar)]
}

// distance returns how many letters must be inserted, deleted or changed to turn one name into the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
