package retention

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// pass is one walk over all due objects of an organization.
type pass struct {
	// reached holds the last checked entry of each shelf.
	reached map[shelf]entry
	retired map[shelf]int
	// issues counts the issues that were removed with their reviews.
	issues int
	// interrupted is when the removal of a review was first interrupted since anything was removed, or a turn ended for
	// another reason.
	interrupted time.Time
	// progress is that of the current turn.
	progress
	// outdated means that the last turn ended because the organization had changed.
	outdated bool
	// held means that another object still needed a due one, or that a due delivery was the only record of a finding's
	// creation; changed that a due object was newer than in the cache. Both require another pass.
	held, changed bool
	// notRemoved counts the removals that the API server refused or that failed with another error; lastError is the last
	// such error.
	notRemoved int
	lastError  error
	// failed counts, by shelf, the removals in a row that failed.
	failed map[shelf]int
	// begin is the index of the term with which the next turn begins, modulo their number.
	begin int
}

// progress is how far a turn has come.
type progress struct {
	begun time.Time
	// left is how many removals the turn may still make, checks how many entries it may still check.
	left, checks int
	// removed means that the turn has removed a due object.
	removed bool
}

// maxFailed is how many removals in a row may fail before a turn leaves the shelf: a single object may fail for its own
// reason, but if all do, the API server is in trouble, or a webhook for the kind is down.
const maxFailed = 10

// maxFailing is how long a turn continues while removals fail, since the API server may wait for ten seconds for each
// response of a webhook. A turn at the full rate ends earlier, even if organizations share it.
const maxFailing = 3 * turn

func newPass() *pass {
	return &pass{reached: map[shelf]entry{}, retired: map[shelf]int{}, failed: map[shelf]int{}}
}

// fate is the result for a due object. With an error, only fateUnfinished and those of isStuck mean anything.
type fate int

const (
	// fateGone: deleted already, or no longer due. A watch adds it again if needed.
	fateGone fate = iota
	fateRetired
	// fateRequested: the status that this delivery stands in for was requested, which costs a write, like a removal.
	fateRequested
	fateHeld
	fateChanged
	// fateRefused: the API server refused the removal, for example because of a cluster's own admission policy.
	fateRefused
	// fateFailed: the API server returned another error, perhaps a temporary one, for example because a cluster's own
	// webhook for some objects is down.
	fateFailed
	// fateGaveUp: the removal of the review was interrupted for maxInterrupted.
	fateGaveUp
	// fateUnfinished: the turn has ended before all issues of the review were removed, perhaps because of an error.
	fateUnfinished
	// fateOutdated: the organization has changed since the turn began, so its terms may have been withdrawn.
	fateOutdated
)

// onward is how a turn continues, or where the next one begins.
type onward int

const (
	goOn         onward = iota // with the next object, or the next shelf
	leaveShelf                 // with the next shelf; the next turn continues on this one
	endTurn                    // the turn ends
	resumeHere                 // the turn ends, and the next one begins with this shelf
	resumeBeyond               // the turn ends, and the next one begins with the shelf after this one
)

// work does one turn of the pass and reports whether the pass is complete. A change of the organization ends the turn,
// because the next one has the new terms. So does a review with more issues than the turn may remove, or whose removal
// was interrupted; the next turn begins with it. So do failures that take too long, and a review that was tried for
// long; then the next turn begins with the next shelf. It returns an error if failures ended the turn or were all that
// was left, unless something was removed: then the next turn follows without a pause.
func (r *Reconciler) work(ctx context.Context, organization *v1alpha1.Organization, p *pass) (bool, error) {
	p.progress, p.outdated = progress{begun: r.Clock.Now(), left: r.batch, checks: maxChecked}, false
	var failure error
	for i, t := range p.inTurn(termsOf(organization.Spec.Retention)) {
		switch next, err := r.workOn(ctx, organization, p, t); next {
		case goOn:
		case leaveShelf:
			failure = err
		case endTurn:
			return false, err
		case resumeHere:
			p.begin += i
			return false, err
		case resumeBeyond:
			p.begin += i + 1
			return false, pauseFor(err, p.removed)
		}
		if p.checks == 0 {
			return false, nil
		}
	}
	return failure == nil, pauseFor(failure, p.removed)
}

// workOn removes the due objects of one shelf.
func (r *Reconciler) workOn(ctx context.Context, organization *v1alpha1.Organization, p *pass, t term) (onward, error) {
	from := place{organization.Status.Namespace, t.shelf}
	for _, e := range r.agenda.due(from, p.upTo(t.shelf), t.cutoff(r.Clock.Now()), p.checks) {
		if p.left <= 0 {
			return endTurn, nil
		}
		outcome, err := r.retire(ctx, organization, p, e, t)
		if outcome == fateUnfinished {
			return resumeHere, err
		}
		p.interrupted = time.Time{} // with an error, too: the API server may be away, which is not the review's own time
		if err != nil && !outcome.isStuck() {
			return endTurn, err // the next turn tries the object again
		}
		r.emptying.End(from.namespace)
		if outcome == fateOutdated {
			p.outdated = true
			return endTurn, nil
		}
		if outcome.isStuck() {
			p.lastError = err
		}
		p.note(t.shelf, e, outcome)
		if next := p.afterFailures(t.shelf, outcome, r.Clock.Since(p.begun)); next != goOn {
			return next, err
		}
	}
	return goOn, nil
}

// afterFailures decides whether failures end the turn, or its work on the shelf; if so, it begins to count those of the
// shelf anew. took is how long the turn has taken.
func (p *pass) afterFailures(on shelf, outcome fate, took time.Duration) onward {
	if outcome == fateGaveUp || outcome == fateFailed && took > maxFailing {
		p.failed[on] = 0
		return resumeBeyond
	}
	if p.failed[on] == maxFailed {
		p.failed[on] = 0
		return leaveShelf
	}
	return goOn
}

// inTurn returns the terms in the order of the next turn.
func (p *pass) inTurn(terms []term) []term {
	p.begin %= len(terms)
	return slices.Concat(terms[p.begin:], terms[:p.begin])
}

// pauseFor returns the error of a turn, so that the next one follows after a pause; nil if the turn removed something.
func pauseFor(err error, removed bool) error {
	if removed {
		return nil
	}
	return err
}

// upTo returns the last checked entry of the shelf.
func (p *pass) upTo(on shelf) entry {
	if e, begun := p.reached[on]; begun {
		return e
	}
	return first
}

// isStuck reports whether the API server did not remove the object. Other objects may still be removed.
func (f fate) isStuck() bool { return f == fateRefused || f == fateFailed || f == fateGaveUp }

// note records the result for an object of the shelf.
func (p *pass) note(on shelf, e entry, outcome fate) {
	p.reached[on] = e
	p.checks--
	if outcome == fateRetired || outcome == fateRequested || outcome.isStuck() {
		p.left--
	}
	switch outcome {
	case fateRetired:
		p.removed = true
		p.retired[on]++
		p.failed[on] = 0
	case fateRequested, fateHeld:
		p.held = true
	case fateRefused:
		p.held = true
		p.notRemoved++
		p.failed[on] = 0
	case fateFailed, fateGaveUp:
		p.held = true
		p.notRemoved++
		p.failed[on]++
	case fateChanged:
		p.changed = true
	case fateGone, fateUnfinished, fateOutdated:
	}
}

// retire removes the object of the entry, if it still matches the entry and nothing holds it.
func (r *Reconciler) retire(ctx context.Context, organization *v1alpha1.Organization, p *pass, e entry, t term) (
	fate, error) {
	from, object := place{organization.Status.Namespace, t.shelf}, newObject(t.shelf)
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: from.namespace, Name: e.name}, object,
		client.UnsafeDisableDeepCopy); err != nil {
		return fateGone, kube.IgnoreNotFound(err)
	}
	if is, ok := entryOf(object); !ok || is != (position{from, e}) {
		return fateGone, nil // the cache is ahead of the agenda, which will get the same event
	}
	cutoff := t.cutoff(r.Clock.Now())
	if held, err := r.held(ctx, object, cutoff); err != nil || held {
		return fateHeld, err
	}
	finding, err := r.unrecorded(ctx, object)
	if err != nil {
		return fateHeld, fmt.Errorf("get the finding of delivery %s: %w", e.name, err)
	}
	if finding != nil && r.implied.IsRequested(finding) {
		return fateHeld, nil
	}
	if p.left == r.batch { // nothing is removed yet in this turn: after an outage the cache may be far behind
		if outdated, err := isOutdated(ctx, r.Live, organization); outdated || err != nil {
			return fateOutdated, err
		}
	}
	if outdated, err := r.await(ctx, organization, t.shelf.kind(), e.name); outdated || err != nil {
		return fateOutdated, err
	}
	if finding != nil {
		r.implied.Request(finding)
		return fateRequested, nil
	}
	var outcome fate
	if review, is := object.(*v1alpha1.Review); is {
		outcome, err = r.removeReview(ctx, organization, p, review, cutoff)
	} else {
		outcome, err = r.remove(ctx, object, t.shelf.kind())
	}
	if outcome == fateRetired {
		r.agenda.forget(from, e)
	}
	return outcome, err
}

// await waits until the rate allows the next removal. It reports whether the cache shows that the organization has
// changed or was deleted since it was read.
func (r *Reconciler) await(ctx context.Context, organization *v1alpha1.Organization, kind, name string) (bool, error) {
	if err := r.limiter.Wait(ctx); err != nil {
		return false, fmt.Errorf("wait for a turn to remove %s %s: %w", kind, name, err)
	}
	return isOutdated(ctx, r.Client, organization)
}

// isOutdated reports whether the organization has changed or was deleted since it was read, according to the reader.
func isOutdated(ctx context.Context, reader client.Reader, organization *v1alpha1.Organization) (bool, error) {
	current := &v1alpha1.Organization{}
	err := reader.Get(ctx, client.ObjectKeyFromObject(organization), current, client.UnsafeDisableDeepCopy)
	return current.UID != organization.UID || current.Generation != organization.Generation, kube.IgnoreNotFound(err)
}

// remove deletes the object only if it is unchanged, because it may have been reopened, triaged or acquired since it
// was read.
func (r *Reconciler) remove(ctx context.Context, object client.Object, kind string) (fate, error) {
	if err := r.Client.Delete(ctx, object, patch.AsSeen(object)); err != nil {
		return fateOf(kind, fmt.Errorf("remove %s %s: %w", kind, object.GetName(), err))
	}
	retired.WithLabelValues(kind).Inc()
	return fateRetired, nil
}

// fateOf returns the result for an object of the kind whose removal ended with the error. With fateRefused, the error
// is the refusal, which would be repeated. With fateFailed, it is the error of the API server.
func fateOf(kind string, err error) (fate, error) {
	switch {
	case kube.IsRefusal(err):
		notRemoved.WithLabelValues(kind).Inc()
		return fateRefused, err
	case kube.IsNotFound(err):
		return fateGone, nil
	case kube.IsConflict(err):
		return fateChanged, nil
	case kube.StatusOf(err).Code != 0:
		notRemoved.WithLabelValues(kind).Inc()
		return fateFailed, err
	}
	return fateGone, err
}

// announce logs what the pass has removed, if anything, and sends an Event about it. It logs which removals were
// refused or failed.
func (r *Reconciler) announce(ctx context.Context, organization *v1alpha1.Organization, p *pass) {
	if p.notRemoved > 0 {
		ctrl.LoggerFrom(ctx).Error(p.lastError, "removals were refused or failed, and are tried again later",
			"notRemoved", p.notRemoved)
	}
	findings := p.retired[closedFindings] + p.retired[triagedFindings]
	scans, deliveries := p.retired[finishedScans], p.retired[finishedDeliveries]
	operations := p.retired[finishedOperations] + p.retired[setlessOperations] + p.retired[previews]
	reviews, issues := p.retired[idleReviews], p.issues
	if findings+scans+deliveries+operations+reviews+issues == 0 {
		return
	}
	ctrl.LoggerFrom(ctx).Info("retired", "closedFindings", findings, "finishedScans", scans,
		"finishedDeliveries", deliveries, "operations", operations, "reviews", reviews, "reviewIssues", issues)
	r.Recorder.Eventf(organization, nil, corev1.EventTypeNormal, "Retired", "Retire",
		"Removed by spec.retention: closed findings %d, finished scans %d, finished deliveries %d, triage operations %d, "+
			"reviews %d with issues %d.", findings, scans, deliveries, operations, reviews, issues)
}
