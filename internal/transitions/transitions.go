// Package transitions numbers the changes of an object and keeps them in its status until
// their events are made. It is pure, and knows no kind.
package transitions

import (
	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// MaxChanges is how many transitions one look at an object may add at most.
const MaxChanges = 4

// History is what a status holds of its object's transitions.
type History struct {
	// Transitions in the order of their seq.
	Transitions []v1alpha1.Transition
	// EmittedSeq is the seq up to which all events are made.
	EmittedSeq int64
}

// LastSeq is the number of the newest transition; 0 where there never was one.
func (h History) LastSeq() int64 {
	last := h.EmittedSeq
	for i := range h.Transitions {
		last = max(last, h.Transitions[i].Seq)
	}
	return last
}

// Owed are the transitions whose events are still to be made.
func (h History) Owed() []v1alpha1.Transition {
	for i := range h.Transitions {
		if h.Transitions[i].Seq > h.EmittedSeq {
			return h.Transitions[i:]
		}
	}
	return nil
}

// Full says that so many are owed that another look might find more than a status can hold:
// they must be emitted before anything further is observed.
func (h History) Full() bool {
	return len(h.Owed()) > v1alpha1.MaxStoredTransitions-MaxChanges
}

// Record numbers what has happened and puts it behind the transitions kept so far, of which
// the oldest make room, but never one whose event is still to be made. The seq and the time of
// what is given are filled in. A transition is not dated before the one that it follows,
// whatever the clocks say.
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
	for len(kept) > v1alpha1.MaxTransitions && kept[0].Seq <= h.EmittedSeq {
		kept = kept[1:]
	}
	return kept
}
