package transitions_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/transitions"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func at(minute int) v1alpha1.Time {
	return v1alpha1.NewTime(time.Date(2026, time.March, 1, 12, minute, 0, 0, time.UTC))
}

var updated = v1alpha1.Transition{Type: v1alpha1.TransitionUpdated, From: "open", To: "closed", By: "scanner/x", Scan: "s-1"}

// history returns transitions from one seq to another, one minute apart.
func history(from, to, emitted int64) transitions.History {
	h := transitions.History{EmittedSeq: emitted}
	for seq := from; seq <= to; seq++ {
		h.Transitions = append(h.Transitions, v1alpha1.Transition{Seq: seq, Type: v1alpha1.TransitionUpdated, At: at(int(seq))})
	}
	return h
}

func seqs(kept []v1alpha1.Transition) []int64 {
	var out []int64
	for i := range kept {
		out = append(out, kept[i].Seq)
	}
	return out
}

func span(from, to int64) []int64 {
	var out []int64
	for seq := from; seq <= to; seq++ {
		out = append(out, seq)
	}
	return out
}

func TestTransitionsAreNumberedAndTheOldestEmittedMakeRoom(t *testing.T) {
	cases := []struct {
		reason  string
		history transitions.History
		changes int
		want    []int64
	}{
		{"the first is number 1", transitions.History{}, 1, span(1, 1)},
		{"two at once have two numbers", transitions.History{}, 2, span(1, 2)},
		{"nothing has happened", history(1, 3, 1), 0, span(1, 3)},
		{"nothing has happened, and too many are kept: no write for that", history(1, 20, 20), 0, span(1, 20)},
		{"numbers go on where those kept are gone", transitions.History{EmittedSeq: 7}, 1, span(8, 8)},
		{"sixteen are kept once emitted", history(1, 16, 16), 1, span(2, 17)},
		{"the oldest make room for two", history(5, 20, 20), 2, span(7, 22)},
		{"what is not emitted stays, however much it is", history(1, 20, 0), 1, span(1, 21)},
		{"only what is emitted makes room", history(1, 18, 2), 1, span(3, 19)},
	}
	for _, c := range cases {
		changes := make([]v1alpha1.Transition, c.changes)
		got := c.history.Record(at(50), changes...)
		harness.Same(t, c.reason, c.want, seqs(got))
	}
}

func TestRecordFillsInNumberAndTimeAndNothingElse(t *testing.T) {
	h := history(1, 1, 1)
	want := updated
	want.Seq, want.At = 2, at(5)
	harness.Same(t, "record", want, h.Record(at(5), updated)[1])
	harness.Same(t, "the number of the caller's value, which is not changed", int64(0), updated.Seq)
}

func TestATransitionIsNotDatedBeforeTheOneItFollows(t *testing.T) {
	third := at(3)
	if got := history(1, 3, 0).Record(at(2), updated)[3].At; !got.Equal(&third) {
		t.Errorf("dated %s, after one of %s", got, third)
	}
}

func TestAHistoryIsFullIfTheNextTransitionsMayHaveNoRoom(t *testing.T) {
	const most = v1alpha1.MaxStoredTransitions - transitions.MaxChanges
	cases := []struct {
		reason  string
		history transitions.History
		want    bool
	}{
		{"nothing is owed", history(1, 16, 16), false},
		{"one more look has room", history(1, most, 0), false},
		{"one more look may not", history(1, most+1, 0), true},
		{"what is emitted can make room", history(1, most+1, 1), false},
	}
	for _, c := range cases {
		harness.Same(t, c.reason, c.want, c.history.Full())
	}
}

func TestOnlyWhatAnEarlierHistoryDoesNotHaveIsNew(t *testing.T) {
	for _, c := range []struct {
		reason        string
		before, after transitions.History
		want          []int64
	}{
		{"all of a new object's", transitions.History{}, history(1, 2, 0), span(1, 2)},
		{"none where nothing has happened", history(1, 1, 0), history(1, 1, 0), nil},
		{"those after the last", history(1, 2, 0), history(1, 4, 0), span(3, 4)},
		{"though old ones have been dropped", history(1, 2, 0), history(2, 3, 0), span(3, 3)},
	} {
		harness.Same(t, c.reason, c.want, seqs(c.after.Since(c.before)))
	}
}

// Whatever happens, and however late the events are made, there are no gaps and no duplicate
// numbers, no owed transition is dropped, no more are kept than necessary, and never more than a
// status can hold.
func TestNothingOwedIsDropped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := transitions.History{}
		var recorded int64
		for range rapid.IntRange(1, 60).Draw(t, "looks") {
			if rapid.Bool().Draw(t, "emits") {
				h.EmittedSeq = rapid.Int64Range(h.EmittedSeq, recorded).Draw(t, "up to")
			}
			if h.Full() {
				h.EmittedSeq = h.LastSeq()
			}
			n := rapid.IntRange(0, transitions.MaxChanges).Draw(t, "changes")
			h.Transitions = h.Record(at(rapid.IntRange(0, 59).Draw(t, "minute")), make([]v1alpha1.Transition, n)...)
			recorded += int64(n)

			if h.LastSeq() != recorded {
				t.Fatalf("the last is %d after %d changes", h.LastSeq(), recorded)
			}
			if len(h.Transitions) > v1alpha1.MaxStoredTransitions {
				t.Fatalf("%d are kept", len(h.Transitions))
			}
			if n > 0 && len(h.Transitions) > v1alpha1.MaxTransitions && h.Transitions[0].Seq <= h.EmittedSeq {
				t.Fatalf("%d are kept, and %d is emitted", len(h.Transitions), h.Transitions[0].Seq)
			}
			harness.Same(t, "owed", span(h.EmittedSeq+1, recorded), seqs(h.Owed()))
			harness.Same(t, "kept", span(recorded-int64(len(h.Transitions))+1, recorded), seqs(h.Transitions))
			for i := 1; i < len(h.Transitions); i++ {
				if h.Transitions[i].At.Before(&h.Transitions[i-1].At) {
					t.Fatalf("the time goes back: %v", h.Transitions)
				}
			}
		}
	})
}
