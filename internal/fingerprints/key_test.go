package fingerprints

import (
	"slices"
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// facts returns the facts of a result with code at its location.
func facts(change func(*v1alpha1.FindingSpec)) *v1alpha1.FindingSpec {
	spec := &v1alpha1.FindingSpec{
		RepositoryRef: v1alpha1.RepositoryReference{Name: "shop"}, Tool: "gosec", RuleID: "G401", Evidence: "message.code..5",
		Details: v1alpha1.FindingDetails{Location: &v1alpha1.FileLocation{FilePath: "a.go", LineNumber: 7}},
	}
	change(spec)
	return spec
}

func TestTheKeyIsThatOfTheResultWhereverItStands(t *testing.T) {
	noCode := func(s *v1alpha1.FindingSpec) { s.Evidence = "message...5" }
	masked := func(code string) func(*v1alpha1.FindingSpec) {
		return func(s *v1alpha1.FindingSpec) { s.Evidence = "message." + code + "..5..masked" }
	}
	vulnerable := func(name, purl string, line int32) func(*v1alpha1.FindingSpec) {
		return func(s *v1alpha1.FindingSpec) {
			s.Evidence, s.Details.Location.LineNumber = "message", line
			s.Vulnerability, s.Package = &v1alpha1.FindingVulnerability{ID: "CVE-1"}, &v1alpha1.FindingPackage{Name: name, PURL: purl}
		}
	}
	long := func(evidence string) func(*v1alpha1.FindingSpec) {
		return func(s *v1alpha1.FindingSpec) {
			s.Evidence, s.Fingerprints = evidence, []v1alpha1.Fingerprint{{Name: "contextHash", Value: "begin" + CutMark}}
		}
	}
	for _, c := range []struct {
		reason        string
		first, second func(*v1alpha1.FindingSpec)
		same          bool
	}{
		{"code moves", func(*v1alpha1.FindingSpec) {}, func(s *v1alpha1.FindingSpec) { s.Details.Location.LineNumber, s.Evidence = 90, "message.code..9" }, true},
		{"a project, an analysis, a category or a severity tells no result from another", func(*v1alpha1.FindingSpec) {}, func(s *v1alpha1.FindingSpec) {
			s.ProjectRef.Name, s.Analysis, s.Category, s.Details.Severity = "api", "x", "Code", "high"
		}, true},
		{"other code is another result", func(*v1alpha1.FindingSpec) {}, func(s *v1alpha1.FindingSpec) { s.Evidence = "message.other..5" }, false},
		{"so is another message", func(*v1alpha1.FindingSpec) {}, func(s *v1alpha1.FindingSpec) { s.Evidence = "other.code..5" }, false},
		{"another file", func(*v1alpha1.FindingSpec) {}, func(s *v1alpha1.FindingSpec) { s.Details.Location.FilePath = "b.go" }, false},
		{"another rule", func(*v1alpha1.FindingSpec) {}, func(s *v1alpha1.FindingSpec) { s.RuleID = "G402" }, false},
		{"another tool", func(*v1alpha1.FindingSpec) {}, func(s *v1alpha1.FindingSpec) { s.Tool = "semgrep" }, false},
		{"another repository", func(*v1alpha1.FindingSpec) {}, func(s *v1alpha1.FindingSpec) { s.RepositoryRef.Name = "web" }, false},
		{"a long fingerprint that ends otherwise", long("message...5.one"), long("message...5.two"), false},
		{"or the same", long("message...5.one"), func(s *v1alpha1.FindingSpec) { long("message...6.one")(s); s.Details.Location.LineNumber = 90 }, true},
		{"without code the line counts", noCode, func(s *v1alpha1.FindingSpec) { noCode(s); s.Details.Location.LineNumber = 8 }, false},
		{"and is the same at the same place", noCode, noCode, true},
		{"so it does for a vulnerability of no known package", vulnerable("", "", 7), vulnerable("", "", 8), false},
		{"but not for one of a package with a name", vulnerable("ssl", "", 7), vulnerable("ssl", "", 8), true},
		{"or only a URL", vulnerable("", "pkg:npm/ssl", 7), vulnerable("", "pkg:npm/ssl", 8), true},
		{"masked code is none, as before its digest was stored", noCode, masked("one"), true},
		{"whatever it is", masked("one"), masked("two"), true},
		{"so the line counts", masked("one"), func(s *v1alpha1.FindingSpec) { masked("one")(s); s.Details.Location.LineNumber = 8 }, false},
	} {
		harness.Same(t, c.reason+": the same", c.same, Key(facts(c.first)) == Key(facts(c.second)))
	}
	harness.Same(t, "the key of a finding without evidence", "", Key(facts(func(s *v1alpha1.FindingSpec) { s.Evidence = "" })))
}

// The keys are stored in the issues of pull requests: with other keys, findings would not get the decisions about them.
func TestTheKeyIsForEver(t *testing.T) {
	for _, tc := range []struct {
		reason, want string
		change       func(*v1alpha1.FindingSpec)
	}{
		{"of code", "6cphq2fupzao6fusjuhcmbkm4m", func(*v1alpha1.FindingSpec) {}},
		{"of a place", "ezyqkf2sfxqvnn4fo6m7kfwmvz", func(s *v1alpha1.FindingSpec) { s.Evidence = "message...5" }},
		{"of a fingerprint", "ygiwcubzvb6xskslef4ira3zn4", func(s *v1alpha1.FindingSpec) {
			s.Fingerprints = []v1alpha1.Fingerprint{{Name: "primaryLocationLineHash", Value: "39fa:1"}, {Name: "commitSha", Value: "c"}}
		}},
		{"of a resource", "rereundc3g2becuzsmcsokxwnt", func(s *v1alpha1.FindingSpec) { s.Evidence = "message..bucket.5" }},
		{"of a package", "xbbzj5butbi2zs7hfkszlud6xq", func(s *v1alpha1.FindingSpec) {
			s.Evidence, s.Vulnerability = "message", &v1alpha1.FindingVulnerability{ID: "CVE-1"}
			s.Package = &v1alpha1.FindingPackage{Name: "ssl", Version: "1", PURL: "pkg:npm/@a/ssl@1?arch=x#lib"}
		}},
	} {
		harness.Same(t, "key "+tc.reason, tc.want, Key(facts(tc.change)))
	}
}

func TestAPackagesKeyIsOfItsVersionAndNotOfTheLine(t *testing.T) {
	of := func(version string, line int32) string {
		return Key(facts(func(s *v1alpha1.FindingSpec) {
			s.Evidence, s.Details.Location.LineNumber = "message", line
			s.Vulnerability = &v1alpha1.FindingVulnerability{ID: "CVE-1"}
			s.Package = &v1alpha1.FindingPackage{Name: "ssl", Version: version, PURL: "pkg:deb/ssl@" + version}
		}))
	}
	if of("1", 3) != of("1", 9) || of("1", 3) == of("2", 3) {
		t.Error("a package's result is the same on another line, and another in another version")
	}
}

func TestTheEarlierKeysAreThoseUnderTheEarlierPath(t *testing.T) {
	now := facts(func(s *v1alpha1.FindingSpec) { s.Details.Location.FilePath = "caf%E9.c" })
	was := facts(func(s *v1alpha1.FindingSpec) {
		s.Details.Location.FilePath, s.Tool = "caf\uFFFD.c", "Golang security checks by gosec"
	})
	if keys := EarlierKeys(now); !slices.Contains(keys, Key(was)) {
		t.Error("under another name of the tool it has no key")
	}
	harness.Same(t, "the keys under its own path", []string(nil), EarlierKeys(was))
	harness.Same(t, "the keys of an earlier path", Keys(was), KeysOfEarlierPath(was))
	harness.Same(t, "the keys of a path that is none", EarlierKeys(now), KeysOfEarlierPath(now))
}

func TestAPackageURLIsComparedWithoutItsVersion(t *testing.T) {
	for purl, want := range map[string]string{
		"pkg:npm/@a/ssl@1?arch=x#lib":          "pkg:npm/@a/ssl",
		"pkg:npm/@a/ssl":                       "pkg:npm/@a/ssl",
		"pkg:deb/debian/ssl?arch=amd64":        "pkg:deb/debian/ssl",
		"pkg:maven/a/b@1?repository_url=h/m":   "pkg:maven/a/b",
		"pkg:golang/example.com/a@v1#cmd/tool": "pkg:golang/example.com/a",
	} {
		harness.Same(t, purl, want, WithoutVersion(purl))
	}
}

func TestTheKeysOfTheOtherMarkAreThoseOfTheSameSecretMarkedOtherwise(t *testing.T) {
	of := func(evidence, code string) *v1alpha1.FindingSpec {
		return facts(func(s *v1alpha1.FindingSpec) { s.Evidence, s.Details.Code = evidence, code })
	}
	marked, unmarked := of("message.code..5..masked", ""), of("message.code..5", "")
	if !slices.Contains(KeysOfOtherMark(marked), Key(unmarked)) || !slices.Contains(KeysOfOtherMark(unmarked), Key(marked)) {
		t.Error("one does not have the key of the other")
	}
	harness.Same(t, "the keys with code that is shown", []string(nil), KeysOfOtherMark(of("message.code..5", "x()")))
	harness.Same(t, "the keys without code", []string(nil), KeysOfOtherMark(of("message...5", "")))
}
