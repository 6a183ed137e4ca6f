package importer

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/scanimport/recognition"
)

// match pairs a result with its finding.
type match struct {
	// name of the existing or new finding; empty if the result's finding cannot be read.
	name string
	// before is nil if the result is new.
	before *v1alpha1.Finding
	rung   recognition.Rung
	doubt  recognition.Doubt
	// doubted means that an unfinished scan has already stored the doubt (see candidates.unfinished), and that the result
	// is unchanged: then the doubt is about a twin.
	doubted bool
	// was and is are the evidence of before and of the result.
	was, is recognition.Evidence
}

// candidates holds the findings that a result may be recognised as, and what recognition must know about them and the
// scan.
type candidates struct {
	findings []v1alpha1.Finding
	// unfinished holds the scans that did not succeed, and that no later success of their series has repeated.
	unfinished history
	// foreign reports whether a finding belongs to an analysis that the results do not contain, or to a project that was
	// not scanned. nil: none does.
	foreign func(*v1alpha1.Finding) bool
	// review means that the results are those of a pull request.
	review bool
	// partial means that the findings have only some of the facts, as issues do.
	partial bool
	// incomplete means that not everything was covered, by this scan or by one since the last complete scan of its series.
	// If this scan is the first to take over the findings of another series, scans of that series count too.
	incomplete bool
}

// known holds the tool's findings in a project, divided by what a scan may do with them. The candidates are those that
// it replaces or may take over.
type known struct {
	candidates
	// others are findings of the tool that belong to other scans.
	others []v1alpha1.Finding
	// unreadable holds the names of the tool's findings that cannot be read.
	unreadable sets.Set[string]
	// renames is that of the job's group.
	renames map[string]bool
	// adopted holds the names of those others that an earlier job of the group takes over.
	adopted map[string]bool
	// othersLater means that a later job of the group renames the findings of others: until then their own jobs may.
	othersLater bool
}

// recognise returns for each result its finding, or the name of a new one.
func recognise(c *scanContext, b *Batch, results []reported, k *known) []match {
	out := pair(results, &k.candidates, namedEarlier(c, b, results, k.findings))
	for i := range out {
		if out[i].before == nil && results[i].spec.Suppression == nil {
			nameNew(b.identitiesOf(c.scope(), results), out, k) // not needed without new results
			break
		}
	}
	return out
}

// pair returns for each result its finding, if any. named holds pairs with findings of an earlier version.
func pair(results []reported, c *candidates, named []recognition.Match) []match {
	existing := c.findings
	evidence, before := evidenceFor(results, c)
	resultFacts, knownFacts := factsOf(results, existing)
	if c.partial {
		resultFacts = nil
	}
	out := make([]match, len(results))
	for _, m := range recognition.Recognise(recognition.Scan{
		Results: evidence, Known: before, Named: named, Incomplete: c.incomplete, Review: c.review,
		ResultFacts: resultFacts, KnownFacts: knownFacts, Job: func(known int) string { return jobOf(&existing[known].Spec) },
	}) {
		stored := ptr.Deref(existing[m.Known].Spec.Doubt, v1alpha1.FindingDoubt{})
		_, repeats := c.unfinished[stored.ScanID]
		out[m.Result] = match{
			name: existing[m.Known].Name, before: &existing[m.Known], rung: m.Rung, doubt: m.Doubt,
			doubted: repeats && stored.Reason == string(m.Doubt) && m.Rung == recognition.Unchanged,
			was:     before[m.Known].Evidence, is: evidence[m.Result],
		}
	}
	return out
}

// evidenceFor returns the evidence of the results and of the candidates.
func evidenceFor(results []reported, c *candidates) ([]recognition.Evidence, []recognition.Known) {
	existing := c.findings
	constant := constantsOf(results, existing)
	evidence := make([]recognition.Evidence, len(results))
	for i := range results {
		evidence[i] = evidenceOf(&results[i].spec, constant)
	}
	before := make([]recognition.Known, len(existing))
	position := c.unfinished.positions()
	repeated := c.unfinished.repeated(position)
	for i := range existing {
		spec := &existing[i].Spec
		scan := c.unfinished.writerOf(spec)
		before[i] = recognition.Known{
			Evidence: evidenceOf(spec, constant), Closed: spec.Closed != nil, Legacy: spec.Evidence == "",
			Unfinished: position[scan], CutOff: position[scan] > repeated[c.unfinished[scan].series], Decision: decisionOf(spec),
		}
		before[i].Foreign = c.foreign != nil && c.foreign(&existing[i])
		before[i].Added = before[i].CutOff && addedByLast(spec)
	}
	renewEvidence(results, evidence, before, constant)
	ofResults, ofKnown := aliasesOf(results, existing)
	for i := range evidence {
		evidence[i].Aliases = ofResults[i]
	}
	for i := range before {
		before[i].Aliases = ofKnown[i]
	}
	return evidence, before
}

// Certain returns for each result the name of the known finding in its file that it certainly is, or "". doubtful holds
// instead the name of a finding that it may be, with the same text. All must belong to one tool.
func Certain(results []*Described, existing []v1alpha1.Finding) (certain, doubtful []string) {
	list := make([]reported, len(results))
	certain, doubtful = make([]string, len(results)), make([]string, len(results))
	for i, d := range results {
		list[i] = reported{result: d.result, spec: d.Facts}
	}
	for i, m := range pair(list, &candidates{findings: existing, partial: true, review: true}, nil) {
		switch {
		case m.before == nil || m.was.Path != m.is.Path:
		case m.doubt == "":
			certain[i] = m.name
		case m.was.Message == m.is.Message:
			doubtful[i] = m.name
		}
	}
	return certain, doubtful
}

// identitiesOf returns the identities in the order of the results.
func (b *Batch) identitiesOf(scope fingerprints.Scope, results []reported) []fingerprints.Identity {
	all := b.identities(scope)
	out := make([]fingerprints.Identity, len(results))
	for i := range results {
		out[i] = all[results[i].index]
	}
	return out
}

// nameNew names the results without a finding. Names never change, so a name may belong to a finding that is now about
// something else; then the next free name is used, which is the same at every attempt. A result gets no name if its
// name belongs to an unreadable finding: that finding is probably its own, and another name would lose its triage.
func nameNew(identities []fingerprints.Identity, matches []match, k *known) {
	taken := make(map[string]bool, len(k.findings)+len(k.others)+len(matches))
	for _, findings := range [][]v1alpha1.Finding{k.findings, k.others} {
		for i := range findings {
			taken[findings[i].Name] = true
		}
	}
	unreadable := k.unreadable.Clone()
	for i, identity := range identities {
		if matches[i].before != nil || identity.Takes(unreadable) {
			continue
		}
		if free := FreeName(identity.Name, func(name string) bool { return taken[name] }); !unreadable.Has(free) {
			matches[i].name = free
		}
	}
}

// FreeName returns the name, or the next one that is not taken.
func FreeName(name string, taken func(string) bool) string {
	free := name
	for i := 1; taken(free); i++ {
		free = fingerprints.Next(name, i)
	}
	return free
}

// addsDoubt reports whether the finding must be written because of the doubt. Until a scan completes, each one has the
// same doubt about an unchanged result: it is stored once, or a user's repeated decision would be questioned again.
func (m *match) addsDoubt() bool { return m.doubt != "" && !m.doubted && storesDoubt(m.before) }

// otherCode reports whether the result is known to have other code than the finding.
func (m *match) otherCode() bool {
	was, is := m.was.Code(), m.is.Code()
	return was != "" && is != "" && was != is
}

// because describes the rung by which a finding was recognised and what has changed: "moved from a.go", "message
// changed".
func (m *match) because() string {
	if m.before == nil || m.rung == recognition.Unchanged && m.doubt == "" {
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
	add(m.otherCode(), "code changed")
	add(was.Fingerprint != is.Fingerprint && was.Fingerprint != "" && is.Fingerprint != "", "fingerprint changed")
	why := "recognised by " + string(m.rung)
	if m.rung == recognition.Unchanged {
		why = "unchanged"
	}
	if len(changed) > 0 {
		why += ": " + strings.Join(changed, ", ")
	}
	if m.doubt != "" {
		why += "; in doubt: " + string(m.doubt)
	}
	return why
}
