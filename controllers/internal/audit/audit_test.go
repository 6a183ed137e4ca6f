package audit

import (
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/transitions"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestOnlyWhatIsNewIsWritten(t *testing.T) {
	list := func(seqs ...int64) (h transitions.History) {
		for _, seq := range seqs {
			h.Transitions = append(h.Transitions, v1alpha1.Transition{Seq: seq})
		}
		return h
	}
	for _, c := range []struct {
		reason              string
		before, after, want transitions.History
	}{
		{"all of a new object's", list(), list(1, 2), list(1, 2)},
		{"none where nothing has happened", list(1), list(1), list()},
		{"those after the last", list(1, 2), list(1, 2, 3, 4), list(3, 4)},
		{"though old ones have been dropped", list(1, 2), list(2, 3), list(3)},
	} {
		harness.Same(t, c.reason, c.want.Transitions, added(c.before, c.after))
	}
}
