package importer

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// series identifies the scans of one job: a scan replaces the findings of earlier scans of its series.
type series struct {
	category v1alpha1.FindingCategory
	// analysis is empty if the scans have none.
	analysis string
}

// pastScan holds the relevant facts of a recorded scan.
type pastScan struct {
	series
	project   v1alpha1.ResourceName
	startedAt time.Time
	succeeded bool
	// recordedAt is when the import began, or, after a restore, when the Scan was created again.
	recordedAt time.Time
	// completedAt is when the import ended; zero if the scan has no outcome.
	completedAt time.Time
	// wrote means that the import got as far as writing findings.
	wrote bool
	// incomplete means that the import succeeded, but the tool did not cover everything.
	incomplete bool
}

// at returns when the scan was imported: the end, or else the beginning. The Lease of a series keeps its imports from
// overlapping, and one that loses the Lease ends when it last held it. When the scan started does not matter, because a
// file may be imported again, or an older one if forced. The end comes first because recordedAt does not survive a
// restore: after one, a scan without an end counts as unfinished until a success ends. The same goes for a failed scan
// of an earlier version, which took the end from the importing machine's clock, if that clock was ahead.
func (s pastScan) at() time.Time {
	if s.completedAt.IsZero() {
		return s.recordedAt
	}
	return s.completedAt
}

// follows reports whether the scan was imported after another one of its series.
func (s pastScan) follows(other pastScan) bool { return s.at().After(other.at()) }

// history holds the scans of a tool in a project, under all names of the tool, by name of the scan.
type history map[string]pastScan

// add adds scans to the history, except those of pull requests, which are not about the scan branch, and those that
// were refused before anything was imported.
func (h history) add(scans []v1alpha1.Scan) {
	for i := range scans {
		if scans[i].Uncounted() != "" {
			continue
		}
		spec := &scans[i].Spec
		h[scans[i].Name] = pastScan{
			series: series{spec.Category, spec.Analysis}, project: spec.ProjectRef.Name, startedAt: scans[i].Began(),
			recordedAt: scans[i].CreationTimestamp.Time, completedAt: ptr.Deref(spec.CompletedAt, v1alpha1.Time{}).Time,
			succeeded: spec.Outcome == v1alpha1.ScanSucceeded,
			wrote:     scans[i].WroteFindings(),
			incomplete: spec.Outcome == v1alpha1.ScanFailed && spec.CompletedAt != nil &&
				!strings.HasPrefix(spec.Message, FailedImport),
		}
	}
}

// last returns the start and the name of the most recent successful scan of the series.
func (h history) last(s series) (at time.Time, name string) {
	name = h.newest(func(scan pastScan) bool { return scan.series == s && scan.succeeded })
	return h[name].startedAt, name
}

// newest returns the name of the scan that started last among those that match, or "".
func (h history) newest(matches func(pastScan) bool) (name string) {
	for _, n := range slices.Sorted(maps.Keys(h)) {
		if scan := h[n]; matches(scan) && scan.startedAt.After(h[name].startedAt) {
			name = n
		}
	}
	return name
}

// has reports whether any scan matches.
func (h history) has(matches func(pastScan) bool) bool {
	for _, scan := range h {
		if matches(scan) {
			return true
		}
	}
	return false
}

// first returns when the oldest successful scan of the series started, or zero without one.
func (h history) first(s series) (at time.Time) {
	for _, scan := range h {
		if scan.series == s && scan.succeeded && (at.IsZero() || scan.startedAt.Before(at)) {
			at = scan.startedAt
		}
	}
	return at
}

// succeeded reports whether any scan succeeded.
func (h history) succeeded() bool {
	return h.has(func(scan pastScan) bool { return scan.succeeded })
}

// shared reports whether jobs of several categories share the tool and this analysis.
func (h history) shared(s series) bool {
	return h.has(func(scan pastScan) bool {
		return scan.analysis == s.analysis && scan.category != s.category && scan.succeeded
	})
}

// adopts reports whether a scan of this series takes over findings without an analysis that it reports, because they
// may date from before the job had one. That is so if no scan without an analysis has succeeded since the first one of
// this series.
func (h history) adopts(s series) bool {
	if s.analysis == "" {
		return false
	}
	first := h.first(s)
	last, _ := h.last(series{category: s.category})
	return first.IsZero() || !last.After(first)
}

// unfinished returns the scans that did not succeed, and that no later success of their series has repeated.
func (h history) unfinished() history {
	last, out := map[series]pastScan{}, history{}
	for _, scan := range h {
		if scan.succeeded && scan.follows(last[scan.series]) {
			last[scan.series] = scan
		}
	}
	for name, scan := range h {
		if !scan.succeeded && !last[scan.series].follows(scan) {
			out[name] = scan
		}
	}
	return out
}

// positions returns the position of each scan in the order of the imports, from 1, by name. Times are whole seconds:
// within a second, a scan without an end comes after those that ended.
func (h history) positions() map[string]int {
	out := make(map[string]int, len(h))
	for i, name := range slices.SortedFunc(maps.Keys(h), func(a, b string) int {
		x, y := h[a], h[b]
		return cmp.Or(x.at().Compare(y.at()), y.completedAt.Compare(x.completedAt), cmp.Compare(a, b))
	}) {
		out[name] = i + 1
	}
	return out
}

// repeated returns, by series, the position of the last incomplete scan. Its import was carried out, so scans before it
// no longer count as cut off.
func (h history) repeated(position map[string]int) map[series]int {
	last := map[series]int{}
	for name, scan := range h {
		if scan.incomplete {
			last[scan.series] = max(last[scan.series], position[name])
		}
	}
	return last
}

// writerOf returns the name of the scan that last changed an open finding, if it is in this history, or "".
func (h history) writerOf(spec *v1alpha1.FindingSpec) string {
	if spec.Closed == nil && spec.Scan != nil {
		if _, ok := h[spec.Scan.ScanID]; ok {
			return spec.Scan.ScanID
		}
	}
	return ""
}

// hasIncomplete reports whether an unfinished scan is incomplete and belongs to the series. Scans without an analysis
// count too for the first scan of the series, which takes over their findings. They count for no later one, because
// perhaps no scan without an analysis ever completes.
func (h history) hasIncomplete(s series, unfinished history) bool {
	adopted := s
	if h.adopts(s) && h.first(s).IsZero() {
		adopted.analysis = ""
	}
	return unfinished.has(func(scan pastScan) bool {
		return scan.incomplete && (scan.series == s || scan.series == adopted)
	})
}

// knownTo divides the tool's findings, which jobs share, into those that a scan of the batch may touch and the others.
func (h history) knownTo(b *Batch, findings []v1alpha1.Finding, unreadable []string) *known {
	s := b.series()
	k := &known{unreadable: sets.New(unreadable...)}
	k.unfinished = h.unfinished()
	k.incomplete = !b.complete() || h.hasIncomplete(s, k.unfinished)
	k.findings, k.others = h.ofJob(s, findings)
	return k
}

// ofJob returns the findings that scans of the series replace or may take over, and the others. A finding belongs to
// the job of its scan, whether or not that succeeded. Its category does not identify the job, because a tool that looks
// for several things has findings of several categories. If its scan is no longer known, a finding belongs to the job
// of its category, or to this one if there is no such job. If another job uses the same tool, a job that has not
// written findings yet owns none of these: the other job created them.
func (h history) ofJob(s series, findings []v1alpha1.Finding) (own, others []v1alpha1.Finding) {
	adopts := h.adopts(s)
	jobs, wrote := map[series]bool{}, map[series]bool{}
	for _, scan := range h {
		jobs[scan.series] = true
		wrote[scan.series] = wrote[scan.series] || scan.wrote
	}
	shared := map[string]bool{s.analysis: h.shared(s), "": h.shared(series{category: s.category})}
	return divide(findings, func(f *v1alpha1.Finding) bool {
		of := series{f.Spec.Category, f.Spec.Analysis}
		if of.analysis != s.analysis && (of.analysis != "" || !adopts) {
			return false
		}
		if scan, known := h.scanOf(&f.Spec); known {
			return scan.category == s.category
		}
		return !shared[of.analysis] ||
			wrote[series{s.category, of.analysis}] && (of.category == s.category || !jobs[of])
	})
}

// divide returns the findings for which mine is true, and the others. It copies them only if there are both.
func divide(findings []v1alpha1.Finding, mine func(*v1alpha1.Finding) bool) (own, others []v1alpha1.Finding) {
	is, n := make([]bool, len(findings)), 0
	for i := range findings {
		if is[i] = mine(&findings[i]); is[i] {
			n++
		}
	}
	switch n {
	case 0:
		return nil, findings
	case len(findings):
		return findings, nil
	}
	own, others = make([]v1alpha1.Finding, 0, n), make([]v1alpha1.Finding, 0, len(findings)-n)
	for i := range findings {
		if is[i] {
			own = append(own, findings[i])
		} else {
			others = append(others, findings[i])
		}
	}
	return own, others
}

// distinct returns the analyses for which ofJob may differ. Of those that have neither a scan nor a finding it returns
// only the first: a file may name a thousand, and all of them may take over the same findings.
func (h history) distinct(analyses []string, findings []v1alpha1.Finding) []string {
	known := map[string]bool{"": true}
	for _, scan := range h {
		known[scan.analysis] = true
	}
	for i := range findings {
		known[findings[i].Spec.Analysis] = true
	}
	var out []string
	seen, added := map[string]bool{}, false
	for _, analysis := range analyses {
		if !known[analysis] && added || seen[analysis] {
			continue
		}
		seen[analysis], added = true, added || !known[analysis]
		out = append(out, analysis)
	}
	return out
}

// knowAll reports whether the scans of all findings are known.
func (h history) knowAll(findings []v1alpha1.Finding) bool {
	return !slices.ContainsFunc(findings, func(f v1alpha1.Finding) bool {
		_, known := h.scanOf(&f.Spec)
		return !known
	})
}

// scanOf returns the scan that last changed the finding other than by closing it, else the one that closed it. The
// former comes first because a scan of another job may have closed the finding.
func (h history) scanOf(spec *v1alpha1.FindingSpec) (scan pastScan, known bool) {
	if spec.Scan != nil {
		scan, known = h[spec.Scan.ScanID]
	}
	if !known && spec.Closed != nil {
		scan, known = h[spec.Closed.ScanID]
	}
	return scan, known
}

// addedByLast reports whether the scan that last changed the finding also created it.
func addedByLast(spec *v1alpha1.FindingSpec) bool {
	return spec.Scan != nil && spec.DetectedAt != nil && spec.DetectedAt.Equal(spec.Scan.AnalyzedAt)
}
