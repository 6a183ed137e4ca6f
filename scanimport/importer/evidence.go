package importer

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/scanimport/recognition"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
)

// evidenceText is what a Finding stores of a result, beside its facts, so that the next import can recognise it:
// digests of message, code and logical location, the column, and the digest of a fingerprint that is stored cut. A
// digest has 40 bits: enough to tell results of one rule apart, and not a copy of a possible secret.
func evidenceText(r *sarif.Result) string {
	column := ""
	if r.Location.Column > 0 {
		column = strconv.Itoa(int(r.Location.Column))
	}
	return strings.TrimRight(strings.Join([]string{
		messageDigest(r), codeDigest(sarif.FirstOf(r.Location.Snippet,
			r.Location.Context)), fingerprints.ShortDigest(resource(r)), column, wholeDigest(r.Fingerprints),
	}, "."), ".")
}

// wholeDigest returns the digest of the best fingerprint that is cut when it is stored, so that those that begin alike
// are told apart; "" if there is none.
func wholeDigest(all map[string]string) string {
	name := fingerprints.BestCut(storedFingerprints(all))
	if name == "" {
		return ""
	}
	return fingerprints.ShortDigest(name + " " + fingerprints.WithoutOrdinal(name, clean(all[name])))
}

// resource returns the name of the first logical location that is a resource, or else the endpoint. It is empty for a
// result about a package, whose logical location only names the version or the image. A function or a class is not a
// resource: it holds many problems of one rule.
func resource(r *sarif.Result) string {
	if r.Package != nil {
		return ""
	}
	for _, l := range r.Logical {
		name := sarif.FirstOf(l.FullyQualifiedName, l.Name)
		if name != "" && isResource(strings.ToLower(l.Kind)) {
			return name
		}
	}
	if len(r.Endpoints) > 0 {
		return r.Endpoints[0].Method + " " + r.Endpoints[0].Path
	}
	return ""
}

// subjects returns the names of the resources and objects that a result is about, and its requests. They tell results
// apart that are otherwise the same.
func subjects(r *sarif.Result) (out []string) {
	if r.Package != nil {
		return nil
	}
	for _, l := range r.Logical {
		name, kind := sarif.FirstOf(l.FullyQualifiedName, l.Name), strings.ToLower(l.Kind)
		if name != "" && (isResource(kind) || kind == "object") {
			out = append(out, name)
		}
		if l.Reference > 0 {
			out = append(out, "logicalLocations/"+strconv.Itoa(l.Reference-1))
		}
	}
	for _, e := range r.Endpoints {
		out = append(out, e.Method+" "+e.Path)
	}
	return out
}

// about tells results about different packages apart. It is not part of the digest, because names depend on the order
// of digests.
func about(r *sarif.Result) string {
	if p := packageFact(r.Package); p != nil {
		return fingerprints.Hash(p.Name, p.Version, fingerprints.WithoutVersion(p.PURL))
	}
	return ""
}

// isResource reports whether a kind of logical locations, in lower case, is for resources.
func isResource(kind string) bool { return kind == "" || kind == "resource" || kind == "module" }

// inCommit matches the commit in gitleaks's messages. In a shallow clone it is the one that is scanned, whatever commit
// brought the secret.
var inCommit = regexp.MustCompile(` at commit [0-9a-f]{7,64}\b`)

// messageDigest ignores the path, which some tools repeat in the message, the image and the commit: moving a file,
// building an image or pushing a commit does not change the message.
func messageDigest(r *sarif.Result) string {
	return digestOf(r, inCommit.ReplaceAllString(r.Message, ""))
}

// digestOf returns the digest of a result's message.
func digestOf(r *sarif.Result, message string) string {
	message = withoutImage(message)
	if len(r.Location.Path) > 1 {
		message = strings.ReplaceAll(message, r.Location.Path, "")
	}
	return fingerprints.ShortDigest(strings.Join(strings.Fields(message), " "))
}

// renewDigests replaces in the evidence of findings the digests of messages that an earlier version stored, if the
// message still names the same commit: they included it. What is stored stays, as keys depend on it; see keepDigest.
func renewDigests(results []reported, is []recognition.Evidence, there []recognition.Known) {
	message := func(e *recognition.Evidence, digest string) recognition.Evidence {
		return recognition.Evidence{Rule: e.Rule, Path: e.Path, Message: digest}
	}
	renewed := map[recognition.Evidence]string{}
	for i := range results {
		if r := results[i].result; r != nil && inCommit.MatchString(r.Message) {
			renewed[message(&is[i], digestOf(r, r.Message))] = is[i].Message
		}
	}
	for i := range there {
		was := &there[i].Evidence
		was.Message = cmp.Or(renewed[message(was, was.Message)], was.Message)
	}
}

// keepDigest returns the evidence to be stored of a result. If it was recognised through a renewed digest, its finding
// keeps the stored one, because issues of merged pull requests have the key of that.
func keepDigest(m *match, evidence string) string {
	stored, _, _ := strings.Cut(m.before.Spec.Evidence, ".")
	if stored == "" || stored == m.was.Message || m.was.Message != m.is.Message {
		return evidence
	}
	_, rest, _ := strings.Cut(evidence, ".")
	return strings.TrimRight(stored+"."+rest, ".")
}

// renewPaths replaces in the evidence of findings the paths that an earlier version stored: it wrote U+FFFD for bytes
// that are no UTF-8. Where several files have one such path, rule, message, code or fingerprint tell which of them it
// was; where these agree too, it is unknown.
func renewPaths(results []reported, is []recognition.Evidence, there []recognition.Known) {
	renewed := map[recognition.Evidence]string{}
	renew := func(stored recognition.Evidence, path string) {
		if other, twice := renewed[stored]; twice && other != path {
			path = stored.Path
		}
		renewed[stored] = path
	}
	for i := range results {
		r, at := results[i].result, results[i].spec.Details.Location
		if r == nil || at == nil || utf8.ValidString(r.Location.Path) {
			continue
		}
		earlier := cut(clean(r.Location.Path), maxFilePath)
		renew(recognition.Evidence{Path: earlier}, at.FilePath)
		renew(problemAt(&is[i], earlier), at.FilePath)
	}
	for i := range there {
		k := &there[i]
		path := cmp.Or(renewed[problemAt(&k.Evidence, k.Path)], renewed[recognition.Evidence{Path: k.Path}], k.Path)
		k.Presumed = path != k.Path
		k.Path = path
	}
}

// problemAt returns the problem as it would be in the file path, without its place there.
func problemAt(e *recognition.Evidence, path string) recognition.Evidence {
	return recognition.Evidence{
		Rule: e.Rule, Path: path, Message: e.Message, Snippet: e.Snippet, Fingerprint: e.Fingerprint,
	}
}

// acceptCut marks the findings of which only the beginning of the fingerprint is known, as an earlier version stored no
// digest of the whole. Results that begin alike are compared by the beginning alone, unless another finding has their
// whole fingerprint.
func acceptCut(results []reported, is []recognition.Evidence, there []recognition.Known, constant map[string]bool) {
	type ofRule struct{ rule, fingerprint string }
	begun, whole := map[ofRule]bool{}, map[ofRule]bool{}
	for i := range there {
		k := &there[i]
		k.Cut = strings.HasSuffix(k.Fingerprint, cutMark)
		if k.Cut {
			begun[ofRule{k.Rule, k.Fingerprint}] = true
		} else {
			whole[ofRule{k.Rule, k.Fingerprint}] = true
		}
	}
	if len(begun) == 0 {
		return
	}
	for i := range is {
		if e := &is[i]; !whole[ofRule{e.Rule, e.Fingerprint}] {
			earlier := results[i].spec
			earlier.Evidence = ""
			if begin := bestOf(&earlier, constant); begun[ofRule{e.Rule, begin}] {
				e.Fingerprint = begin
			}
		}
	}
}

// bestOf returns the best fingerprint of a finding, or of a result turned into one.
func bestOf(spec *v1alpha1.FindingSpec, constant map[string]bool) string {
	return fingerprints.Best(fingerprints.Stored(spec), constant)
}

// codeDigest returns the digest of code as a finding stores it.
func codeDigest(code string) string { return fingerprints.CodeDigest(cut(block(code), maxCode)) }

// evidenceOf returns the evidence by which a finding, or a result turned into one, is recognised.
func evidenceOf(spec *v1alpha1.FindingSpec, constant map[string]bool) recognition.Evidence {
	e := recognition.Evidence{Rule: spec.RuleID, Fingerprint: bestOf(spec, constant)}
	if l := spec.Details.Location; l != nil {
		e.Path, e.Line = l.FilePath, l.LineNumber
	}
	if v := spec.Vulnerability; v != nil {
		e.Vulnerability, e.IDs = v.ID, strings.Join(ownIDs(v), "\n")
	}
	p := spec.Package
	if p != nil {
		e.Package, e.Version, e.PURL = p.Name, p.Version, fingerprints.WithoutVersion(p.PURL)
	}
	// An earlier version did not read the package from the rule's id, or took the second of several CVEs there for a
	// part of the name.
	if p == nil || strings.HasPrefix(p.Name, "CVE-") {
		if vulnerability, of := sarif.PackageOfRule(spec.RuleID); of != nil {
			e.Vulnerability, e.Package, e.Version, e.PURL = vulnerability, of.Name, of.Version, ""
		}
	}
	if spec.Evidence == "" {
		// An earlier version stored the code, but no digest of the message and no column.
		e.Snippet = codeDigest(spec.Details.Code)
		return e
	}
	parts := append(strings.Split(spec.Evidence, "."), "", "", "")
	e.Message, e.Snippet, e.Resource = parts[0], parts[1], parts[2]
	if column, err := strconv.ParseInt(parts[3], 10, 32); err == nil {
		e.Column = int32(column)
	}
	return e
}

// constantsOf returns the fingerprints that identify nothing, judged by the results or the findings that share them.
func constantsOf(results []reported, there []v1alpha1.Finding) map[string]bool {
	all := make([]map[string]string, len(results))
	for i := range results {
		all[i] = fingerprints.Stored(&results[i].spec)
	}
	constant := fingerprints.Constants(all)
	known := make([]map[string]string, len(there))
	for i := range there {
		known[i] = fingerprints.Stored(&there[i].Spec)
	}
	for name := range fingerprints.Constants(known) {
		constant[name] = true
	}
	return constant
}
