package findingquery

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestAVulnerabilityIsFoundByItsIDAndEachAlias(t *testing.T) {
	v := &v1alpha1.FindingVulnerability{ID: "CVE-2019-1549", Aliases: []string{"GHSA-29mw-wpgm-hmr9", "cve-2019-1549"}}
	for id, want := range map[string]bool{
		"CVE-2019-1549": true, "cve-2019-1549": true, "ghsa-29MW-wpgm-hmr9": true,
		"CVE-2019-154": false, "CVE-2019-15490": false, "": false,
	} {
		harness.Same(t, id, want, isVulnerability(v, id))
	}
	if isVulnerability(nil, "CVE-2019-1549") {
		t.Error("a finding without a vulnerability has one")
	}
	harness.Same(t, "keys", []string{"CVE-2019-1549", "GHSA-29MW-WPGM-HMR9"}, VulnerabilityKeys(v))
}

func TestAPackageIsFoundByItsNameAndItsURL(t *testing.T) {
	for _, test := range []struct {
		reason, name, purl, wanted string
		want                       bool
	}{
		{"by its name", "lodash", "", "lodash", true},
		{"a name's case does not count", "Lodash", "", "loDash", true},
		{"a part of a name is another name", "lodash", "", "lod", false},
		{"by its URL with the version", "lodash", "pkg:npm/lodash@4.17.15", "pkg:npm/lodash@4.17.15", true},
		{"by its URL for every version", "lodash", "pkg:npm/lodash@4.17.15", "pkg:npm/lodash", true},
		{"another version is another package", "lodash", "pkg:npm/lodash@4.17.15", "pkg:npm/lodash@4.17.1", false},
		{"a longer name is another package", "lodash-es", "pkg:npm/lodash-es@4", "pkg:npm/lodash", false},
		{"qualifiers may be left out", "openssl", "pkg:deb/debian/openssl@1.1?arch=amd64", "pkg:deb/debian/openssl@1.1", true},
		{"a scope is part of the name", "core", "pkg:npm/@angular/core@12", "pkg:npm/@angular/core", true},
		{"a scope that the tool encodes", "core", "pkg:npm/%40angular/core@12", "pkg:npm/@angular/core", true},
		{"a scope that is given encoded", "core", "pkg:npm/@angular/core@12", "pkg:npm/%40angular/core@12", true},
		{"an encoded @ elsewhere is no scope", "a", "pkg:generic/a%40b", "pkg:generic/a", false},
		{"an encoded scope too", "core", "pkg:npm/%40angular/core@12", "pkg:npm/%40angular/core@12", true},
		{"a version may have slashes", "tool", "pkg:github/acme/tool@release/v2", "pkg:github/acme/tool", true},
		{"a version with slashes", "tool", "pkg:github/acme/tool@release/v2", "pkg:github/acme/tool@release/v2", true},
		{"a scope alone is no package", "core", "pkg:npm/@angular/core@12", "pkg:npm/", false},
		{"without a URL none matches", "lodash", "", "pkg:npm/lodash", false},
		{"a URL as its name too", "pkg:npm/lodash", "pkg:npm/lodash@4", "pkg:npm/lodash", true},
		{"a URL without its scheme too", "lodash", "lodash", "lodash", true},
		{"a URL is no name", "pkg:npm/lodash", "", "PKG:npm/lodash", false},
		{"without its scheme it is no URL", "lodash", "lodash@4", "lodash@4", false},
	} {
		p := &v1alpha1.FindingPackage{Name: test.name, PURL: test.purl}
		harness.Same(t, test.reason, test.want, isPackage(p, test.wanted))
		keys, wanted := PackageKeys(test.name, test.purl), PackageKey(test.wanted)
		has := slices.Contains(keys, wanted)
		if test.want && !has || has && !test.want && wanted == test.wanted {
			t.Errorf("%s: %q is among the keys %q: %t", test.reason, wanted, keys, has)
		}
		if len(keys) == 2 && keys[0] == keys[1] {
			t.Errorf("%s: it is counted twice: by %q", test.reason, keys)
		}
	}
}

// Lists look a package up by its keys.
func TestWhatAPackageURLMatchesHasItsKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		purl := purlScheme + strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "/", "@", "?", "#", "/%40"}), 1, 12).Draw(t, "purl"), "")
		for end := len(purlScheme); end <= len(purl); end++ {
			wanted := purl[:end]
			is, has := IsPackageOf("a", purl, wanted), slices.Contains(PackageKeys("a", purl), PackageKey(wanted))
			if is && !has || has && !is && PackageKey(wanted) == wanted {
				t.Fatalf("%q matches %q: %t, and has its key: %t", purl, wanted, is, has)
			}
		}
	})
}

func TestScoresAreReadInTenths(t *testing.T) {
	for text, want := range map[string]int{"0.0": 0, "0.1": 1, "7": 70, "9.8": 98, "10.0": 100} {
		if got, ok := Tenths(text); !ok || got != want {
			t.Errorf("%q: got %d, %v; want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "x", "-0.1", "10.1", "NaN", "Inf"} {
		if got, ok := Tenths(text); ok {
			t.Errorf("%q is read as %d", text, got)
		}
	}
}

func TestWordsAreFoundWhateverTheirCase(t *testing.T) {
	const title, path = "SQL Injection in Größe Σίσυφος", "src/API/Download.go, a\u0308rger.go"
	for _, test := range []struct {
		reason, text string
		want         bool
	}{
		{"in the title", "sql", true},
		{"in the path", "download.GO", true},
		{"one in each, in any order", "DOWNLOAD injection", true},
		{"a part of a word", "inject", true},
		{"letters beyond ASCII", "GRÖSSE grÖße", false},
		{"an umlaut", "GRÖßE", true},
		{"a final sigma", "ΣΊΣΥΦΟΣ", true},
		{"an accent as a character of its own, in the text", "\u00c4rger", true},
		{"an accent as a character of its own, in the word", "Gro\u0308ße", true},
		{"a word that is in neither", "sql xss", false},
		{"no word", "  ", true},
	} {
		harness.Same(t, test.reason, test.want, HasWords(Fold(title+"\n"+path), Words(test.text)))
	}
}
