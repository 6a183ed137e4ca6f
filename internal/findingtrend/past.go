package findingtrend

import (
	"cmp"
	"slices"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// stateAt returns the state that a finding had at a time, from the transitions in its status; "" if it had not been
// detected yet. Earlier transitions are unknown, so before the first kept one it returns the state before that.
func stateAt(f *v1alpha1.Finding, at time.Time) v1alpha1.FindingState {
	if findingstate.CreatedAt(f).After(at) {
		return ""
	}
	past := slices.IndexFunc(f.Status.Transitions, func(t v1alpha1.Transition) bool { return t.At.After(at) })
	if past < 0 {
		return findingstate.State(f)
	}
	// Only a state has these values: the one before the transition.
	from := v1alpha1.FindingState(f.Status.Transitions[past].From)
	if from == v1alpha1.FindingStateOpenMuted || from == v1alpha1.FindingStateClosed {
		return from
	}
	p := partsOf(f)
	for _, t := range slices.Backward(f.Status.Transitions[past:]) {
		p.undo(t)
	}
	for _, t := range f.Status.Transitions[:past] {
		p.replay(t)
	}
	return p.state()
}

// parts holds what a finding's state is derived from.
type parts struct {
	closed, suppressed bool
	// decided is the user's decision; judged is the verdict of a policy or of a decision about the same result
	// in a pull request.
	decided, judged v1alpha1.UserStatus
}

func partsOf(f *v1alpha1.Finding) parts {
	p := parts{
		closed: f.Spec.Closed != nil, suppressed: f.Spec.Suppression != nil,
		decided: findingstate.UserStatus(f), judged: v1alpha1.UserStatusOpen,
	}
	if v := f.Status.Verdict; v != nil {
		p.judged = v1alpha1.UserStatus(v.UserStatus)
	}
	return p
}

// undo restores the parts to their values before a transition.
func (p *parts) undo(t v1alpha1.Transition) {
	switch t.Type {
	case v1alpha1.TransitionClosed:
		p.closed = false
	case v1alpha1.TransitionReopened:
		p.closed = true
	case v1alpha1.TransitionSuppressed:
		p.suppressed = false
	case v1alpha1.TransitionUnsuppressed:
		p.suppressed = true
	case v1alpha1.TransitionTriaged, v1alpha1.TransitionExpired:
		p.decided = cmp.Or(v1alpha1.UserStatus(t.From), v1alpha1.UserStatusOpen)
	case v1alpha1.TransitionJudged:
		p.judged = v1alpha1.UserStatus(t.From)
	case v1alpha1.TransitionCreated, v1alpha1.TransitionUpdated, v1alpha1.TransitionStale, v1alpha1.TransitionFresh,
		v1alpha1.TransitionOpened, v1alpha1.TransitionResolved, v1alpha1.TransitionCompleted:
	}
}

// replay applies a transition before the time, because later ones do not record all of it: TransitionSuppressed also
// reports another reason to suppress, and a verdict that ends with a closure or a user's decision has no transition of
// its own.
func (p *parts) replay(t v1alpha1.Transition) {
	switch t.Type { //nolint:exhaustive // the others change neither
	case v1alpha1.TransitionSuppressed, v1alpha1.TransitionUnsuppressed:
		p.suppressed = t.Type == v1alpha1.TransitionSuppressed
	case v1alpha1.TransitionJudged:
		p.judged = v1alpha1.UserStatus(t.To)
	case v1alpha1.TransitionClosed:
		p.judged = v1alpha1.UserStatusOpen
	case v1alpha1.TransitionTriaged:
		if t.To != string(v1alpha1.UserStatusOpen) {
			p.judged = v1alpha1.UserStatusOpen
		}
	}
}

func (p *parts) state() v1alpha1.FindingState {
	switch {
	case p.closed:
		return v1alpha1.FindingStateClosed
	case p.decided == v1alpha1.UserStatusMuted, p.suppressed,
		p.decided == v1alpha1.UserStatusOpen && p.judged == v1alpha1.UserStatusMuted:
		return v1alpha1.FindingStateOpenMuted
	default:
		return v1alpha1.FindingStateOpen
	}
}

// happened holds what happened to a finding within a period.
type happened struct {
	opened, closed, muted bool
	closedAt              time.Time
}

// mutes reports whether the transition, a decision or a suppression, mutes the finding. It does not count if the
// finding was muted already, by the same decision with another comment or by another one.
func mutes(f *v1alpha1.Finding, t *v1alpha1.Transition) bool {
	return t.From != t.To && (t.Type == v1alpha1.TransitionSuppressed || t.To == string(v1alpha1.UserStatusMuted)) &&
		stateAt(f, t.At.Add(-1)) != v1alpha1.FindingStateOpenMuted
}

// restored reports whether the transition only repeats what the finding was before: after a restore its history begins
// with the creation of the object. A scan may begin hours before its import creates findings, which a policy mutes.
// If it began more than a day before, that counts as restored, too.
func restored(f *v1alpha1.Finding, t *v1alpha1.Transition) bool {
	created := f.CreationTimestamp.Time
	return t.At.Time.Equal(created) && findingstate.CreatedAt(f).Time.Before(created.Add(-day))
}

// between returns what happened to a finding between two times, from inclusive, to exclusive.
func between(f *v1alpha1.Finding, from, to time.Time) (h happened) {
	within := func(at time.Time) bool { return !at.Before(from) && at.Before(to) }
	h.opened = within(findingstate.CreatedAt(f).Time)
	for i := range f.Status.Transitions {
		t := &f.Status.Transitions[i]
		if !within(t.At.Time) {
			continue
		}
		switch t.Type { //nolint:exhaustive // the others change no state
		case v1alpha1.TransitionReopened:
			h.opened = true
		case v1alpha1.TransitionClosed:
			h.closed, h.closedAt = true, t.At.Time
		case v1alpha1.TransitionTriaged, v1alpha1.TransitionJudged, v1alpha1.TransitionSuppressed:
			h.muted = h.muted || mutes(f, t) && !restored(f, t)
		}
	}
	return h
}
