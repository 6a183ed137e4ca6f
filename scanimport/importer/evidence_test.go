package importer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/scanimport/recognition"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// A resource holds one problem of a rule; a location that may hold many is not a resource.
func TestOnlyAResourceIsOne(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		result sarif.Result
		want   string
	}{
		"resource":   {"infrastructure names what is wrong", sarif.Result{Logical: []sarif.Logical{{Kind: "resource", FullyQualifiedName: "aws_s3_bucket.logs"}}}, "aws_s3_bucket.logs"},
		"other case": {"some tools write Resource", sarif.Result{Logical: []sarif.Logical{{Kind: "Resource", Name: "logs"}}}, "logs"},
		"module":     {"a module of infrastructure is one", sarif.Result{Logical: []sarif.Logical{{Kind: "module", Name: "net"}}}, "net"},
		"no kind":    {"few tools give a kind", sarif.Result{Logical: []sarif.Logical{{Name: "bucket"}}}, "bucket"},
		"function":   {"a function holds many problems of one rule", sarif.Result{Logical: []sarif.Logical{{Kind: "function", Name: "main"}}}, ""},
		"type":       {"so does a class", sarif.Result{Logical: []sarif.Logical{{Kind: "type", Name: "Shop"}}}, ""},
		"beside":     {"the first that is one counts", sarif.Result{Logical: []sarif.Logical{{Kind: "function", Name: "main"}, {Kind: "resource", Name: "db"}}}, "db"},
		"package":    {"it names the version or the image", sarif.Result{Package: &sarif.Package{Name: "ssl"}, Logical: []sarif.Logical{{Name: "ssl@1"}}}, ""},
		"endpoint":   {"a dynamic scanner names the request", sarif.Result{Endpoints: []sarif.Endpoint{{Method: "GET", Path: "/login"}}}, "GET /login"},
		"nothing":    {"most results name none", sarif.Result{}, ""},
	} {
		harness.Same(t, name+": "+tc.reason, tc.want, resource(&tc.result))
	}
}

// The number of the place is not part of the hash; other text after a colon is.
func TestAnOrdinalIsNoPartOfAHash(t *testing.T) {
	for _, tc := range []struct{ reason, name, value, want string }{
		{"CodeQL numbers the places of one hash", "primaryLocationLineHash", "39fa2ee980eb94b0:2", "39fa2ee980eb94b0"},
		{"under any version of the name", "PrimaryLocationLineHash/v1", "39fa2ee980eb94b0:1", "39fa2ee980eb94b0"},
		{"a hash alone has none", "primaryLocationLineHash", "39fa2ee980eb94b0", "39fa2ee980eb94b0"},
		{"what is no number is none", "primaryLocationLineHash", "39fa:x", "39fa:x"},
		{"another fingerprint may have a colon", "matchBasedId/v1", "39fa:1", "39fa:1"},
		{"Semgrep numbers the matches of one hash", "matchBasedId/v1", "39fa_0", "39fa"},
		{"under any version of the name", "MatchBasedID/v2", "39fa_12", "39fa"},
		{"a match that is not numbered has none", "matchBasedId/v1", "39fa_x", "39fa_x"},
		{"another fingerprint may have an underscore", "primaryLocationLineHash", "39fa_1", "39fa_1"},
	} {
		harness.Same(t, tc.reason+": "+tc.value+" of "+tc.name, tc.want, fingerprints.WithoutOrdinal(tc.name, tc.value))
	}
}

// Two places have one hash. When the first is fixed, the second takes its number, but stays the same finding.
func TestTheSecondPlaceOfAHashStaysItself(t *testing.T) {
	for _, tc := range []struct{ tool, name, first, second string }{
		{"CodeQL", "primaryLocationLineHash", "abc:1", "abc:2"},
		{"Semgrep", "matchBasedId/v1", "abc_0", "abc_1"},
	} {
		for _, message := range []string{"one", "two"} {
			l := newLife(t)
			at := func(line int32, hash, message string) sarif.Result {
				r := inFile("a.go", "", line)
				r.Message, r.Fingerprints = message, map[string]string{tc.name: hash}
				return r
			}
			names := l.scans(at(5, tc.first, message), at(50, tc.second, "two"))
			l.want(tc.tool+": the first, which says "+message+", is repaired", l.scans(at(48, tc.first, "two")), names[1])
		}
	}
}

// Another result that only its message tells apart must neither remove a decision nor take it over.
func TestADecisionStaysWhileResultsLikeItComeAndGo(t *testing.T) {
	says := func(message string) sarif.Result {
		r := inFile("a.go", "", 7)
		r.Message, r.Fingerprints = message, map[string]string{"primaryLocationLineHash": "abc:1"}
		return r
	}
	l := newLife(t)
	first := l.scans(says("n is unused"))[0]
	l.mute()
	both := l.scans(says("m is unused"), says("n is unused"))
	if both[1] != first || both[0] == first || l.findings[both[0]].Spec.Triage.UserStatus == v1alpha1.UserStatusMuted {
		t.Errorf("one more: %v, want another one without the decision of %s", both, first)
	}
	l.want("one less", l.scans(says("m is unused")), both[0])
	l.wantOpen("one less", 1)
}

// A second finding of the same problem may have been created, whose name may sort before or after that of the first.
func TestOfTwoFindingsOfOneProblemTheDecidedOneStays(t *testing.T) {
	for _, name := range []string{"a-copy", "z-copy"} {
		r := inFile("a.go", "x()", 5)
		l := newLife(t)
		decided := l.scans(r)
		l.mute()
		other := l.findings[decided[0]].DeepCopy()
		other.Name, other.Spec.Triage = name, v1alpha1.FindingTriage{}
		l.findings[name] = other
		l.want(name, l.scans(r), decided...)
		l.doubted(name, decided[0], recognition.DoubtCount)
		l.wantOpen(name, 1)
	}
}

// Of a long fingerprint only the beginning is stored.
func TestFingerprintsThatBeginAlikeAreTwo(t *testing.T) {
	at := func(line int32, end string) sarif.Result {
		r := inFile("a.go", "", line)
		r.Fingerprints = map[string]string{"primaryLocationLineHash": strings.Repeat("a", maxFingerprint) + end}
		return r
	}
	for reason, cut := range map[string]bool{"stored": false, "stored by an earlier version": true} {
		l := newLife(t)
		first := l.scans(at(3, "1"))
		l.mute()
		if cut {
			l.cutAsBefore(first[0])
		}
		l.want(reason+", and moved", l.scans(at(50, "1:2")), first...)
		if doubt := l.findings[first[0]].Spec.Doubt; (doubt != nil) != cut {
			t.Errorf("%s, and moved, with the doubt %+v", reason, doubt)
		}
		if l.scans(at(90, "2"))[0] == first[0] {
			t.Errorf("%s: another fingerprint is taken for that of the muted finding", reason)
		}
	}

	l := newLife(t)
	five := l.scans(at(10, "1"), at(20, "2"), at(30, "3"), at(40, "4"), at(50, "5"))
	l.want("as many as make a constant, reversed", l.scans(at(50, "1"), at(40, "2"), at(30, "3"), at(20, "4"), at(10, "5")), five...)

	l = newLife(t)
	two := l.scans(at(3, "1"), at(50, "2"), at(90, "3"))
	l.scans(at(3, "1"), at(50, "2"))
	l.cutAsBefore(two[2])
	l.want("a closed one of an earlier version begins alike, and the second moves to the place of the first", l.scans(at(3, "2")), two[1])

	l = newLife(t)
	closed := l.scans(at(3, "1"))
	l.mute()
	l.scans()
	l.cutAsBefore(closed[0])
	l.want("a closed one begins alike", l.scans(at(3, "2")), closed...)
	l.doubted("reopened by the beginning of a fingerprint", closed[0], recognition.DoubtFingerprint)

	for _, message := range []string{"do not", "another"} {
		l = newLife(t)
		moved := l.scans(at(3, "1"))
		l.mute()
		l.cutAsBefore(moved[0])
		other := at(90, "2")
		other.Message = message
		l.want("one in its file begins alike, and says "+message, l.scans(other), moved...)
		l.doubted("recognised by the beginning of a fingerprint", moved[0], recognition.DoubtFingerprint)
	}

	l = newLife(t)
	open := l.scans(at(3, "1"))
	l.mute()
	l.cutAsBefore(open[0])
	elsewhere := at(3, "2")
	elsewhere.Location.Path = "b.go"
	l.want("one in another file begins alike", l.scans(elsewhere), open...)
	l.doubted("moved to another file by the beginning of a fingerprint", open[0], recognition.DoubtFile)
}

// The weaker of two long fingerprints may change with the surrounding code.
func TestTheBestLongFingerprintDecides(t *testing.T) {
	at := func(line int32, around string) sarif.Result {
		r, long := inFile("a.go", "", line), strings.Repeat("a", maxFingerprint)
		r.Fingerprints = map[string]string{"primaryLocationLineHash": long + "1", "contextRegionHash/v1": long + around}
		return r
	}
	l := newLife(t)
	first := l.scans(at(3, "1"))
	l.want("what is around it changes", l.scans(at(90, "2")), first...)
}

// cutAsBefore takes from a finding the digest of its whole fingerprint, which an earlier version did not store.
func (l *life) cutAsBefore(name string) {
	f := l.findings[name]
	f.Spec.Evidence, _, _ = strings.Cut(f.Spec.Evidence, ".")
}

// Infrastructure is recognised by its resource if the block moves, is reworded, and has no code.
func TestAResourceStaysItself(t *testing.T) {
	l := newLife(t)
	at := func(line int32, name, message string) sarif.Result {
		r := inFile("main.tf", "", line)
		r.Message, r.Logical = message, []sarif.Logical{{Kind: "resource", Name: name}}
		return r
	}
	names := l.scans(at(5, "s3.a", "no encryption"), at(30, "s3.b", "no encryption"))
	l.want("the blocks change places", l.scans(at(30, "s3.a", "encrypt it"), at(5, "s3.b", "encrypt it")), names...)
}

// A GHSA that gets a CVE, or the reverse, is the same vulnerability.
func TestAVulnerabilityMayGoByAnotherId(t *testing.T) {
	l := newLife(t)
	of := func(id, alias, name, version string) sarif.Result {
		r := inFile("go.sum", "", 1)
		r.RuleID, r.Message = id, id+" in "+name+" "+version
		r.Vulnerability = &sarif.Vulnerability{ID: id, Aliases: []string{alias}}
		r.Package = &sarif.Package{Name: name, Version: version}
		return r
	}
	names := l.scans(of("GHSA-a", "CVE-1", "ssl", "1"), of("GHSA-b", "CVE-2", "ssl", "1"), of("GHSA-a", "CVE-1", "crypto", "1"))
	l.want("by their CVEs", l.scans(of("CVE-2", "GHSA-b", "ssl", "2"), of("CVE-1", "GHSA-a", "crypto", "2"), of("CVE-1", "GHSA-a", "ssl", "2")), names[1], names[2], names[0])

	for _, advisory := range []string{"RHSA-2024:1", "DLA-3-1", "ALAS2-2024-1", "SUSE-SU-2024:1-1"} {
		l = newLife(t)
		muted := l.scans(of("CVE-1", advisory, "ssl", "1"))[0]
		l.mute()
		if l.scans(of("CVE-3", advisory, "ssl", "1"))[0] == muted {
			t.Errorf("the decision about a vulnerability passes to another one of the advisory %s", advisory)
		}
		l.want("raised", l.scans(of("CVE-1", advisory, "ssl", "2")), muted)
	}

	l = newLife(t)
	muted := l.scans(of("GHSA-a", "SNYK-1", "ssl", "1"))
	l.mute()
	for _, now := range []sarif.Result{
		of("CVE-2", "GHSA-a", "ssl", "1"), of("CVE-2", "CVE-1", "ssl", "1"), of("CVE-1", "CVE-2", "ssl", "1"), of("CVE-2", "CVE-1", "ssl", "1"),
	} {
		l.want("named by the other, and two CVEs by each other", l.scans(now), muted...)
	}
	l.doubted("named by its other id", muted[0], "")
	l.want("only a third id joins them", l.scans(of("GHSA-b", "CVE-1", "ssl", "1")), muted...)
	l.doubted("joined by a third id", muted[0], recognition.DoubtVulnerability)

	l = newLife(t)
	muted = l.scans(of("CVE-2020-1747", "GHSA-a", "yaml", "5.3"))
	l.mute()
	l.want("an incomplete fix names what it was to fix", l.scans(of("CVE-2020-14343", "CVE-2020-1747", "yaml", "5.3.1")), muted...)
	l.doubted("a CVE that names another one", muted[0], recognition.DoubtVulnerability)
}

// JFrog Xray puts package and version into the rule's id. An earlier version did not read them from there.
func TestARaisedPackageOfJFrogXrayStaysItsFinding(t *testing.T) {
	of := func(version string, read bool) sarif.Result {
		id := "CVE-2020-28500_lodash_" + version
		r := sarif.Result{RuleID: id, Rule: &sarif.Rule{ID: id}, Message: "[CVE-2020-28500] lodash " + version,
			Location: sarif.Location{Path: "package.json"}, Severity: v1alpha1.LevelHigh}
		if read {
			r.Vulnerability, r.Package = &sarif.Vulnerability{ID: "CVE-2020-28500"}, &sarif.Package{Name: "lodash", Version: version}
		}
		return r
	}
	l := newLife(t)
	first := l.scans(of("4.17.15", false))
	l.want("read since", l.scans(of("4.17.15", true)), first...)
	l.want("raised", l.scans(of("4.17.20", true)), first...)
}

// JFrog Xray puts all CVEs of an issue into the rule's id.
func TestAFindingOfJFrogXrayStaysWhenItsCVEsChange(t *testing.T) {
	of := func(issue, version string) sarif.Result {
		id := issue + "_lodash_" + version
		vulnerability, found := sarif.PackageOfRule(id)
		return sarif.Result{RuleID: id, Rule: &sarif.Rule{ID: id}, Message: "[" + issue + "] lodash " + version,
			Location: sarif.Location{Path: "package.json"}, Severity: v1alpha1.LevelHigh,
			Vulnerability: &sarif.Vulnerability{ID: vulnerability}, Package: found}
	}
	const one, two = "CVE-2020-28500", "CVE-2020-28500_CVE-2021-23337"
	l := newLife(t)
	first := l.scans(of(one, "4.17.15"))
	l.want("a second CVE comes", l.scans(of(two, "4.17.15")), first...)
	l.want("raised", l.scans(of(two, "4.17.20")), first...)

	l = newLife(t)
	misread := of(two, "4.17.15")
	misread.Package = &sarif.Package{Name: "CVE-2021-23337_lodash", Version: "4.17.15"}
	first = l.scans(misread)
	l.want("read by an earlier version, and raised", l.scans(of(two, "4.17.20")), first...)
}

// gitleaks names the scanned commit in its messages, which changes with each push. The code is redacted.
func TestACommitInAMessageChangesNoFinding(t *testing.T) {
	at := func(commit string, line int32) sarif.Result {
		r := inFile("a.go", "REDACTED", line)
		r.Message = "aws-key has detected secret for file a.go" + commit + "."
		return r
	}
	l := newLife(t)
	first := l.scans(at(" at commit 0123456789abcdef0123456789abcdef01234567", 5), at(" at commit 0123456789abcdef0123456789abcdef01234567", 9))
	l.mute()
	for reason, commit := range map[string]string{"another commit": " at commit abcdef0", "no commit": ""} {
		l.want(reason, l.scans(at(commit, 8), at(commit, 12)), first...)
		for _, name := range first {
			l.doubted(reason+": "+name, name, "")
		}
	}
}

// redacted returns a secret, all at one place.
func redacted(commit string) sarif.Result {
	r := inFile("a.go", "REDACTED", 5)
	r.Message, r.TaggedSecret = "aws-key has detected secret for file a.go at commit "+commit+".", true
	return r
}

// secretAt returns a secret as gitleaks shows it, in that code.
func secretAt(line int32, code string) sarif.Result {
	r := redacted("aaaaaaa")
	r.Location.Line, r.Location.Snippet = line, code
	return r
}

// partlyMasked is code that shows a part of a secret, or hides it within a line.
var partlyMasked = []string{
	"AKIA...", "AKIA…", `key = "AKIA..."`, `key = "AKIA...";`, `"key": 'AKIA…',`, `f("AKIA...")`,
	`key = "********"`, "••••1234", "[REDACTED]", "[redacted]", `key = "redacted"`,
}

// Code in which the tool masks the secret is the same for other secrets.
func TestADecisionAboutAMaskedSecretDoesNotPassToAnotherSilently(t *testing.T) {
	for _, code := range append(partlyMasked, "REDACTED") {
		l := newLife(t)
		first := l.scans(secretAt(5, code))[0]
		key := fingerprints.Key(&l.findings[first].Spec)
		l.mute()
		l.want(code, l.scans(secretAt(200, code)), first)
		l.doubted(code, first, recognition.DoubtLine)
		if key == fingerprints.Key(&l.findings[first].Spec) {
			t.Errorf("%s: the decision about an issue with it passes to another secret of the base", code)
		}
	}
	for _, code := range []string{`key = "AKIAIOSFODNN7EXAMPLE"`, "load(...args)", "**options"} {
		l := newLife(t)
		first := l.scans(secretAt(5, code))[0]
		l.mute()
		l.want(code, l.scans(secretAt(200, code)), first)
		l.doubted(code, first, "")
	}
}

// An earlier version stored a digest of the masked code.
func TestADecisionAboutAMaskedSecretSurvivesTheUpgrade(t *testing.T) {
	for _, code := range partlyMasked {
		for line, doubt := range map[int32]recognition.Doubt{5: "", 200: recognition.DoubtLine} {
			l := newLife(t)
			r := secretAt(5, code)
			first := l.scans(r)[0]
			l.findings[first].Spec.Evidence = messageDigest(&r) + "." + codeDigest(code)
			key := fingerprints.Key(&l.findings[first].Spec)
			l.mute()
			l.observe()
			l.want(code, l.scans(secretAt(line, code)), first)
			same := key == fingerprints.Key(&l.findings[first].Spec)
			harness.Same(t, code+": keeps the verdict of a merged pull request", doubt == "", same)
			l.doubted(fmt.Sprint(code, " in line ", line), first, doubt)
			l.observe()
			f := l.findings[first]
			harness.Same(t, code+": stale", doubt != "", findingstate.Stale(f))
			harness.Same(t, code+": decision", v1alpha1.UserStatusMuted, f.Status.UserStatus)
		}
	}
}

// Another secret at the line of one that an earlier version stored is not the one that a pull request decided about, even
// if the code of that one stands elsewhere.
func TestAnotherMaskedSecretAtTheSameLineLosesTheKeyOfThePullRequest(t *testing.T) {
	l := newLife(t)
	r, elsewhere := secretAt(5, "AKIA..."), secretAt(5, "AKIA...")
	elsewhere.Location.Path = "b.py"
	first := l.scans(r)[0]
	l.findings[first].Spec.Evidence = messageDigest(&r) + "." + codeDigest("AKIA...")
	key := fingerprints.Key(&l.findings[first].Spec)
	l.scans(secretAt(5, "ghp_..."), elsewhere)
	if key == fingerprints.Key(&l.findings[first].Spec) {
		t.Error("the finding keeps the key of other code")
	}
}

// Equal code with a mask proves nothing, but other code is another secret. Whoever writes the code can put a mask beside
// a secret.
func TestADecisionDoesNotPassToAnotherSecretInMaskedCodeSilently(t *testing.T) {
	for _, tc := range []struct {
		reason, was, is string
		doubt           recognition.Doubt
	}{
		{"the tool shows another beginning", `aws = "AKIA..."`, `gcp = "AIza..."`, recognition.DoubtMessage},
		{"the mask is in a comment", `pw := "dummy" // ***`, `pw := "real" // ***`, recognition.DoubtMessage},
		{"the mask comes with the secret", `pw := "dummy"`, `pw := "real" // ***`, recognition.DoubtMessage},
		{"the mask goes", `pw := "dummy" // ***`, `pw := "real"`, recognition.DoubtMessage},
		{"nothing changes", `aws = "AKIA..."`, `aws = "AKIA..."`, ""},
		{"only white space changes", `aws = "AKIA..."`, `aws  =  "AKIA..."`, ""},
		{"the tool shows nothing any more", `aws = "AKIA..."`, "REDACTED", ""},
	} {
		l := newLife(t)
		first := l.scans(secretAt(5, tc.was))[0]
		l.mute()
		l.observe()
		l.want(tc.reason, l.scans(secretAt(5, tc.is)), first)
		l.doubted(tc.reason, first, tc.doubt)
		l.findings[first].Spec.Doubt = nil
		l.observe()
		harness.Same(t, tc.reason+": stale by its code", tc.doubt != "", findingstate.Stale(l.findings[first]))
	}
}

// The last version stored no digest of masked code. The first scan stores it, without any doubt, the next one has
// nothing to write, and then other code is known to be other code.
func TestTheCodeOfAMaskedSecretIsComparedFromTheFirstScanAfterTheUpgrade(t *testing.T) {
	l := newLife(t)
	dummy, secret := secretAt(5, `pw := "dummy" // ***`), secretAt(5, `pw := "real" // ***`)
	first := l.scans(dummy)[0]
	f := l.findings[first]
	f.Spec.Evidence = messageDigest(&dummy)
	key := fingerprints.Key(&f.Spec)
	l.mute()
	l.observe()
	for i, written := range []int{1, 0} {
		reason := fmt.Sprintf("scan %d", i+1)
		l.want(reason, l.scans(dummy), first)
		f = l.findings[first]
		harness.Same(t, reason+": written", written, len(l.plan.changes))
		harness.Same(t, reason+": recognised by less than before", 0, len(l.plan.recognised))
		harness.Same(t, reason+": key", key, fingerprints.Key(&f.Spec))
		l.doubted(reason, first, "")
		l.observe()
		harness.Same(t, reason+": stale", false, findingstate.Stale(f))
	}
	l.scans(secret)
	l.doubted("another secret", first, recognition.DoubtMessage)
}

// Only after the upgrade nobody knows which of two in masked code is the decided one.
func TestTwoSecretsInMaskedCodeAtOnePlaceAreInDoubtOnlyUntilTheirCodeIsStored(t *testing.T) {
	l := newLife(t)
	aws, gcp := secretAt(5, `aws = "AKIA..."`), secretAt(5, `gcp = "AIza..."`)
	names := l.scans(aws, gcp)
	l.mute()
	l.decideNothing(names[1])
	for i := range 2 {
		reason := fmt.Sprintf("scan %d", i+2)
		l.want(reason, l.scans(gcp, aws), names[1], names[0])
		harness.Same(t, reason+": in doubt, written", [2]int{}, [2]int{l.plan.doubtful, len(l.plan.changes)})
	}
	for _, name := range names {
		l.findings[name].Spec.Evidence = messageDigest(&aws)
	}
	first := l.scans(aws, gcp)
	l.doubted("after the upgrade", names[0], recognition.DoubtPlace)
	l.findings[names[0]].Spec.Doubt = nil
	l.want("decided again", l.scans(aws, gcp), first...)
	l.doubted("decided again", names[0], "")
}

// Two redacted secrets at one place differ only in the commit that gitleaks names. Once one of them is no longer
// reported, nobody knows whether it is the decided one.
func TestADecisionAboutOneOfTwoRedactedSecretsDoesNotPassToTheOtherSilently(t *testing.T) {
	a, b, squashed := redacted("aaaaaaa"), redacted("bbbbbbb"), redacted("ccccccc")
	for _, left := range []sarif.Result{a, b, squashed} {
		for _, tc := range []struct {
			reason    string
			undecided []int
			doubts    int
		}{
			{"the second is muted", []int{0}, 1},
			{"the first is muted", []int{1}, 1},
			{"both are muted", nil, 0},
		} {
			l := newLife(t)
			names := l.scans(a, b)
			l.mute()
			for _, i := range tc.undecided {
				l.decideNothing(names[i])
			}
			l.want("both again", slices.Sorted(slices.Values(l.scans(a, b))), slices.Sorted(slices.Values(names))...)
			harness.Same(t, tc.reason+", and both are there: in doubt", 0, l.plan.doubtful)
			f := l.findings[l.scans(left)[0]]
			harness.Same(t, tc.reason+": in doubt", tc.doubts, l.plan.doubtful)
			if d := f.Spec.Doubt; tc.doubts > 0 && findingstate.Declared(&f.Spec) != v1alpha1.UserStatusOpen && (d == nil || d.Reason != string(recognition.DoubtCount)) {
				t.Errorf("%s, only %q is left, and %s has the doubt %+v", tc.reason, left.Message, f.Name, d)
			}
			l.wantOpen("one is left", 1)
		}
	}
}

// The second of two sources was repaired, and comes back when the first is repaired, maybe after the query has moved.
func TestADecisionAboutASourceDoesNotPassToOneThatComesBack(t *testing.T) {
	for _, line := range []int32{5, 8} {
		l := newLife(t)
		names := l.scans(flow(5, "c.js", 10), flow(5, "c.js", 20))
		l.mute()
		l.decideNothing(names[1])
		l.scans(flow(5, "c.js", 10))
		l.scans(flow(line, "c.js", 10))
		l.findings[names[0]].Spec.Doubt = nil // that only one is left, and has moved
		l.scans(flow(line, "c.js", 20))
		if f := l.findings[names[0]]; f.Spec.Closed == nil && f.Spec.Doubt == nil {
			t.Errorf("the decision passes to the second, without a doubt, at line %d", line)
		}
	}
}

// A module is renamed with its file: the decisions stay, in doubt. The results may also be those of another resource, so
// a review counts them as new.
func TestAFileThatIsRenamedWithItsModuleKeepsItsDecisions(t *testing.T) {
	for _, code := range [][2]string{{"", ""}, {"x()", "y()"}} {
		of := func(path, module string) []sarif.Result {
			out := []sarif.Result{inFile(path, code[0], 3), inFile(path, code[1], 9)}
			for i := range out {
				out[i].Index, out[i].Logical = i, []sarif.Logical{{Kind: "module", Name: module}}
			}
			return out
		}
		l := newLife(t)
		names := l.scans(of("shop/cart.py", "shop.cart")...)
		l.mute()
		renamed := of("shop/basket.py", "shop.basket")
		out := &Compared{Known: ResultSet{}}
		batch := &Batch{Tool: "lint", Category: v1alpha1.CategoryCode, Results: renamed}
		comparison := toolComparison{base: Base{Since: time.Now()}, repository: &v1alpha1.Repository{}, coverage: coverage{batches: []*Batch{batch}},
			findings: l.there(), out: out}
		harness.Must(t, comparison.compare(t.Context()))
		harness.Same(t, "known in a review, code "+code[0], 0, len(out.Known))
		l.want("code "+code[0], l.scans(renamed...), names...)
		for _, name := range names {
			harness.Same(t, "in doubt, code "+code[0], true, l.findings[name].Spec.Doubt != nil)
		}
	}
}

// The second of two sources was repaired. When a third comes, the first keeps its decision, in whichever order they are.
func TestADecisionAboutASourceStaysWithItWhenAnotherIsClosed(t *testing.T) {
	first, second, third := flow(5, "c.js", 10), flow(5, "c.js", 20), flow(5, "c.js", 30)
	for undecided := range 2 {
		for at, now := range [][]sarif.Result{{first, third}, {third, first}} {
			l := newLife(t)
			names := l.scans(first, second)
			l.mute()
			l.decideNothing(names[undecided])
			l.scans(first)
			got := l.scans(now...)
			harness.Same(t, fmt.Sprintf("undecided: %d, the first comes at %d", undecided, at), names[0], got[at])
		}
	}
}

// flow returns a result about data that reaches a query, of a source in a file.
func flow(line int32, file string, source int32) sarif.Result {
	r := inFile("db.js", "query(x)", line)
	r.Related = []sarif.Location{{Path: file, Line: source}}
	return r
}

// Two sources reach one query, and somebody has decided about one of them. The results differ only in the source.
func TestADecisionAboutOneOfSeveralSourcesStaysWithIt(t *testing.T) {
	moved := func(path string, results ...sarif.Result) []sarif.Result {
		for i := range results {
			results[i].Location.Path = path
		}
		return results
	}
	first, second := flow(5, "c.js", 10), flow(5, "c.js", 20)
	both := []sarif.Result{first, second}
	unsourced := []sarif.Result{redacted("aaaaaaa"), redacted("bbbbbbb")}
	sourced := slices.Clone(unsourced)
	sourced[0].Related, sourced[1].Related = first.Related, second.Related
	for _, tc := range []struct {
		reason      string
		before, now []sarif.Result
		// own are the indexes before of the results now; -1: it is new; nil: nobody knows.
		own []int
		// doubt about the pairs of which own says whose they are.
		doubt recognition.Doubt
	}{
		{"nothing changes", both, both, []int{0, 1}, ""},
		{"the first is repaired, and the query moves", both, []sarif.Result{flow(8, "c.js", 20)}, []int{1}, recognition.DoubtCount},
		{"the second is replaced", both, []sarif.Result{flow(5, "c.js", 30), first}, []int{1, 0}, ""},
		{"the query moves", both, []sarif.Result{flow(8, "c.js", 10), flow(8, "c.js", 20)}, []int{0, 1}, ""},
		{"the sources move", both, []sarif.Result{flow(5, "c.js", 11), flow(5, "c.js", 21)}, nil, ""},
		{"two without a source get their own", unsourced, sourced, nil, ""},
		{"one of two without a source gets one", unsourced, []sarif.Result{unsourced[0], sourced[1]}, nil, ""},
		{"one source moves, the other is repaired", both, []sarif.Result{flow(5, "c.js", 15)}, nil, ""},
		{"query and sources move", []sarif.Result{flow(9, "db.js", 1), flow(9, "db.js", 2)}, []sarif.Result{flow(12, "db.js", 4), flow(12, "db.js", 5)}, []int{0, 1}, ""},
		{"a line comes between neighbours and the query", []sarif.Result{flow(50, "db.js", 10), flow(50, "db.js", 11)}, []sarif.Result{flow(51, "db.js", 10), flow(51, "db.js", 11)}, []int{0, 1}, ""},
		{"a line comes above neighbours", []sarif.Result{flow(50, "db.js", 10), flow(50, "db.js", 11)}, []sarif.Result{flow(51, "db.js", 11), flow(51, "db.js", 12)}, []int{0, 1}, ""},
		{"a line comes between the sources", []sarif.Result{flow(50, "db.js", 10), flow(50, "db.js", 40)}, []sarif.Result{flow(51, "db.js", 10), flow(51, "db.js", 41)}, []int{0, 1}, ""},
		{"a line comes, and one may be either of two neighbours", []sarif.Result{flow(50, "db.js", 10), flow(50, "db.js", 11)}, []sarif.Result{flow(51, "db.js", 11), flow(51, "db.js", 13)}, nil, ""},
		{"the file is renamed", both, moved("lib.js", first, second), []int{0, 1}, ""},
		{"another comes", both[:1], []sarif.Result{flow(5, "c.js", 30), first}, []int{-1, 0}, ""},
		{"another comes, and the source moves", both[:1], []sarif.Result{flow(5, "c.js", 30), flow(5, "c.js", 11)}, nil, ""},
	} {
		for i := range 8 {
			backwards, closed, muted := i&1 > 0, i&2 > 0, i>>2
			if muted >= len(tc.before) || closed && tc.now[0].Location.Path != first.Location.Path {
				continue // a file of which all findings are closed is not looked for
			}
			reason := fmt.Sprintf("%s, muted: %d, backwards: %t, closed before: %t", tc.reason, muted, backwards, closed)
			l := newLife(t)
			names := l.scans(tc.before...)
			l.mute()
			if len(names) > 1 {
				l.decideNothing(names[1-muted])
			}
			if closed {
				l.scans()
			}
			now, own := slices.Clone(tc.now), slices.Clone(tc.own)
			if backwards {
				slices.Reverse(now)
				slices.Reverse(own)
			}
			for i, name := range l.scans(now...) {
				if own != nil && (own[i] >= 0 && name != names[own[i]] || own[i] < 0 && slices.Contains(names, name)) {
					t.Errorf("%s: result %d is %s, want that of %d of %v", reason, i, name, own[i], names)
				}
				d := l.findings[name].Spec.Doubt
				if own != nil && d != nil && d.Reason != string(tc.doubt) {
					t.Errorf("%s: in doubt: %s", reason, d.Reason)
				} else if d == nil && own == nil && name == names[muted] {
					t.Errorf("%s: %s is not in doubt", reason, name)
				}
			}
		}
	}
}

func TestDecisionsAreTheSameWhoeverMadeThem(t *testing.T) {
	for _, tc := range []struct {
		reason string
		same   bool
		change func(*v1alpha1.FindingSpec)
	}{
		{"another person and other words", true, func(s *v1alpha1.FindingSpec) { s.Triage.By, s.Triage.Comments = "bob", "see above" }},
		{"another status", false, func(s *v1alpha1.FindingSpec) { s.Triage.UserStatus = v1alpha1.UserStatusActive }},
		{"another reason", false, func(s *v1alpha1.FindingSpec) { s.Triage.Reason = "duplicate" }},
		{"an end", false, func(s *v1alpha1.FindingSpec) { s.Triage.ExpiresAt = &v1alpha1.Time{} }},
		{"another basis", false, func(s *v1alpha1.FindingSpec) { s.Triage.Basis = "severity=high" }},
		{"in doubt", false, func(s *v1alpha1.FindingSpec) { s.Doubt = &v1alpha1.FindingDoubt{Reason: "moved"} }},
	} {
		a := v1alpha1.FindingSpec{Triage: v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusMuted, By: "ann"}}
		b := a
		tc.change(&b)
		harness.Same(t, tc.reason, tc.same, decisionOf(&a) == decisionOf(&b))
	}
	undecided := v1alpha1.FindingSpec{Triage: v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusOpen}}
	harness.Same(t, "nobody has decided", "", decisionOf(&undecided))
	undecided.Triage.By = "ann"
	harness.Same(t, "somebody has commented", "", decisionOf(&undecided))
	undecided.Triage.By = "operation/reopen"
	harness.Same(t, "withdrawn by an operation", "open", strings.TrimSpace(decisionOf(&undecided)))
}

// A scan that closes nothing leaves the finding that is gone open, so each scan finds the same doubt again until one is
// complete. A later loss is another doubt.
func TestADoubtIsStoredOnceUntilAScanIsComplete(t *testing.T) {
	for undecided, reason := range []string{"the second is muted", "the first is muted"} {
		l := newLife(t)
		a, b := redacted("aaaaaaa"), redacted("bbbbbbb")
		names := l.scans(a, b)
		l.mute()
		l.decideNothing(names[undecided])
		writes := func() int { known, _, _ := l.plan.stages(); return len(known) }
		l.lost = func(i int) bool { return i >= writes() } // it closes nothing
		f := l.findings[l.scans(a)[0]]
		doubts := 0
		if findingstate.Declared(&f.Spec) != v1alpha1.UserStatusOpen {
			doubts = 1
		}
		harness.Same(t, reason+": writes of the first scan", doubts, writes())
		f.Spec.Triage.Basis = findingstate.Basis(&f.Spec) // somebody repeats the decision
		l.scans(a)
		harness.Same(t, reason+": writes of the same scan again", 0, writes())
		l.lost = nil
		l.scans(a)
		harness.Same(t, reason+": writes of a complete scan", 0, writes())
		l.wantOpen(reason, 1)
		l.observe()
		f = l.findings[f.Name]
		harness.Same(t, reason+": why the decision is stale", "", findingstate.WhyStale(f))
		l.scans(a, b)
		l.lost = func(i int) bool { return i >= writes() }
		l.scans(a)
		harness.Same(t, reason+": writes after a later loss", doubts, writes())
		f = l.findings[f.Name]
		f.Spec.Triage.Basis = findingstate.Basis(&f.Spec)
		l.observe()
		another := a
		another.CWEs = []string{"CWE-798"}
		l.scans(another)
		harness.Same(t, reason+": writes of another fact", 1, writes())
		f = l.findings[f.Name]
		harness.Same(t, reason+": why the decision is stale after another fact", "", findingstate.WhyStale(f))
	}
}

// The finding is undecided then, and a doubt would be shown nowhere. Its end is no operation's, so no undo changes it.
func TestADecisionThatHasEndedIsNotPutInDoubt(t *testing.T) {
	for after, doubted := range map[time.Duration]bool{-time.Hour: false, time.Hour: true} {
		l := newLife(t)
		name := l.scans(inFile("a.go", "", 5))[0]
		l.mute()
		triage := &l.findings[name].Spec.Triage
		triage.By, triage.ExpiresAt = "ann", new(v1alpha1.NewTime(time.Now().Add(after)))
		l.observe()
		l.want("the line moved", l.scans(inFile("a.go", "", 9)), name)
		harness.Same(t, "in doubt "+after.String()+" before the end", doubted, l.findings[name].Spec.Doubt != nil)
	}
}

// decideNothing takes back the decision about a finding.
func (l *life) decideNothing(name string) {
	l.findings[name].Spec.Triage = v1alpha1.FindingTriage{}
}

// An earlier version digested the commit too, and the ordinal of a fingerprint depends on the other results: neither
// tells findings apart.
func TestOldDigestsAndOrdinalsTellNoFindingsApart(t *testing.T) {
	numbered := func(hash string) sarif.Result {
		r := inFile("a.go", "", 5)
		r.Fingerprints = map[string]string{"matchBasedId/v1": hash}
		return r
	}
	for name, both := range map[string][2]sarif.Result{
		"digest":  {redacted("aaaaaaa"), redacted("bbbbbbb")},
		"ordinal": {numbered("abcdefabcdef_0"), numbered("abcdefabcdef_1")},
	} {
		l := newLife(t)
		names := l.scans(both[:]...)
		l.digestAsBefore(names[0], &both[0])
		l.mute()
		l.decideNothing(names[1])
		l.scans(both[0])
		harness.Same(t, name+": in doubt", 1, l.plan.doubtful)
	}
}

// Of two findings with equal evidence each keeps its own result, though an earlier version digested one of them.
func TestAnOldDigestDoesNotHideWhatAFindingSays(t *testing.T) {
	at := func(commit string) sarif.Result {
		r := inFile("a.go", "REDACTED", 5)
		r.Message = "aws-key has detected secret for file a.go at commit " + commit + "."
		return r
	}
	both := []sarif.Result{at("aaaaaaa"), at("bbbbbbb")}
	for i := range both {
		l := newLife(t)
		names := l.scans(both...)
		l.digestAsBefore(names[i], &both[i])
		l.want("only "+both[i].Message, l.scans(both[i]), names[i])
	}
}

// digestAsBefore gives the result's finding the evidence that an earlier version stored.
func (l *life) digestAsBefore(name string, r *sarif.Result) {
	l.findings[name].Spec.Evidence = digestOf(r, r.Message)
}

// Two jobs may report a problem under two names of a tool, or in two analyses: these findings are copies.
func TestACopyOfAFindingLeavesNoDoubt(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.FindingSpec){
		"tool":     func(spec *v1alpha1.FindingSpec) { spec.Tool = "former" },
		"analysis": func(spec *v1alpha1.FindingSpec) { spec.Analysis = "java" },
		"project":  func(spec *v1alpha1.FindingSpec) { spec.ProjectRef.Name = "api" },
	} {
		r := inFile("a.go", "x()", 5)
		own := testContext(v1alpha1.CategoryCode).spec(&r)
		other := *own.DeepCopy()
		change(&other)
		own.Triage.UserStatus = v1alpha1.UserStatusMuted
		matches := pair([]reported{{result: &r, spec: own}}, &candidates{findings: []v1alpha1.Finding{{Spec: own}, {Spec: other}}}, nil)
		if m := matches[0]; m.before == nil || m.doubt != "" {
			t.Errorf("another %s: the result is known (%v), with the doubt %q", name, m.before != nil, m.doubt)
		}
	}
}

// An earlier version digested the commit too. The issue of a merged pull request has the key of that digest.
func TestAFindingKeepsTheKeyOfADigestOfACommit(t *testing.T) {
	at := func(line int32) sarif.Result {
		r := inFile("a.go", "REDACTED", line)
		r.Message = "aws-key has detected secret for file a.go at commit abcdef0."
		return r
	}
	l := newLife(t)
	r := at(5)
	first, evidence := l.scans(r)[0], digestOf(&r, r.Message)
	f := l.findings[first]
	if f.Spec.Evidence == evidence {
		t.Fatal("the evidence depends on the commit")
	}
	f.Spec.Evidence = evidence
	key := fingerprints.Key(&f.Spec)
	l.mute()
	described := &Described{Facts: testContext(v1alpha1.CategoryCode).spec(&r), result: &r}
	certain, _ := Certain([]*Described{described}, l.there())
	l.want("in a review", certain, first)
	l.want("after the upgrade", l.scans(r), first)
	f = l.findings[first]
	harness.Same(t, "evidence", evidence, f.Spec.Evidence)
	harness.Same(t, "key", key, fingerprints.Key(&f.Spec))
	l.doubted("after the upgrade", first, "")
}

// A location may give its name only by its index in the run.
func TestResultsAtDifferentLogicalLocationsAreDifferent(t *testing.T) {
	log, err := sarif.Parse(strings.NewReader(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"lint"}},"results":[
		{"ruleId":"R","locations":[{"logicalLocations":[{"index":0}]}]},
		{"ruleId":"R","locations":[{"logicalLocations":[{"index":1}]}]},
		{"ruleId":"R","locations":[{"logicalLocations":[{"index":0,"name":"db"}]}]},
		{"ruleId":"R","locations":[{"logicalLocations":[{"index":1,"name":"db"}]}]}]}]}`), sarif.Options{})
	harness.Must(t, err)
	r := log.Runs[0].Results
	if digest(&r[0]) == digest(&r[1]) {
		t.Error("two that differ only in the index are one")
	}
	if digest(&r[2]) != digest(&r[3]) {
		t.Error("the index of a location with a name counts")
	}
}

// A binary has no lines: offsets, the end, an archive, a function or the arguments of a message are all that tells its
// results apart. Names depend on the order of digests, so these do not change a digest.
func TestADetailTellsResultsApart(t *testing.T) {
	at := func(region string) string {
		return `"message":{"text":"m"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a.dll"},"region":{` + region + `}}}]`
	}
	in := func(artifact string) string {
		return `"message":{"text":"m"},"locations":[{"physicalLocation":{"artifactLocation":{"index":` + artifact + `}}}]`
	}
	overload := func(name, decorated, region string) string {
		return `"message":{"text":"m"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a.dll"},"region":{` + region + `}},
			"logicalLocations":[{"fullyQualifiedName":"` + name + `","decoratedName":"` + decorated + `","kind":"function"}]}]`
	}
	function := func(name, region string) string { return overload(name, "", region) }
	for reason, tc := range map[string]struct {
		two  [2]string
		same bool
	}{
		"offset of bytes":       {[2]string{at(`"byteOffset":100,"byteLength":4`), at(`"byteOffset":900,"byteLength":4`)}, false},
		"offset of characters":  {[2]string{at(`"charOffset":0`), at(`"charOffset":"9"`)}, false},
		"end":                   {[2]string{at(`"startLine":1,"endColumn":5`), at(`"startLine":1,"endColumn":9`)}, false},
		"no end, or none given": {[2]string{at(`"startLine":1,"endLine":1,"byteOffset":-1`), at(`"startLine":1,"endLine":null`)}, true},
		"archive":               {[2]string{in("1"), in("3")}, false},
		"same file":             {[2]string{in("3"), in("3")}, true},
		"archive within itself": {[2]string{in("4"), in("4")}, true},
		"function":              {[2]string{function("parse", ""), function("auth", "")}, false},
		"overload":              {[2]string{overload("f", "_Z1fi", ""), overload("f", "_Z1fd", "")}, false},
		"instance of a template": {
			[2]string{function("f<int>", `"startLine":1`), function("f<bool>", `"startLine":1`)}, true},
		"argument without a text": {
			[2]string{`"message":{"id":"call","arguments":["strcpy"]}`, `"message":{"id":"call","arguments":["gets"]}`}, false},
		"argument that no text shows": {
			[2]string{`"message":{"text":"m","arguments":["1"]}`, `"message":{"text":"m","arguments":["2"]}`}, true},
	} {
		log, err := sarif.Parse(strings.NewReader(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"lint"}},"artifacts":[
			{"location":{"uri":"a.jar"}},{"location":{"uri":"/X.class"},"parentIndex":0},
			{"location":{"uri":"b.jar"}},{"location":{"uri":"/X.class"},"parentIndex":2},{"location":{"uri":"c"},"parentIndex":4}],
			"results":[{"ruleId":"R",`+tc.two[0]+`},{"ruleId":"R",`+tc.two[1]+`}]}]}`), sarif.Options{})
		harness.Must(t, err)
		r := log.Runs[0].Results
		harness.Same(t, reason+": same digest", digest(&r[0]), digest(&r[1]))
		harness.Same(t, reason+": same", tc.same, keyOf(&r[0]) == keyOf(&r[1]))
	}
}

// Names in Latin-1 are no UTF-8. An earlier version stored one path for both of these.
func TestFilesWhoseNamesAreNotUTF8AreTwo(t *testing.T) {
	l := newLife(t)
	e, f := inFile("caf\xe9.c", "x()", 5), inFile("caf\xe8.c", "x()", 5)
	l.scans(e, f)
	var paths []string
	for _, f := range l.there() {
		paths = append(paths, f.Spec.Details.Location.FilePath)
	}
	slices.Sort(paths)
	l.want("paths", paths, "caf%E8.c", "caf%E9.c")

	l = newLife(t)
	ofE, ofF := inFile("a.c", "x()", 5), inFile("a.c", "x()", 5)
	ofE.Related, ofF.Related = []sarif.Location{{Path: "caf\xe9.h"}}, []sarif.Location{{Path: "caf\xe8.h"}}
	l.scans(ofE, ofF)
	l.wantOpen("two related files", 2)

	l = newLife(t)
	first := l.scans(inFile("caf\uFFFD.c", "x()", 5))[0]
	l.mute()
	l.want("stored by an earlier version", l.scans(e), first)
	l.doubted("stored by an earlier version", first, "")

	l = newLife(t)
	two := l.scans(inFile("caf\uFFFD.c", "x()", 5), inFile("caf\uFFFD.c", "other()", 5))
	l.mute()
	f.Location.Snippet = "other()"
	l.want("two files stored as one", l.scans(e, f), two...)
	for _, name := range two {
		l.doubted("two files stored as one: "+name, name, "")
	}
	l = newLife(t)
	maskedE, maskedF := secretAt(5, "AKIA..."), secretAt(9, "ASIA...")
	maskedE.Location.Path, maskedF.Location.Path = "caf\uFFFD.c", "caf\uFFFD.c"
	two = l.scans(maskedE, maskedF)
	for i, r := range []sarif.Result{maskedE, maskedF} {
		l.findings[two[i]].Spec.Evidence = messageDigest(&r) + "." + codeDigest(codeOf(&r))
	}
	l.mute()
	maskedE.Location.Path, maskedF.Location.Path = "caf\xe9.c", "caf\xe8.c"
	l.want("masked secrets in two files stored as one", l.scans(maskedE, maskedF), two...)
	for _, name := range two {
		l.doubted("masked secrets in two files stored as one: "+name, name, "")
	}
	l = newLife(t)
	first = l.scans(inFile("caf\uFFFD.c", "x()", 5))[0]
	l.mute()
	f.Location.Snippet = "x()"
	if slices.Contains(l.scans(e, f), first) && l.findings[first].Spec.Doubt == nil {
		t.Error("the decision passes to one of two files that nothing tells apart")
	}

	for reason, beside := range map[string][]sarif.Result{
		"a file of which it may have been": {inFile("caf\xe9.c", "other()", 5)}, "no file of which it may have been": nil,
	} {
		l = newLife(t)
		first = l.scans(inFile("caf\uFFFD.c", "x()", 5), inFile("caf\uFFFD.c", "other()", 5))[0]
		l.mute()
		l.scans(inFile("caf\uFFFD.c", "other()", 5))
		if slices.Contains(l.scans(append(beside, f)...), first) && l.findings[first].Spec.Doubt == nil {
			t.Errorf("a closed finding is reopened for another file, without a doubt, beside %s", reason)
		}
	}
}
