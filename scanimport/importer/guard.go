package importer

import (
	"fmt"
	"time"

	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/scanimport/provision"
)

// guardFrom is the smallest number of open findings for which closing many at once counts as an accident.
const guardFrom = 20

// RefusedError explains why an import was refused and what to do next.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

// guardClosing refuses to close more than half of many open findings: a misconfigured or partial scan is more likely
// than that many repairs. A dry run lists the findings itself, over REST only for a key that may read them, so its
// message differs.
func guardClosing(open, toClose int, dryRun bool) error {
	if open < guardFrom || toClose*2 <= open {
		return nil
	}
	which := "use --dry-run (over REST dry_run=true, with a key that has findings:read) to see which ones, check"
	if dryRun {
		which = "check which ones (over REST with a key that has findings:read), and"
	}
	return &RefusedError{fmt.Sprintf("it would close %d of %d open findings, which is more than half: %s that the "+
		"scanner covered everything, then use --force (over REST force=true)", toClose, open, which)}
}

// guardFolder refuses a scan whose files all lie outside of the project's folder, if it would close or move open
// findings in that folder, or reopen decided ones for another file: it is most likely a scan of another folder, such as
// that of a deleted project. Without such findings, the paths are relative to the folder. If the project already has
// results in files outside of the folder, the scan is its own: the job of a deleted project usually has none there. A
// result without a file may be the same in every folder.
func guardFolder(project, outside string, p *plan) error {
	if outside == "" || p.unchangedInFiles > 0 {
		return nil
	}
	lost := 0
	for i := range p.changes {
		ch := &p.changes[i]
		switch {
		case ch.before == nil || ch.action == ActionRename:
		case ch.before.Spec.Closed != nil && (ch.action != ActionReopen || !findingstate.Decided(ch.before)):
		case provision.Holds(outside, provision.Clean(ch.before.Spec.Details.Place().FilePath)):
			lost++
		case ch.action == ActionUpdate && ch.before.Spec.Details.Place().FilePath != "":
			return nil
		}
	}
	if lost == 0 {
		return nil
	}
	return &RefusedError{fmt.Sprintf("no file of the upload lies in %[1]s, the folder of the only project %[2]s, but it "+
		"would close, reopen or move findings there (%[3]d): if another folder was scanned, have a project created for it; "+
		"if the whole repository was scanned, empty spec.relativePath of project %[2]s; if the folder was renamed, set it; "+
		"else name the project, by POST /v2/repos/{id}/projects/{project_id}/scans", outside, project, lost)}
}

// guardAge refuses a scan that is older than the last completed one: it would reopen findings repaired since then, and
// close findings found since then.
func guardAge(startedAt, last time.Time, lastName string) error {
	if !startedAt.Before(last) {
		return nil
	}
	return &RefusedError{fmt.Sprintf("the scan started at %s, before the last completed one (scan %s of %s): import a newer one, give its real start with --started-at (over REST started_at), or use --force (over REST force=true)",
		startedAt.UTC().Format(time.RFC3339), lastName, last.UTC().Format(time.RFC3339))}
}

// guardRefusals refuses an import if nothing was written because all of several results were refused: a single finding
// is not the cause then. Unchanged results prove that such findings can be stored. first is the first refusal.
func guardRefusals(refused, unchanged int, first error) error {
	if refused < 2 || unchanged > 0 {
		return nil
	}
	return &RefusedError{fmt.Sprintf("the API server refuses every change, and nothing of this scan was written: "+
		"have the cause removed, such as a policy of the cluster, then import again, or use --force (over REST force=true): %v", first)}
}
