package importer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsecv1alpha1 "github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/internal/recognition"
)

// match is the finding of a result.
type match struct {
	// name of the finding, or of the one to create.
	name string
	// before is nil where the result is new.
	before *appsecv1alpha1.Finding
	rung   recognition.Rung
	doubt  recognition.Doubt
	// was and is are the evidence of before and of the result.
	was, is recognition.Evidence
}

// recognise finds for each result its finding, or the name of a new one.
func recognise(c *scanContext, b *Batch, results []reported, there []appsecv1alpha1.Finding) []match {
	constant := constantsOf(results, there)
	evidence := make([]recognition.Evidence, len(results))
	for i := range results {
		evidence[i] = evidenceOf(&results[i].spec, constant)
	}
	known := make([]recognition.Known, len(there))
	legacy := map[string]int{}
	for i := range there {
		spec := &there[i].Spec
		known[i] = recognition.Known{Evidence: evidenceOf(spec, constant), Closed: spec.Closed != nil, Legacy: spec.Evidence == ""}
		if spec.Evidence == "" {
			legacy[there[i].Name] = i
		}
	}
	names := &namer{scope: c.scope(), batch: b, results: results}
	matches := recognition.Recognise(recognition.Scan{
		Results: evidence, Known: known, Named: named(names, results, there, legacy),
		Same: func(r, k int) bool { return sameFacts(&results[r].spec, &there[k].Spec) },
	})
	out := make([]match, len(results))
	for _, m := range matches {
		out[m.Result] = match{
			name: there[m.Known].Name, before: &there[m.Known], rung: m.Rung, doubt: m.Doubt,
			was: known[m.Known].Evidence, is: evidence[m.Result],
		}
	}
	if len(matches) < len(results) {
		nameNew(names, out, there)
	}
	return out
}

// namer works out the names of results when they are asked for: a scan that found nothing new
// needs none.
type namer struct {
	scope   fingerprints.Scope
	batch   *Batch
	results []reported
	made    []fingerprints.Identity
}

// identities in the order of the results.
func (n *namer) identities() []fingerprints.Identity {
	if n.made == nil {
		all := n.batch.identities(n.scope)
		n.made = make([]fingerprints.Identity, len(n.results))
		for i := range n.results {
			n.made[i] = all[n.results[i].index]
		}
	}
	return n.made
}

// named recognises findings of an earlier version, which stored no evidence, as that version
// did: by their names.
func named(n *namer, results []reported, there []appsecv1alpha1.Finding, legacy map[string]int) []recognition.Match {
	if len(legacy) == 0 {
		return nil
	}
	identities := n.identities()
	order := make([]int, len(identities))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(identities[a].Name, identities[b].Name) })
	sorted := make([]fingerprints.Identity, len(order))
	for i, at := range order {
		sorted[i] = identities[at]
	}
	recorded := func(name string) bool { _, there := legacy[name]; return there }
	by := func(same func(a, b *appsecv1alpha1.FindingSpec) bool) func(int, string) bool {
		return func(i int, name string) bool { return same(&results[order[i]].spec, &there[legacy[name]].Spec) }
	}
	var out []recognition.Match
	for i, name := range fingerprints.Match(sorted, recorded, by(samePlace), by(sameText), by(sameLine)) {
		if at, there := legacy[name]; there {
			out = append(out, recognition.Match{Result: order[i], Known: at})
		}
	}
	return out
}

func samePlace(a, b *appsecv1alpha1.FindingSpec) bool { return sameLine(a, b) && sameText(a, b) }

func sameText(a, b *appsecv1alpha1.FindingSpec) bool {
	return a.Details.Title == b.Details.Title && a.Details.Description == b.Details.Description
}

func sameLine(a, b *appsecv1alpha1.FindingSpec) bool {
	return a.Details.Location != nil && b.Details.Location != nil && a.Details.Location.LineNumber == b.Details.Location.LineNumber
}

// nameNew names the results that no finding was recognised for. A name is for life, so one may be
// taken by a finding that is about something else by now: then the next free one is it, which is the
// same one however often an import is tried.
func nameNew(n *namer, matches []match, there []appsecv1alpha1.Finding) {
	taken := make(map[string]bool, len(there)+len(matches))
	for i := range there {
		taken[there[i].Name] = true
	}
	for i, identity := range n.identities() {
		if matches[i].before == nil {
			matches[i].name = freeName(identity.Name, func(name string) bool { return taken[name] })
		}
	}
}

// freeName is the name, or the first after it that is not taken.
func freeName(name string, taken func(string) bool) string {
	free := name
	for i := 1; taken(free); i++ {
		free = fingerprints.Next(name, i)
	}
	return free
}

// because says by which rung a finding was recognised, and what of it is not as it was: "moved
// from a.go", "message changed".
func (m *match) because() string {
	if m.before == nil || m.rung == recognition.Unchanged {
		return ""
	}
	var changed []string
	add := func(differs bool, format string, arguments ...any) {
		if differs {
			changed = append(changed, fmt.Sprintf(format, arguments...))
		}
	}
	was, is := &m.was, &m.is
	add(was.Path != is.Path, "moved from %s", cmp.Or(was.Path, "no file"))
	add(was.Line != is.Line, "line %d before", was.Line)
	add(was.Version != is.Version, "version %s before", cmp.Or(was.Version, "unknown"))
	add(was.Message != is.Message && was.Message != "", "message changed")
	add(was.Snippet != is.Snippet && was.Snippet != "" && is.Snippet != "", "code changed")
	add(was.Fingerprint != is.Fingerprint && was.Fingerprint != "" && is.Fingerprint != "", "fingerprint changed")
	why := "recognised by " + string(m.rung)
	if len(changed) > 0 {
		why += ": " + strings.Join(changed, ", ")
	}
	if m.doubt != "" {
		why += "; in doubt: " + string(m.doubt)
	}
	return why
}
