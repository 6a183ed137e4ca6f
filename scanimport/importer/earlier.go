package importer

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/scanimport/recognition"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
)

// namedEarlier recognises findings of an earlier version, which stored no evidence, in the way of that version: by
// their names, which depend on the tool's name at the time, but not on the analysis.
func namedEarlier(c *scanContext, b *Batch, results []reported, existing []v1alpha1.Finding) (out []recognition.Match) {
	legacy := map[string]map[string]int{}
	for i := range existing {
		if spec := &existing[i].Spec; spec.Evidence == "" {
			if legacy[spec.Tool] == nil {
				legacy[spec.Tool] = map[string]int{}
			}
			legacy[spec.Tool][existing[i].Name] = i
		}
	}
	for _, tool := range slices.Sorted(maps.Keys(legacy)) {
		scope := c.scope()
		scope.Tool, scope.Analysis = tool, ""
		out = append(out, named(b.identitiesOf(scope, results), results, existing, legacy[tool])...)
	}
	return out
}

func named(identities []fingerprints.Identity, results []reported, existing []v1alpha1.Finding,
	legacy map[string]int) []recognition.Match {
	order := make([]int, len(identities))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(identities[a].Name, identities[b].Name) })
	sorted := make([]fingerprints.Identity, len(order))
	for i, at := range order {
		sorted[i] = identities[at]
	}
	recorded := func(name string) bool { _, ok := legacy[name]; return ok }
	by := func(same func(a, b *v1alpha1.FindingSpec) bool) func(int, string) bool {
		return func(i int, name string) bool { return same(&results[order[i]].spec, &existing[legacy[name]].Spec) }
	}
	var out []recognition.Match
	for i, name := range fingerprints.Match(sorted, recorded, by(samePlace), by(sameText), by(sameLine)) {
		if at, ok := legacy[name]; ok {
			out = append(out, recognition.Match{Result: order[i], Known: at})
		}
	}
	return out
}

func samePlace(a, b *v1alpha1.FindingSpec) bool { return sameLine(a, b) && sameText(a, b) }

func sameText(a, b *v1alpha1.FindingSpec) bool {
	return a.Details.Title == b.Details.Title && a.Details.Description == b.Details.Description
}

func sameLine(a, b *v1alpha1.FindingSpec) bool {
	return a.Details.Location != nil && b.Details.Location != nil &&
		a.Details.Location.LineNumber == b.Details.Location.LineNumber
}

// renewEvidence makes evidence that earlier versions stored in findings comparable with that of the results.
func renewEvidence(results []reported, is []recognition.Evidence, existing []recognition.Known,
	constant map[string]bool) {
	renewRules(results, existing)
	renewPaths(results, is, existing)
	renewDigests(results, is, existing)
	renewMasked(is, existing)
	acceptCut(results, is, existing, constant)
}

// renewRules replaces the id of a rule that the tool renamed in the evidence of findings: exactly one reported rule
// has it as a former id, and no result has it. Vulnerabilities of packages are recognised without it.
func renewRules(results []reported, existing []recognition.Known) {
	renamed := map[string]string{} // "" if there are several
	for i := range results {
		r, id := results[i].result, results[i].spec.RuleID
		if r == nil || r.RuleID != r.Rule.ID || r.Package != nil && r.Vulnerability != nil {
			continue
		}
		for _, former := range r.Rule.Formerly {
			former = OneLine(former, maxRuleID)
			if other, ok := renamed[former]; ok && other != id {
				renamed[former] = ""
			} else {
				renamed[former] = id
			}
		}
	}
	for i := range results {
		delete(renamed, results[i].spec.RuleID)
	}
	for i := range existing {
		existing[i].Rule = cmp.Or(renamed[existing[i].Rule], existing[i].Rule)
	}
}

// renewDigests renews the message digests in the evidence of findings. Those of an earlier version included the commit,
// so this works only if the message still names the same commit. The stored digest stays, because keys depend on it;
// see keepDigests.
func renewDigests(results []reported, is []recognition.Evidence, existing []recognition.Known) {
	message := func(e *recognition.Evidence, digest string) recognition.Evidence {
		return recognition.Evidence{Rule: e.Rule, Path: e.Path, Message: digest}
	}
	renewed := map[recognition.Evidence]string{}
	for i := range results {
		if r := results[i].result; r != nil && inCommit.MatchString(r.Message) {
			renewed[message(&is[i], digestOf(r, r.Message))] = is[i].Message
		}
	}
	for i := range existing {
		was := &existing[i].Evidence
		was.Message = cmp.Or(renewed[message(was, was.Message)], was.Message)
	}
}

// keepDigests returns the evidence to store for a result, with the digests of an earlier version that issues of merged
// pull requests have in their keys: that of the message if the finding was recognised through a renewed one, and a
// digest of masked code that is stored without the mark, as long as nothing changes.
func keepDigests(m *match, evidence string) string {
	stored, renewed := fingerprints.ParseEvidence(m.before.Spec.Evidence), fingerprints.ParseEvidence(evidence)
	if stored.Message != "" && stored.Message != m.was.Message && m.was.Message == m.is.Message {
		renewed.Message = stored.Message
	}
	if m.rung == recognition.Unchanged && m.doubt == "" && stored.Code == renewed.Code {
		renewed.Masked = stored.Masked
	}
	return renewed.String()
}

// renewMasked marks as masked the digests of masked code that an earlier version stored like those of other code.
func renewMasked(is []recognition.Evidence, existing []recognition.Known) {
	masked := sets.New[recognition.Evidence]()
	for i := range is {
		masked.Insert(recognition.Evidence{Rule: is[i].Rule, Masked: is[i].Masked})
	}
	for i := range existing {
		was := &existing[i].Evidence
		if was.Snippet != "" && masked.Has(recognition.Evidence{Rule: was.Rule, Masked: was.Snippet}) {
			was.Snippet, was.Masked = "", was.Snippet
		}
	}
}

// renewPaths renews the paths in the evidence of findings: an earlier version stored the passwords in URIs, and U+FFFD
// for bytes that are not UTF-8. If several files have such a path in common, rule, message, code or fingerprint
// identify the file; if these agree too, it stays unknown.
func renewPaths(results []reported, is []recognition.Evidence, existing []recognition.Known) {
	renewed := map[recognition.Evidence]string{}
	renew := func(stored recognition.Evidence, path string) {
		if other, twice := renewed[stored]; twice && other != path {
			path = stored.Path
		}
		renewed[stored] = path
	}
	reported := sets.New[string]()
	for i := range results {
		reported.Insert(is[i].Path)
		r, at := results[i].result, results[i].spec.Details.Location
		if r == nil || at == nil || utf8.ValidString(r.Location.Path) {
			continue
		}
		earlier := cut(clean(r.Location.Path), maxFilePath)
		renew(recognition.Evidence{Path: earlier}, at.FilePath)
		renew(problemAt(&is[i], earlier), at.FilePath)
	}
	for i := range existing {
		k := &existing[i]
		path := cmp.Or(renewed[problemAt(&k.Evidence, k.Path)], renewed[recognition.Evidence{Path: k.Path}], k.Path)
		k.Presumed = path != k.Path
		k.Path = path
		if without := sarif.WithoutUser(path); reported.Has(without) {
			k.Path = without
		}
	}
}

// problemAt returns the problem as it would be in the file path, without its position there.
func problemAt(e *recognition.Evidence, path string) recognition.Evidence {
	return recognition.Evidence{
		Rule: e.Rule, Path: path, Message: e.Message, Snippet: e.Code(), Fingerprint: e.Fingerprint,
	}
}

// acceptCut marks findings of an earlier version that have a cut fingerprint without a digest of the whole. Results
// that begin alike are compared by the beginning alone, unless another finding has their whole fingerprint.
func acceptCut(results []reported, is []recognition.Evidence, existing []recognition.Known, constant map[string]bool) {
	type ofRule struct{ rule, fingerprint string }
	begun, whole := map[ofRule]bool{}, map[ofRule]bool{}
	for i := range existing {
		k := &existing[i]
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
