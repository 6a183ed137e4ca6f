// Package transitions numbers the changes of an object and keeps them in its status until
// their events are made. It is pure and works for every kind.
package transitions

import (
	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// MaxChanges is the maximum number of transitions that one reconcile adds.
const MaxChanges = 6

// History holds the transitions in an object's status.
type History struct {
	// Transitions in the order of their seq.
	Transitions []v1alpha1.Transition
	// EmittedSeq is the seq up to which all events are made.
	EmittedSeq int64
}

// Of returns the history that a status holds.
func Of(list []v1alpha1.Transition, emittedSeq int64) History {
	return History{Transitions: list, EmittedSeq: emittedSeq}
}

// LastSeq returns the number of the newest transition, or 0 if there is none.
func (h History) LastSeq() int64 {
	last := h.EmittedSeq
	for i := range h.Transitions {
		last = max(last, h.Transitions[i].Seq)
	}
	return last
}

// Owed returns the transitions whose events have yet to be made.
func (h History) Owed() []v1alpha1.Transition {
	for i := range h.Transitions {
		if h.Transitions[i].Seq > h.EmittedSeq {
			return h.Transitions[i:]
		}
	}
	return nil
}

// Since returns the transitions that an earlier history does not have.
func (h History) Since(before History) []v1alpha1.Transition {
	return Of(h.Transitions, before.LastSeq()).Owed()
}

// Full reports whether so many transitions are owed that another reconcile could add more than a status can hold. Then
// they must be emitted before anything else is observed.
func (h History) Full() bool {
	return len(h.Owed()) > v1alpha1.MaxStoredTransitions-MaxChanges
}

// Record numbers the changes, sets their time, and appends them. The oldest transitions are dropped to make room, but
// never one whose event has yet to be made. No transition is dated before the one that it follows, whatever the clocks
// show.
func (h History) Record(at v1alpha1.Time, happened ...v1alpha1.Transition) []v1alpha1.Transition {
	if len(happened) == 0 {
		return h.Transitions
	}
	seq := h.LastSeq()
	if n := len(h.Transitions); n > 0 && at.Before(&h.Transitions[n-1].At) {
		at = h.Transitions[n-1].At
	}
	kept := make([]v1alpha1.Transition, 0, len(h.Transitions)+len(happened))
	kept = append(kept, h.Transitions...)
	for _, t := range happened {
		seq++
		t.Seq, t.At = seq, at
		kept = append(kept, t)
	}
	return Of(kept, h.EmittedSeq).Trim()
}

// Trim returns the transitions without the oldest ones beyond MaxTransitions whose events are made.
func (h History) Trim() []v1alpha1.Transition {
	kept := h.Transitions
	for len(kept) > v1alpha1.MaxTransitions && kept[0].Seq <= h.EmittedSeq {
		kept = kept[1:]
	}
	return kept
}
