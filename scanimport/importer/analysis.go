package importer

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
)

// analysisOf returns the analysis that an automationDetails.id names: the part before its last slash, as GitHub reads
// it. The rest identifies the run. An id without a slash names no analysis.
func analysisOf(id string) string {
	at := strings.LastIndexByte(id, '/')
	if at < 0 {
		return ""
	}
	return boundAnalysis(id[:at])
}

// boundAnalysis cuts an analysis to the limit of the CRD. Different analyses stay different.
func boundAnalysis(analysis string) string {
	analysis = line(analysis)
	if short := cut(analysis, maxAnalysis); short == analysis {
		return analysis
	}
	return cut(analysis, maxAnalysis-27) + " " + fingerprints.Hash(analysis)
}

// Parts of a name that may change from run to run.
var (
	uuidWord   = regexp.MustCompile(`(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	hexWord    = regexp.MustCompile(`(?i)[0-9a-z]{7,}`)
	onlyHex    = regexp.MustCompile(`(?i)^[0-9a-f]*[0-9][0-9a-f]*$`)
	number     = regexp.MustCompile(`[0-9]{3,}|(^|[^0-9a-zA-Z])[0-9]+([^0-9a-zA-Z]|$)`)
	digits     = regexp.MustCompile(`[0-9]+`)
	monthNamed = regexp.MustCompile(`(?i)# ?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* ?#`)
)

// withoutRun replaces everything in a name that looks like a number, a date or a hash by a placeholder.
func withoutRun(analysis string) string {
	s := uuidWord.ReplaceAllString(analysis, "#")
	s = hexWord.ReplaceAllStringFunc(s, func(word string) string {
		if onlyHex.MatchString(word) {
			return "#"
		}
		return word
	})
	mask := func(part string) string { return digits.ReplaceAllString(part, "#") }
	// Run it twice: two numbers may share the one character between them.
	s = number.ReplaceAllStringFunc(number.ReplaceAllStringFunc(s, mask), mask)
	return monthNamed.ReplaceAllString(s, "#")
}

// looksVolatile reports whether a part of the analysis may change from run to run.
func looksVolatile(analysis string) bool { return withoutRun(analysis) != analysis }

// sameProblem is what a result and a finding of another analysis have in common if they are the same problem.
type sameProblem struct{ rule, path, evidence string }

// problemOf leaves out that the code is masked, which an earlier version did not store. A digest of the message
// that includes the commit is not renewed: findings that have one are not known in another analysis.
func problemOf(spec *v1alpha1.FindingSpec) sameProblem {
	evidence := fingerprints.ParseEvidence(spec.Evidence)
	evidence.Masked = false
	return sameProblem{rule: spec.RuleID, path: spec.Details.Place().FilePath, evidence: evidence.String()}
}

// knownElsewhere looks for the new results among the open findings of other analyses, separately in each analysis. What
// an analysis of the same import adopts does not count: neither is another name of the other.
func (p *plan) knownElsewhere(analysis string, k *known) {
	created := map[sameProblem]int{}
	for i := range p.changes {
		if ch := &p.changes[i]; ch.action == ActionCreate {
			created[problemOf(&ch.spec)]++
		}
	}
	if len(created) == 0 {
		return
	}
	type problemIn struct {
		analysis string
		sameProblem
	}
	found := map[problemIn]int{}
	p.elsewhere = map[string]overlap{}
	for i := range k.others {
		spec := &k.others[i].Spec
		one := problemIn{spec.Analysis, problemOf(spec)}
		if spec.Analysis != analysis && spec.Closed == nil && !k.adopted[k.others[i].Name] &&
			found[one] < created[one.sameProblem] {
			found[one]++
			was := p.elsewhere[spec.Analysis]
			decided := was.decided || findingstate.Declared(spec) != v1alpha1.UserStatusOpen
			p.elsewhere[spec.Analysis] = overlap{was.n + 1, decided}
		}
	}
}

// guardAnalysis refuses a scan whose analysis is most likely a new name of a known one: it would create all findings a
// second time, without their triage, and nothing would close the first ones. It only returns a warning, if all results
// are new, when the user chose the analysis or forces the import, or when little is lost. Results without a finding do
// not count, because no analysis can know them.
func guardAnalysis(b *Batch, h history, p *plan, results int, force bool) (warning string, err error) {
	wanted := b.ChosenAnalysis || force
	if known := alikeAnalysis(h, b.series()); known != "" && !wanted {
		return "", &RefusedError{fmt.Sprintf("automationDetails.id names the analysis %q, which is new, and %q is known: "+
			"it seems to change with each run, and then each scan would leave the findings of the last one open. %s",
			b.Analysis, known, b.useAnalysis(known))}
	}
	results -= len(p.unseen) + len(p.unreadable)
	if warning := p.merges(b, results); warning != "" {
		return warning, nil
	}
	known, of := p.otherName(h, b.series(), results)
	if of.n == 0 {
		return "", nil
	}
	found := knownIn(of.n, results, b.Analysis, known)
	if !wanted && (of.decided || of.n >= guardFrom) {
		return "", &RefusedError{fmt.Sprintf("%s: it seems to be another name of the same scan. %s", found,
			b.useAnalysis(known))}
	}
	switch {
	case p.creates() != results:
		return "", nil
	case b.Several:
		return fmt.Sprintf("%s: if it is another name of the same scan, %s", found, nameInFile(known)), nil
	}
	return fmt.Sprintf("%s: if it is another name of the same scan, use --analysis %q (over REST analysis) "+
		"in every import", found, known), nil
}

// merges returns a warning if the chosen analysis merges several that the files name, and creates again what is known
// in one of these.
func (p *plan) merges(b *Batch, results int) string {
	if !b.ChosenAnalysis || len(b.OfFiles) < 2 {
		return ""
	}
	known := slices.MaxFunc(b.OfFiles, func(a, b string) int { return cmp.Compare(p.elsewhere[a].n, p.elsewhere[b].n) })
	n := p.elsewhere[known].n
	if n == 0 {
		return ""
	}
	return knownIn(n, results, b.Analysis, known) + ", which the files name, too: --analysis (over REST analysis) puts " +
		"all runs of the files into one analysis. To keep the analyses apart, correct automationDetails.id instead"
}

func knownIn(n, results int, analysis, known string) string {
	return fmt.Sprintf("%d of %d results are new in %s and are open findings in %s", n, results, analysisName(analysis),
		analysisName(known))
}

// useAnalysis returns what to do about a batch whose analysis is most likely a new name of a known one.
func (b *Batch) useAnalysis(known string) string {
	if b.Several {
		return "If so, " + nameInFile(known) + "; if it is a separate analysis, import it once with --force " +
			"(over REST force=true)"
	}
	return fmt.Sprintf("Use --analysis %q (over REST analysis) in every import; if it is a separate analysis, import it "+
		"once with --analysis %q or --force (over REST force=true)", known, b.Analysis)
}

// nameInFile returns how a run gets the known analysis if other runs of the import have others.
func nameInFile(known string) string {
	return fmt.Sprintf("correct automationDetails.id of these runs, so that it names %s in every import (--analysis "+
		"would put all runs of the files into one analysis)", analysisName(known))
}

// otherName returns the analysis that most likely has been renamed to the series: it knows more than half of the
// results, and the series was never scanned alongside it. Among several, one with a decision comes first, then the one
// that knows most, then the oldest, since each import under a wrong name creates all findings again without decisions.
// It returns a zero overlap if there is none.
func (p *plan) otherName(h history, s series, results int) (string, overlap) {
	of := func(analysis string) series { return series{s.category, analysis} }
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(p.elsewhere)), func(name string) bool {
		return p.elsewhere[name].n*2 <= results || h.runsBeside(s, of(name))
	})
	if len(names) == 0 {
		return "", overlap{}
	}
	name := slices.MinFunc(names, func(a, b string) int {
		one, other := p.elsewhere[a], p.elsewhere[b]
		switch {
		case one.decided && !other.decided:
			return -1
		case other.decided && !one.decided:
			return 1
		}
		return cmp.Or(cmp.Compare(other.n, one.n), h.first(of(a)).Compare(h.first(of(b))))
	})
	return name, p.elsewhere[name]
}

// creates returns the number of results that are new in this analysis.
func (p *plan) creates() (n int) {
	for i := range p.changes {
		if p.changes[i].action == ActionCreate {
			n++
		}
	}
	return n
}

// runsBeside reports whether a series was still scanned after another one began: then neither is a new name of the
// other.
func (h history) runsBeside(s, other series) bool {
	last, _ := h.last(s)
	began := h.first(other)
	return !began.IsZero() && last.After(began)
}

func analysisName(analysis string) string {
	if analysis == "" {
		return "no analysis"
	}
	return fmt.Sprintf("the analysis %q", analysis)
}

// alikeAnalysis returns the most recently scanned analysis that differs from the new one only in parts that may change
// with each run, or "".
func alikeAnalysis(h history, s series) string {
	if !looksVolatile(s.analysis) || !h.first(s).IsZero() {
		return ""
	}
	return h[h.newest(func(scan pastScan) bool {
		return scan.succeeded && scan.category == s.category && withoutRun(scan.analysis) == withoutRun(s.analysis)
	})].analysis
}
