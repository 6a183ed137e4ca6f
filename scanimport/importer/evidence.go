package importer

import (
	"strconv"
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/scanimport/recognition"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
)

// evidenceText is what of a result a Finding stores for the next import beside its facts:
// digests of message, code and logical location, and the column. A digest is 40 bits: it tells
// results of one rule apart, and is no copy of what may be a secret.
func evidenceText(r *sarif.Result) string {
	column := ""
	if r.Location.Column > 0 {
		column = strconv.Itoa(int(r.Location.Column))
	}
	return strings.TrimRight(strings.Join([]string{
		messageDigest(r), codeDigest(firstOf(r.Location.Snippet,
			r.Location.Context)), fingerprints.ShortDigest(resource(r)), column,
	}, "."), ".")
}

// resource is the first logical location that is a resource and has a name, else the endpoint; none where the
// result is about a package, of which it names the version or the image. A function or a class is none: it
// holds many problems of one rule.
func resource(r *sarif.Result) string {
	if r.Package != nil {
		return ""
	}
	for _, l := range r.Logical {
		name := firstOf(l.FullyQualifiedName, l.Name)
		if kind := strings.ToLower(l.Kind); name != "" && (kind == "" || kind == "resource" || kind == "module") {
			return name
		}
	}
	if len(r.Endpoints) > 0 {
		return r.Endpoints[0].Method + " " + r.Endpoints[0].Path
	}
	return ""
}

// messageDigest leaves out the path, which some tools repeat in the message: a file that moved
// is no other message.
func messageDigest(r *sarif.Result) string {
	message := r.Message
	if len(r.Location.Path) > 1 {
		message = strings.ReplaceAll(message, r.Location.Path, "")
	}
	return fingerprints.ShortDigest(strings.Join(strings.Fields(message), " "))
}

// codeDigest of code as a finding keeps it.
func codeDigest(code string) string { return fingerprints.CodeDigest(cut(block(code), maxCode)) }

// evidenceOf returns what a finding, or a result made into one, can be recognised by.
func evidenceOf(spec *v1alpha1.FindingSpec, constant map[string]bool) recognition.Evidence {
	e := recognition.Evidence{
		Rule: spec.RuleID, Fingerprint: fingerprints.Best(fingerprints.Stored(spec.Fingerprints), constant),
	}
	if l := spec.Details.Location; l != nil {
		e.Path, e.Line = l.FilePath, l.LineNumber
	}
	if v := spec.Vulnerability; v != nil {
		e.Vulnerability = v.ID
	}
	if p := spec.Package; p != nil {
		e.Package, e.Version, e.PURL = p.Name, p.Version, fingerprints.WithoutVersion(p.PURL)
	}
	if spec.Evidence == "" {
		// An earlier version stored the code, and neither message nor column by themselves.
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

// constantsOf are the fingerprints that say nothing, by what the results or the findings hold.
func constantsOf(results []reported, there []v1alpha1.Finding) map[string]bool {
	all := make([]map[string]string, len(results))
	for i := range results {
		all[i] = fingerprints.Stored(results[i].spec.Fingerprints)
	}
	constant := fingerprints.Constants(all)
	known := make([]map[string]string, len(there))
	for i := range there {
		known[i] = fingerprints.Stored(there[i].Spec.Fingerprints)
	}
	for name := range fingerprints.Constants(known) {
		constant[name] = true
	}
	return constant
}
