package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSimilarNames(t *testing.T) {
	names := []string{"f-abcdefgh", "f-abcdefgx", "f-zzzzzzzz", "dashboard", "dash", "board"}
	for reason, tc := range map[string]struct {
		name string
		want []string
	}{
		"the beginning of two":    {"f-abc", []string{"f-abcdefgh", "f-abcdefgx"}},
		"more than the whole":     {"f-zzzzzzzzz", []string{"f-zzzzzzzz"}},
		"a letter left out":       {"dashbord", []string{"dashboard"}},
		"two letters swapped":     {"dsahboard", []string{"dashboard"}},
		"nearest first":           {"f-abcdefgy", []string{"f-abcdefgh", "f-abcdefgx"}},
		"nothing like it":         {"completely", nil},
		"nothing":                 {"", nil},
		"too short to be a guess": {"xyz", nil},
	} {
		if diff := cmp.Diff(tc.want, similar(tc.name, names)); diff != "" && len(tc.want)+len(similar(tc.name, names)) > 0 {
			t.Errorf("%s: like %q (-want +got):\n%s", reason, tc.name, diff)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "axc", 1}, {"abc", "bc", 1}, {"kitten", "sitting", 3}} {
		if got := distance(tc.a, tc.b); got != tc.want {
			t.Errorf("distance of %q and %q is %d, want %d", tc.a, tc.b, got, tc.want)
		}
	}
}
