package faults

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/faults/internal/rig"
)

// Files of uploads are named by their commit: the first, and then the second for all others, which no longer contain
// the dropped results.
const (
	firstCommit  = "first"
	secondCommit = "second"

	keptPrefix    = "src/kept-"
	droppedPrefix = "src/dropped-"
	newPrefix     = "src/new-"
)

// uploadsAudit checks uploads against the complete history of etcd for their projects. It is safe for concurrent use.
type uploadsAudit struct {
	verdict *verdict
	// results is how many findings the files of the second commit add to a project.
	results int

	mutex    sync.Mutex
	revision int64
	findings map[string]*uploadedFinding // by namespace and name
	projects map[string]*uploadedProject // by namespace and name
	scans    map[string]*uploadedScan    // by namespace and name
}

// uploadedFinding is the latest stored state of a finding.
type uploadedFinding struct {
	uid, project, path string
	closed             bool
	// decision is the number of the latest decision, 0 without one.
	decision int
}

// uploadedProject holds the findings of a project.
type uploadedProject struct {
	// open and closed hold the paths of open and closed findings.
	open, closed map[string]bool
	// added counts the findings that the second commit added.
	added int
}

// uploadedScan is the latest stored state of a scan.
type uploadedScan struct {
	project, upload, commit string
	outcome                 v1alpha1.ScanOutcome
	// gaveUp is set when the controllers consider the import dead; gaveUpAt is when that was first
	// observed.
	gaveUp   bool
	gaveUpAt time.Time
}

func newUploadsAudit(v *verdict, results int) *uploadsAudit {
	return &uploadsAudit{
		verdict: v, results: results, findings: map[string]*uploadedFinding{},
		projects: map[string]*uploadedProject{}, scans: map[string]*uploadedScan{},
	}
}

// take processes one state of an object, and ignores other namespaces.
func (a *uploadsAudit) take(stored rig.Stored) error {
	if !strings.HasPrefix(stored.Namespace, uploadsNamespace) {
		return nil
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	switch stored.Resource {
	case "findings":
		return a.takeFinding(stored)
	case "scans":
		return a.takeScan(stored)
	}
	return nil
}

func (a *uploadsAudit) takeFinding(stored rig.Stored) error {
	key := stored.Namespace + "/" + stored.Name
	if stored.Deleted {
		a.verdict.lose("finding %s was deleted", key)
		return nil
	}
	var f v1alpha1.Finding
	if err := json.Unmarshal(stored.Object, &f); err != nil {
		return fmt.Errorf("finding %s at revision %d: %w", key, stored.Revision, err)
	}
	known := a.findings[key]
	if known != nil && stored.Created {
		a.verdict.double("finding %s was made twice", key)
	}
	if known == nil {
		known = a.newFinding(stored.Namespace, key, &f)
	}
	p := a.project(known.project)
	if closed := f.Spec.Closed != nil; closed != known.closed {
		known.closed = closed
		a.move(p, known)
	}
	a.takeDecision(key, known, &f.Spec.Triage)
	return nil
}

// newFinding records a new finding. A scan closes findings last: after the first closure in the project no finding
// may be added.
func (a *uploadsAudit) newFinding(namespace, key string, f *v1alpha1.Finding) *uploadedFinding {
	known := &uploadedFinding{
		uid: string(f.UID), project: namespace + "/" + string(f.Spec.ProjectRef.Name), path: f.Spec.Details.Location.FilePath,
	}
	a.findings[key] = known
	p := a.project(known.project)
	if p.open[known.path] || p.closed[known.path] {
		a.verdict.double("a second finding of %s in %s: %s", known.path, known.project, key)
	}
	if len(p.closed) > 0 {
		a.verdict.wrong("half closed: %s of %s came after another was closed", known.path, known.project)
	}
	p.open[known.path] = true
	if strings.HasPrefix(known.path, newPrefix) {
		p.added++
	}
	return known
}

func (a *uploadsAudit) move(p *uploadedProject, f *uploadedFinding) {
	if !f.closed {
		a.verdict.wrong("%s of %s was opened again", f.path, f.project)
		return
	}
	if !strings.HasPrefix(f.path, droppedPrefix) {
		a.verdict.wrong("%s of %s was closed though every file has it", f.path, f.project)
	}
	delete(p.open, f.path)
	p.closed[f.path] = true
}

// takeDecision compares a decision with the previous one: numbers only increase, and each has its user
// status.
func (a *uploadsAudit) takeDecision(key string, known *uploadedFinding, triage *v1alpha1.FindingTriage) {
	number := 0
	if triage.Comments != "" {
		number, _ = strconv.Atoi(triage.Comments) //nolint:errcheck // 0 is told below
	}
	if number < known.decision {
		a.verdict.lose("the decision %d on %s gave way to %q", known.decision, key, triage.Comments)
	}
	if number > 0 && triage.UserStatus != userStatuses[number%len(userStatuses)] {
		a.verdict.lose("the decision %d on %s has the user status %q", number, key, triage.UserStatus)
	}
	known.decision = number
}

func (a *uploadsAudit) takeScan(stored rig.Stored) error {
	key := stored.Namespace + "/" + stored.Name
	if stored.Deleted {
		a.verdict.lose("scan %s was deleted", key)
		return nil
	}
	var s v1alpha1.Scan
	if err := json.Unmarshal(stored.Object, &s); err != nil {
		return fmt.Errorf("scan %s at revision %d: %w", key, stored.Revision, err)
	}
	known := a.scans[key]
	if known == nil {
		known = &uploadedScan{project: stored.Namespace + "/" + string(s.Spec.ProjectRef.Name), commit: s.Spec.Commit}
		a.scans[key] = known
	}
	if s.Spec.Upload != nil {
		known.upload = s.Spec.Upload.ID
	}
	if known.outcome != "" && s.Spec.Outcome != known.outcome {
		a.verdict.wrong("scan %s ended as %s and then as %q", key, known.outcome, s.Spec.Outcome)
	}
	ended := known.outcome == "" && s.Spec.Outcome == v1alpha1.ScanSucceeded
	known.outcome = s.Spec.Outcome
	known.gaveUp = s.Status.Phase == v1alpha1.ScanPhaseFailed
	if known.gaveUp && known.gaveUpAt.IsZero() {
		known.gaveUpAt = time.Now()
	}
	if ended {
		a.checkWhole(key, known)
	}
	return nil
}

// checkWhole checks a scan at the moment at which it is recorded as complete.
func (a *uploadsAudit) checkWhole(key string, scan *uploadedScan) {
	want := maps.Collect(expected(scan.commit, a.results))
	p := a.project(scan.project)
	if !maps.Equal(want, p.open) {
		a.verdict.lose("scan %s of %s says that it is complete: %d findings are open, of %d", key, scan.project, len(p.open), len(want))
	}
}

// expected yields the paths in a file of that commit.
func expected(commit string, results int) func(func(string, bool) bool) {
	return func(yield func(string, bool) bool) {
		counts := map[string]int{keptPrefix: keptResults, droppedPrefix: droppedResults}
		if commit != firstCommit {
			counts = map[string]int{keptPrefix: keptResults, newPrefix: results}
		}
		for _, prefix := range slices.Sorted(maps.Keys(counts)) {
			for i := range counts[prefix] {
				if !yield(fmt.Sprintf("%s%05d.go", prefix, i), true) {
					return
				}
			}
		}
	}
}

func (a *uploadsAudit) project(name string) *uploadedProject {
	p := a.projects[name]
	if p == nil {
		p = &uploadedProject{open: map[string]bool{}, closed: map[string]bool{}}
		a.projects[name] = p
	}
	return p
}

// added returns how many findings the second commit added to the project.
func (a *uploadsAudit) added(project string) int {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.project(project).added
}

// underWay returns the scans that have neither ended nor been declared dead.
func (a *uploadsAudit) underWay() []string {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	var out []string
	for key, scan := range a.scans {
		if scan.outcome == "" && !scan.gaveUp {
			out = append(out, key)
		}
	}
	return out
}

// ended counts the scans of the second commit by outcome.
func (a *uploadsAudit) ended() (succeeded, failed, dead int) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for _, scan := range a.scans {
		switch {
		case scan.commit != secondCommit:
		case scan.outcome == v1alpha1.ScanSucceeded:
			succeeded++
		case scan.outcome == v1alpha1.ScanFailed:
			failed++
		default:
			dead++
		}
	}
	return succeeded, failed, dead
}

// check compares the final state with the answers to the clients: which uploads are complete, by project, and the last
// acknowledged decision on each finding.
func (a *uploadsAudit) check(complete map[string]string, decisions map[string]int) {
	for _, key := range a.underWay() {
		a.verdict.wrong("scan %s has no end", key)
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for project, upload := range complete {
		p := a.project(project)
		if want := maps.Collect(expected(secondCommit, a.results)); !maps.Equal(want, p.open) || len(p.closed) != droppedResults {
			a.verdict.lose("%s has %d open findings and %d closed ones at the end; want %d and %d",
				project, len(p.open), len(p.closed), len(want), droppedResults)
		}
		if !slices.ContainsFunc(slices.Collect(maps.Values(a.scans)), func(s *uploadedScan) bool {
			return s.upload == upload && s.project == project && s.outcome == v1alpha1.ScanSucceeded
		}) {
			a.verdict.lose("upload %s of %s was said to be complete, and its scan is not", upload, project)
		}
	}
	for key, number := range decisions {
		if f := a.findings[key]; f == nil || f.decision < number {
			a.verdict.lose("the decision %d on %s was acknowledged, and is not what is stored", number, key)
		}
	}
}
