package finding

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// announcement is an event for people.
type announcement struct {
	reason, action, note string
}

// announce tells people what they may want to know of, after it has been recorded.
func (r *Reconciler) announce(s *scope) {
	for _, a := range announcements(s.before, s.finding.Status) {
		r.recorder.Eventf(s.finding, nil, corev1.EventTypeNormal, a.reason, a.action, "%s", a.note)
	}
}

// announcements are those of the transitions that this reconcile has added. A finding's
// creation and its changes of detail are left out: an import makes thousands of them, and
// the Scan tells how many.
func announcements(before, after v1alpha1.FindingStatus) []announcement {
	var out []announcement
	for _, t := range added(before, after) {
		by := cmp.Or(t.By, "an unknown writer")
		switch t.Type {
		case v1alpha1.TransitionClosed:
			out = append(out, announcement{"Closed", "Close", by + " no longer reports the finding."})
		case v1alpha1.TransitionReopened:
			out = append(out, announcement{"Reopened", "Reopen", by + " reports the finding again."})
		case v1alpha1.TransitionTriaged:
			out = append(out, announcement{"Triaged", "Triage", triageNote(t, by)})
		case v1alpha1.TransitionCreated, v1alpha1.TransitionUpdated:
		}
	}
	return out
}

// added are the transitions of after that before has not.
func added(before, after v1alpha1.FindingStatus) []v1alpha1.Transition {
	last := findingstate.LastSeq(&before)
	for i := range after.Transitions {
		if after.Transitions[i].Seq > last {
			return after.Transitions[i:]
		}
	}
	return nil
}

func triageNote(t v1alpha1.Transition, by string) string {
	if t.From == t.To {
		return by + " changed the comments."
	}
	return by + " changed the user status from " + t.From + " to " + t.To + "."
}
