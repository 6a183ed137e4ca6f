package importer

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/scanimport/recognition"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
)

// evidenceText is what a Finding stores beside its facts, so that the next import can recognise the result: digests of
// message, code and logical location, the column, the digest of a fingerprint that is stored cut, and whether the code
// is masked. A digest has 40 bits: enough to distinguish the results of one rule, and no copy of a possible secret.
func evidenceText(r *sarif.Result, category v1alpha1.FindingCategory) string {
	e := fingerprints.Evidence{
		Message: messageDigest(r), Code: codeDigest(codeOf(r)), Resource: fingerprints.ShortDigest(resource(r)),
		Whole: wholeDigest(r.Fingerprints),
	}
	e.Masked = e.Code != "" && masksCode(r, category)
	if r.Location.Column > 0 {
		e.Column = strconv.Itoa(int(r.Location.Column))
	}
	return e.String()
}

// wholeDigest returns the digest of the best fingerprint if it is cut when stored, to distinguish fingerprints that
// begin alike; "" otherwise.
func wholeDigest(all map[string]string) string {
	name := fingerprints.BestCut(storedFingerprints(all))
	if name == "" {
		return ""
	}
	return fingerprints.ShortDigest(name + " " + fingerprints.WithoutOrdinal(name, clean(all[name])))
}

// resource returns the name of the first logical location that is a resource, or else the endpoint. It is empty for a
// package, whose logical location only names the version or the image. A function or a class is not a resource, because
// it can hold many problems of one rule.
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

// subjects returns the names of the resources and objects that a result is about, and its requests. They distinguish
// results that are otherwise the same.
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

// about distinguishes results about different packages. It is not part of the digest, because names depend on the order
// of digests.
func about(r *sarif.Result) string {
	if p := packageFact(r.Package); p != nil {
		return fingerprints.Hash(p.Name, p.Version, fingerprints.WithoutVersion(p.PURL))
	}
	return ""
}

// isResource reports whether a kind of logical locations, in lower case, is for resources.
func isResource(kind string) bool { return kind == "" || kind == "resource" || kind == "module" }

// inCommit matches the commit in gitleaks's messages. In a shallow clone it is always the scanned commit.
var inCommit = regexp.MustCompile(` at commit [0-9a-f]{7,64}\b`)

// messageDigest returns a digest without the path, the image and the commit, which some tools repeat in the message:
// moving a file, building an image or pushing a commit does not change it.
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

// bestOf returns the best fingerprint of a finding or of a converted result.
func bestOf(spec *v1alpha1.FindingSpec, constant map[string]bool) string {
	return fingerprints.Best(fingerprints.Stored(spec), constant)
}

// mask matches code in which a tool hides a secret, or all but its beginning, as gitleaks --redact=80 does.
// The secret may be one of several words in the line.
var mask = regexp.MustCompile("(?i)[*•]{3}|(?:\\.{3}|…)(?:[\"'`]|\\s*$)|redacted")

// masksCode reports whether the tool masks a secret in the result's code, so that the code of other secrets looks the
// same. Other code may contain or end like a mask.
func masksCode(r *sarif.Result, category v1alpha1.FindingCategory) bool {
	return showsSecret(r, category) && mask.MatchString(codeOf(r))
}

// codeOf returns the code at the place of a result, or else around it.
func codeOf(r *sarif.Result) string { return sarif.FirstOf(r.Location.Snippet, r.Location.Context) }

// codeDigest returns the digest of code in the form that a finding stores.
func codeDigest(code string) string { return fingerprints.CodeDigest(cut(block(code), maxCode)) }

// evidenceOf returns the evidence by which a finding or a converted result is recognised.
func evidenceOf(spec *v1alpha1.FindingSpec, constant map[string]bool) recognition.Evidence {
	at := spec.Details.Place()
	e := recognition.Evidence{
		Rule: spec.RuleID, Path: at.FilePath, Line: at.LineNumber, Fingerprint: bestOf(spec, constant),
		Suppressed: spec.Suppression != nil,
	}
	if v := spec.Vulnerability; v != nil {
		e.Vulnerability, e.IDs = v.ID, strings.Join(ownIDs(v), "\n")
	}
	p := spec.Package
	if p != nil {
		e.Package, e.Version, e.PURL = p.Name, p.Version, fingerprints.WithoutVersion(p.PURL)
	}
	// An earlier version did not read the package from the rule's id, or took the second of several CVEs for its name.
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
	stored := fingerprints.ParseEvidence(spec.Evidence)
	e.Message, e.Snippet, e.Resource = stored.Message, stored.Code, stored.Resource
	if stored.Masked {
		e.Snippet, e.Masked = "", stored.Code
	}
	if column, err := strconv.ParseInt(stored.Column, 10, 32); err == nil {
		e.Column = int32(column)
	}
	return e
}

// constantsOf returns the fingerprints that identify nothing, because too many results or findings share them.
func constantsOf(results []reported, existing []v1alpha1.Finding) map[string]bool {
	all := make([]map[string]string, len(results))
	for i := range results {
		all[i] = fingerprints.Stored(&results[i].spec)
	}
	constant := fingerprints.Constants(all)
	known := make([]map[string]string, len(existing))
	for i := range existing {
		known[i] = fingerprints.Stored(&existing[i].Spec)
	}
	for name := range fingerprints.Constants(known) {
		constant[name] = true
	}
	return constant
}
