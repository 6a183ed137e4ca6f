package fingerprints

import (
	"crypto/sha256"
	"fmt"
	"math/rand"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/test/harness"
)

var scope = Scope{Repository: "repo", Project: "proj", Tool: "tool", Category: "Code"}

// resultGen draws from few values, so that values repeat.
func resultGen() *rapid.Generator[Result] {
	return rapid.Custom(func(t *rapid.T) Result {
		r := Result{
			Rule:    rapid.SampledFrom([]string{"", "R1", "R1/sub", "R2"}).Draw(t, "rule"),
			Path:    rapid.SampledFrom([]string{"", "a.go", "b.go"}).Draw(t, "path"),
			Message: rapid.SampledFrom([]string{"", "m", "n"}).Draw(t, "message"),
			Snippet: rapid.SampledFrom([]string{"", "x()"}).Draw(t, "snippet"),
			Line:    rapid.Int32Range(0, 3).Draw(t, "line"),
			Column:  rapid.Int32Range(0, 2).Draw(t, "column"),
		}
		if value := rapid.SampledFrom([]string{"-", "requires login", "h1", "h2"}).Draw(t, "fingerprint"); value != "-" {
			name := rapid.SampledFrom([]string{"primaryLocationLineHash", "matchBasedId/v1", "commitSha"}).Draw(t, "name")
			r.Fingerprints = map[string]string{name: value}
		}
		r.Detail = rapid.SampledFrom([]string{"", "100", "900"}).Draw(t, "detail")
		return digested(r)
	})
}

// digested returns the result with the digest of its data.
func digested(r Result) Result {
	r.Digest = sha256.Sum256(fmt.Appendf(nil, "%q", []any{r.Rule, r.Path, r.Message, r.Snippet, r.Line, r.Column, r.Fingerprints}))
	return r
}

func TestNamesAreUniqueWithinAScan(t *testing.T) {
	label := regexp.MustCompile(`^f-[a-z2-7]{26}$`)
	rapid.Check(t, func(t *rapid.T) {
		results := rapid.SliceOf(resultGen()).Draw(t, "results")
		keys := map[string]ResultKey{}
		for i, identity := range Identify(scope, results) {
			if !label.MatchString(identity.Name) {
				t.Fatalf("name %q is not f- and 26 characters", identity.Name)
			}
			key, there := keys[identity.Name]
			if identity.Duplicate {
				if !there && !laterHas(results, i) {
					t.Fatalf("result %d is called a duplicate of none", i)
				}
				continue
			}
			if there {
				t.Fatalf("result %d has the name of another: %q (%+v, %+v)", i, identity.Name, key, results[i].ResultKey)
			}
			keys[identity.Name] = results[i].ResultKey
		}
	})
}

func laterHas(results []Result, i int) bool {
	for j := range results {
		if j != i && results[j].ResultKey == results[i].ResultKey {
			return true
		}
	}
	return false
}

func TestNamesDoNotDependOnTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		results := rapid.SliceOf(resultGen()).Draw(t, "results")
		names := map[ResultKey]string{}
		for i, identity := range Identify(scope, results) {
			names[results[i].ResultKey] = identity.Name
		}
		seed := rapid.Int64().Draw(t, "seed")
		shuffled := append([]Result(nil), results...)
		rand.New(rand.NewSource(seed)).Shuffle(len(shuffled), func(i, j int) { //nolint:gosec // a test's order
			shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
		})
		for i, identity := range Identify(scope, shuffled) {
			if want := names[shuffled[i].ResultKey]; identity.Name != want {
				t.Fatalf("result %+v is %s, in another order %s", shuffled[i], identity.Name, want)
			}
		}
	})
}

// What an earlier version took for duplicates must not rename what it told apart.
func TestDetailsRenameNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		results := rapid.SliceOf(resultGen()).Draw(t, "results")
		for _, r := range results {
			r.Detail += "0"
			results = append(results, r)
		}
		names := map[string]bool{}
		for _, identity := range Identify(scope, results) {
			names[identity.Name] = true
		}
		for i := range results {
			results[i].Detail = ""
		}
		for i, identity := range Identify(scope, results) {
			if !names[identity.Name] {
				t.Fatalf("without details result %d is %s, and with them none is", i, identity.Name)
			}
		}
	})
}

// Results elsewhere must not change a result's identity.
func TestNamesDoNotDependOnOtherPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := resultGen().Draw(t, "one")
		one.Fingerprints = nil
		one = digested(one)
		others := rapid.SliceOf(resultGen()).Draw(t, "others")
		for i := range others {
			others[i].Path = "elsewhere/" + others[i].Path
			others[i] = digested(others[i])
		}
		alone := Identify(scope, []Result{one})[0].Name
		among := Identify(scope, append([]Result{one}, others...))[0].Name
		if alone != among {
			t.Fatalf("alone it is %s, among others %s", alone, among)
		}
	})
}

func TestCodeMayMove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		results := rapid.SliceOfN(resultGen(), 1, 10).Draw(t, "results")
		by := rapid.Int32Range(1, 1000).Draw(t, "by")
		moved := append([]Result(nil), results...)
		for i := range moved {
			moved[i].Line += by
		}
		before, after := Identify(scope, results), Identify(scope, moved)
		for i := range before {
			if before[i].Name != after[i].Name {
				t.Fatalf("result %d was %s and is %s %d lines further down", i, before[i].Name, after[i].Name, by)
			}
		}
	})
}

// Results that differ only in the line keep their names when all of them move.
func TestOrdinalsFollowTheLines(t *testing.T) {
	at := func(lines []int32, digests ...byte) []Identity {
		var results []Result
		for i, line := range lines {
			r := Result{Rule: "R", Path: "a.go", Message: "m", Line: line}
			r.Digest[0] = digests[i]
			results = append(results, r)
		}
		return Identify(scope, results)
	}
	before := at([]int32{5, 9, 12}, 3, 2, 1)
	after := at([]int32{15, 19, 22}, 1, 3, 2)
	for i := range before {
		harness.Same(t, fmt.Sprintf("the name of result %d", i), before[i].Name, after[i].Name)
	}
}

func TestEveryPartOfTheScopeCounts(t *testing.T) {
	result := []Result{{Rule: "R", Path: "a.go", Message: "m"}}
	name := Identify(scope, result)[0].Name
	for part, other := range map[string]Scope{
		"repository": {"x", scope.Project, scope.Tool, scope.Category, "", ""},
		"project":    {scope.Repository, "x", scope.Tool, scope.Category, "", ""},
		"tool":       {scope.Repository, scope.Project, "x", scope.Category, "", ""},
		"category":   {scope.Repository, scope.Project, scope.Tool, "x", "", ""},
		"analysis":   {scope.Repository, scope.Project, scope.Tool, scope.Category, "x", ""},
		"prefix":     {scope.Repository, scope.Project, scope.Tool, scope.Category, "", "i-"},
	} {
		if Identify(other, result)[0].Name == name {
			t.Errorf("another %s gives the same name", part)
		}
	}
}

// The names are stored in every cluster: changing them would close all findings and create them
// again, without their triage.
func TestTheNameIsForEver(t *testing.T) {
	of := func(message string, line, column int32, detail string) Result {
		return digested(Result{
			Rule: "R", Path: "a.go", Message: message, Line: line, Column: column, ResultKey: ResultKey{Detail: detail},
			Fingerprints: map[string]string{"primaryLocationLineHash/v1": "h"},
		})
	}
	alone, withCode := of("m", 1, 1, ""), of("m", 1, 1, "")
	withCode.Fingerprints, withCode.Snippet = nil, "x()"
	analysis := scope
	analysis.Analysis = "nightly"
	several := Identify(scope, []Result{of("n", 1, 1, ""), of("m", 1, 1, ""), of("m", 2, 1, ""), of("m", 2, 1, "900")})
	for _, tc := range []struct{ reason, want, got string }{
		{"by its fingerprint", "f-3yzm5zdw6gvxklddh57s6opume", Identify(scope, []Result{alone})[0].Name},
		{"by its message and code", "f-lacnr4yit6dkdvjyqvocefn324", Identify(scope, []Result{withCode})[0].Name},
		{"of an analysis", "f-ki4xycdr5io5zknfs5xedqe3vl", Identify(analysis, []Result{alone})[0].Name},
		{"by its message, of several", "f-7koqc2lelwiwpmnu3pox6o5li6", several[0].Name},
		{"by its column, of several", "f-ois2k6qk46fyu7huswa6q3rigf", several[1].Name},
		{"the second by its column", "f-alntyac2jqpn35eesbhzkd4nzi", several[2].Name},
		{"by its detail", "f-znrybotwoz5d7ufkrvwvmyhk7p", several[3].Name},
		{"after a name that is taken", "f-4uds2ofbtggcwqjnyej436ogx4", Next("f-3yzm5zdw6gvxklddh57s6opume", 1)},
	} {
		harness.Same(t, "name "+tc.reason, tc.want, tc.got)
	}
}

func TestHashKeepsFieldsApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOf(rapid.SampledFrom([]string{"", "a", "1:a", "ab", ":", "2"})).Draw(t, "a")
		b := rapid.SliceOf(rapid.SampledFrom([]string{"", "a", "1:a", "ab", ":", "2"})).Draw(t, "b")
		if same := fmt.Sprintf("%q", a) == fmt.Sprintf("%q", b); same != (Hash(a...) == Hash(b...)) {
			t.Fatalf("fields %q and %q: same %v, but the hashes are %s and %s", a, b, same, Hash(a...), Hash(b...))
		}
	})
}

func TestUsableFingerprints(t *testing.T) {
	for name, tc := range map[string]struct {
		reason      string
		name, value string
		want        bool
	}{
		"line hash":         {"CodeQL's is of the code", "primaryLocationLineHash", "39fa2ee980eb94b0:1", true},
		"versioned":         {"a version does not change what it is of", "primaryLocationLineHash/v1", "x1", true},
		"case":              {"tools disagree on the case", "primarylocationlinehash", "x1", true},
		"no login":          {"Semgrep writes it for every result", "matchBasedId/v1", "requires login", false},
		"empty":             {"gitleaks writes it outside of git", "primaryLocationLineHash", " ", false},
		"commit":            {"it would make every finding new at every commit", "commitSha", "39fa2ee980eb94b0", false},
		"author":            {"it is no content, and personal", "email", "someone@example.com", false},
		"column":            {"a column is no identity", "primaryLocationStartColumnFingerprint", "4", false},
		"name not heard of": {"nobody knows what it is of", "fingerprint", "abcdef", false},
	} {
		harness.Same(t, name+": "+tc.reason, tc.want, IsContent(tc.name, tc.value))
	}
}

func TestAResultGetsTheRecordOfItsMostSpecificName(t *testing.T) {
	one := Identity{Name: "one", Exact: []string{"exact one"}, Shared: []string{"message", "base"}}
	two := Identity{Name: "two", Exact: []string{"exact two"}, Shared: []string{"message", "base"}}
	for _, tc := range []struct {
		reason, recorded string
		fits             []int // the result that each criterion fits
		want             string
	}{
		{"nothing is recorded", "", []int{0}, "one two"},
		{"by further names, before its own", "exact one, one, two", nil, "exact one two"},
		{"by its own name, before those of all", "one, message, base", []int{0, 0}, "one two"},
		{"by a name of all, if it fits", "base", []int{1}, "one base"},
		{"the first criterion counts", "base", []int{1, 0}, "one base"},
		{"the most specific name of all", "message, base", []int{0}, "message two"},
		{"each record belongs to one", "message, base", []int{0, 1}, "message base"},
		{"none fits", "base", nil, "one two"},
	} {
		var fits []func(int, string) bool
		for _, fit := range tc.fits {
			fits = append(fits, func(i int, _ string) bool { return i == fit })
		}
		recorded := func(name string) bool { return slices.Contains(strings.Split(tc.recorded, ", "), name) }
		got := Match([]Identity{one, two}, recorded, fits...)
		harness.Same(t, tc.reason, tc.want, strings.Join(got, " "))
	}
}

func TestTheBestOfSeveralFingerprintsIsUsed(t *testing.T) {
	for reason, tc := range map[string]struct {
		all  map[string]string
		want string
	}{
		"CodeQL's is better than the others":   {map[string]string{"contextHash/v1": "c", "primaryLocationLineHash": "p", "matchBasedId/v1": "m"}, "primaryLocationLineHash"},
		"of two versions the first is used":    {map[string]string{"contextHash/v2": "b", "contextHash/v1": "a"}, "contextHash/v1"},
		"a better one that shows nothing":      {map[string]string{"matchBasedId/v1": "requires login", "identity": "i"}, "identity"},
		"a better one that is not of the code": {map[string]string{"commitSha": "c", "identity": "i"}, "identity"},
	} {
		for range 20 { // maps have no order
			harness.Same(t, reason, tc.want, bestName(tc.all, nil))
		}
	}
}

// A value that is the same everywhere does not identify anything.
func TestAConstantFingerprintIsNotUsed(t *testing.T) {
	var with, without []Result
	for i := range constantFrom {
		r := Result{Rule: "R", Path: "a.go", Message: fmt.Sprintf("m%d", i)}
		r.Digest[0] = byte(i)
		without = append(without, r)
		r.Fingerprints = map[string]string{"matchBasedId/v1": "please log in"}
		with = append(with, r)
	}
	a, b := Identify(scope, with), Identify(scope, without)
	for i := range a {
		harness.Same(t, fmt.Sprintf("the name of result %d with the constant fingerprint", i), b[i].Name, a[i].Name)
	}
	for values, want := range map[string]bool{"hhhhh": true, "hhhh": false, "hhhhi": false, "hihhh": false} {
		var all []map[string]string
		for _, value := range values {
			all = append(all, map[string]string{"contextHash": string(value)})
		}
		harness.Same(t, values+": constant", want, Constants(all)["contextHash"])
	}
}
