package importer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/safely"
)

// write sends the changes of a plan in the order of its stages. It returns at the first error that affects more than
// one finding, or if the project was deleted, even if nothing changes; the summary counts what was done so far.
func (im *Importer) write(ctx context.Context, j *job) error {
	j.progress.Begin(len(j.plan.changes))
	im.options.OnProgress(0, len(j.plan.changes))
	w := &writer{im: im, lock: j.lock, parent: j.parent, manager: fieldManager(j.Tool), scan: &j.scan,
		summary: j.summary, progress: &j.progress}
	defer func() { j.lastChange = w.last }()
	known, added, gone := j.plan.stages()
	if err := w.stage(ctx, known); err != nil {
		return err
	}
	refusedKnown := w.refusals
	if err := w.stage(ctx, added); err != nil {
		return err
	}
	// If only new findings were refused, perhaps for good by a policy of the cluster, repaired ones are closed all the
	// same. If changes of known findings were refused and nothing was written, nothing is closed.
	if refusedKnown > 0 {
		if err := w.guard(); err != nil {
			return err
		}
	}
	if err := w.stage(ctx, gone); err != nil {
		return err
	}
	if err := w.guard(); err != nil {
		return err
	}
	return w.parent.check(ctx)
}

// stages returns the changes in the order in which they are written. Recognised findings come first: if the import is
// cut off later, every finding that moves has moved, so a repeated import need not guess which new one it was. Closings
// come last: nothing is closed until all reported findings are written.
func (p *plan) stages() (known, added, gone []change) {
	for _, ch := range p.changes {
		switch ch.action {
		case ActionCreate:
			added = append(added, ch)
		case ActionClose:
			gone = append(gone, ch)
		default:
			known = append(known, ch)
		}
	}
	return known, added, gone
}

type writer struct {
	im      *Importer
	lock    *lock
	parent  *parent
	manager string
	scan    *scanContext

	mu       sync.Mutex
	summary  *Summary
	progress *Progress
	// last is the finding that was written last.
	last *v1alpha1.ScanChange
	// refusals counts the changes that the API server refused, except closings; refusal is the reason for the first.
	refusals int
	refusal  error
	// unclosed counts the findings that the API server refused to close.
	unclosed int
}

// guard refuses the import if the API server has refused every change so far.
func (w *writer) guard() error {
	if w.last != nil || w.im.options.Force {
		return nil
	}
	return guardRefusals(w.refusals, w.summary.Unchanged, w.refusal)
}

// stage writes the changes, if any, unless the project was deleted.
func (w *writer) stage(ctx context.Context, changes []change) error {
	if len(changes) == 0 {
		return nil
	}
	if err := w.parent.check(ctx); err != nil {
		return err
	}
	return w.all(ctx, changes)
}

func (w *writer) all(ctx context.Context, changes []change) error {
	return Each(ctx, w.im.options.Concurrency, changes, w.one)
}

// Each calls do for each item, at most limit at a time. It returns the first error of one, after which it begins no
// other, or the cause of the context's end. What has begun by then may go on as FinishWrite allows, so that what is
// stored is counted too. The items are a stage: once ten requests in a row stay denied after all retries, Retry stops
// retrying denials.
func Each[T any](ctx context.Context, limit int, items []T, do func(context.Context, *T) error) error {
	group, groupCtx := errgroup.WithContext(withDenials(ctx))
	group.SetLimit(limit)
	for i := range items {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(safely.Func(func() error {
			return FinishWrite(groupCtx, func(ctx context.Context) error { return do(ctx, &items[i]) })
		}))
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

func (w *writer) one(ctx context.Context, ch *change) error {
	err := w.lock.sure(ctx)
	if err == nil {
		err = w.parent.sure(ctx)
	}
	if err != nil {
		return err
	}
	if ch.action == ActionCreate {
		err = w.create(ctx, ch)
	} else {
		err = w.change(ctx, ch)
	}
	if err != nil && RefusesObject(err) {
		err = w.refused(ctx, ch, err)
	}
	if err != nil {
		return fmt.Errorf("%s finding %s: %w", ch.action, ch.name, err)
	}
	return nil
}

// RefusesObject reports whether an API server refuses a write because of the object: it is invalid, or a cluster's own
// admission policy or webhook denies it. Other objects may be accepted. A webhook may choose the code of an outage for
// its denial. This project's policies are about who writes.
func RefusesObject(err error) bool {
	if kube.IsDeniedByWebhook(err) {
		return true
	}
	if isOutage(err) {
		return false
	}
	text := err.Error()
	return apierrors.IsInvalid(err) ||
		(strings.Contains(text, "denied the request") || strings.Contains(text, "denied request")) &&
			!strings.Contains(text, "."+v1alpha1.GroupName+"' with binding")
}

// refused counts a change that the API server refused. A finding that cannot be closed stays open.
func (w *writer) refused(ctx context.Context, ch *change, err error) error {
	if ch.action != ActionClose {
		w.count(func(s *Summary) {
			if w.refusals++; w.refusals == 1 {
				w.refusal = err
			}
			s.skip(SkipRefused, fmt.Sprintf("finding %s (%v)", ch.name, err))
		})
		return nil
	}
	w.update(func(s *Summary) {
		if w.unclosed++; w.unclosed <= MaxExamples {
			s.Warnings = append(s.Warnings, fmt.Sprintf("finding %s stays open, because the API server refuses to close it: "+
				"have the cluster's policy changed, then import again, with the same --formerly if any (%v)", ch.name, err))
		}
	})
	return w.leaveOpen(ctx, ch, ch.before)
}

// leaveOpen gives up a closing; now is the finding's current state. A finding with a former name of the tool is renamed
// all the same: later imports may not know a name that the user gave, and would never close it.
func (w *writer) leaveOpen(ctx context.Context, ch *change, now *v1alpha1.Finding) error {
	w.update(func(s *Summary) { s.LeftOpen++ })
	if w.scan.renames(now.Spec.Tool) {
		kube.Trim(now)
		*ch = renaming(w.scan, now)
		if err := w.change(ctx, ch); err == nil || !RefusesObject(err) {
			return err
		}
	}
	w.count(func(*Summary) {}) // nothing left to do
	return nil
}

// maxNames bounds how many names are tried for a finding.
const maxNames = 16

// create creates the finding and never touches an existing object. If the name belongs to another finding, which the
// list did not show, it tries the next name.
func (w *writer) create(ctx context.Context, ch *change) error {
	name := ch.name
	for i := 1; ; i++ {
		after, err := w.im.applyFinding(ctx, w.manager, appliedMeta{Name: ch.name, ResourceVersion: absentVersion}, ch.spec)
		if err == nil {
			w.changed(ch, after.ResourceVersion)
			return nil
		}
		if kube.IsDeniedByWebhook(err) || !kube.IsConflict(err) && !apierrors.IsInternalError(err) {
			return err
		}
		now, unreadable, getErr := w.read(ctx, ch.name)
		switch {
		case getErr != nil:
			return errors.Join(err, getErr)
		case unreadable: // the API server itself may be unable to apply to it
			w.leave(ch, skipUnreadable)
			return nil
		case apierrors.IsInternalError(err):
			return err
		case now != nil && w.wrote(ch, now):
			w.changed(ch, now.ResourceVersion)
			return nil // the response to an earlier attempt was lost
		case i == maxNames:
			return fmt.Errorf("%d names are taken by other objects: %w", maxNames, err)
		case now != nil:
			// Another import may have created it while this process was suspended. Then it is this finding.
			if err := Retry(ctx, w.lock.renewOnce); err != nil {
				return err
			}
			ch.name = fingerprints.Next(name, i)
		}
	}
}

// maxConflicts bounds how often a change is decided again.
const maxConflicts = 5

// change writes the planned change of an existing finding, based on the version that was read. A triage or another
// import in the meantime causes a conflict: then the change is decided again.
func (w *writer) change(ctx context.Context, ch *change) error {
	for i := 1; ; i++ {
		version, err := w.send(ctx, ch)
		if err == nil {
			w.changed(ch, version)
			return nil
		}
		if !kube.IsConflict(err) && !kube.IsNotFound(err) {
			return err
		}
		now, unreadable, getErr := w.read(ctx, ch.name)
		if getErr != nil {
			return errors.Join(err, getErr)
		}
		if unreadable {
			w.leave(ch, skipUnreadable)
			return nil
		}
		// Another import with newer facts may have written it while this process was suspended.
		if err := w.lock.sure(ctx); err != nil {
			return err
		}
		if now == nil || now.UID != ch.before.UID {
			return w.deleted(ctx, ch)
		}
		if w.wrote(ch, now) {
			w.changed(ch, now.ResourceVersion) // the response to an earlier attempt was lost
			return nil
		}
		switch reason := w.crossed(ch, &now.Spec, i == maxConflicts); {
		case reason == skipCrossed && ch.action == ActionClose:
			return w.leaveOpen(ctx, ch, now)
		case reason != "":
			w.leave(ch, reason)
			return nil
		}
		w.again(ch, now)
	}
}

// send applies a change. The answer names who else owns facts, such as the manager of a former name of the tool: they
// are taken over, and the change is applied again. If the import ends in between, the next change of the finding does
// it.
func (w *writer) send(ctx context.Context, ch *change) (version string, err error) {
	metadata := appliedMeta{Name: ch.name, UID: ch.before.UID, ResourceVersion: ch.before.ResourceVersion}
	after, err := w.im.applyFinding(ctx, w.manager, metadata, ch.spec)
	if err != nil {
		return "", err
	}
	owners, err := takenOver(after.ManagedFields, w.manager)
	if err != nil || owners == nil {
		return after.ResourceVersion, err
	}
	metadata.ResourceVersion, err = w.im.setOwners(ctx, ch.name, after.ResourceVersion, owners, w.manager)
	if err != nil {
		return "", err
	}
	if after, err = w.im.applyFinding(ctx, w.manager, metadata, ch.spec); err != nil {
		return "", err
	}
	return after.ResourceVersion, nil
}

// changed counts a written change; version is the finding's resource version since.
func (w *writer) changed(ch *change, version string) {
	w.count(func(s *Summary) {
		w.last = later(w.last, ch.name, version)
		if ch.action == ActionUpdate && version == ch.before.ResourceVersion {
			s.Unchanged++ // another client had already made the change
			return
		}
		s.add(ch.action)
	})
}

// later returns the later one of a change and the write of a finding.
func later(last *v1alpha1.ScanChange, finding, version string) *v1alpha1.ScanChange {
	if last != nil {
		order, err := resourceversion.CompareResourceVersion(version, last.ResourceVersion)
		if err != nil || order < 0 {
			return last
		}
	}
	return &v1alpha1.ScanChange{Finding: finding, ResourceVersion: version}
}

// deleted handles a finding that was deleted in the meantime: a reported one is created again, unless it was deleted
// with its project.
func (w *writer) deleted(ctx context.Context, ch *change) error {
	if ch.action == ActionClose || ch.action == ActionRename {
		w.count(func(*Summary) {}) // nothing left to do
		return nil
	}
	if err := w.parent.check(ctx); err != nil {
		return err
	}
	ch.action, ch.spec.Doubt = ActionCreate, nil
	return w.create(ctx, ch)
}

// wrote reports whether a finding already has this change, and nothing that it leaves out.
func (w *writer) wrote(ch *change, finding *v1alpha1.Finding) bool {
	now := &finding.Spec
	switch {
	case ch.action == ActionClose:
		return now.Closed != nil && now.Closed.ScanID == w.scan.scanID
	case ch.action == ActionRename || now.Scan == nil || now.Closed != nil:
		return false
	}
	owners, err := takenOver(finding.ManagedFields, w.manager)
	return now.Scan.ScanID == w.scan.scanID && now.Evidence == ch.spec.Evidence && owners == nil && err == nil
}

// crossed returns the reason to give up a change because of the finding's current state, or "". A closing is only given
// up if its basis changed: a fact or the triage. A status update is not a reason, nor is a move to the tool's current
// name: an earlier job of the import may rename findings of a later one, such as those without an analysis.
func (w *writer) crossed(ch *change, now *v1alpha1.FindingSpec, last bool) (reason string) {
	before := &ch.before.Spec
	switch {
	case now.Tool != before.Tool && now.Tool != ch.spec.Tool, now.Analysis != before.Analysis &&
		now.Analysis != ch.spec.Analysis:
		return skipTaken
	case last, ch.action == ActionClose && !sameSpec(w.scan.renamed(now), w.scan.renamed(before)):
		return skipCrossed
	}
	return ""
}

// leave counts a change that is given up. The next scan handles a finding that is left open.
func (w *writer) leave(ch *change, reason string) {
	w.count(func(s *Summary) {
		switch ch.action {
		case ActionClose:
			s.LeftOpen++
		case ActionRename:
		default:
			s.skip(reason, "finding "+ch.name)
		}
	})
}

// again rebases the change on the finding's current state, which it trims.
func (w *writer) again(ch *change, now *v1alpha1.Finding) {
	kube.Trim(now) // all changes are in memory until the end
	switch ch.action {
	case ActionClose:
		ch.before = now
	case ActionRename:
		*ch = renaming(w.scan, now)
	default:
		ch.replaces(now, w.scan.scanID)
	}
}

// read returns the finding, or nil if it does not exist. unreadable reports that it cannot be decoded.
func (w *writer) read(ctx context.Context, name string) (now *v1alpha1.Finding, unreadable bool, err error) {
	return Read[v1alpha1.Finding](ctx, w.im.client, w.im.target.Namespace, name)
}

// update changes the summary.
func (w *writer) update(change func(*Summary)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w.summary)
}

// count counts a change that is done or given up.
func (w *writer) count(add func(*Summary)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	add(w.summary)
	w.im.options.OnProgress(w.progress.Add())
}
