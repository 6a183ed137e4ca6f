package finding

import (
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// auditTriage writes a line for each decision of a person that is about to be recorded, with
// the comment in full: the status has room for a part of it.
//
// The line comes before the write, so that none is missing where the controller dies in
// between. One that did not get to be recorded is then followed by another with the same uid and
// seq: of such lines the last one is the record's.
func (r *Reconciler) auditTriage(s *scope) {
	for _, t := range added(s.before, s.finding.Status) {
		if t.Type != v1alpha1.TransitionTriaged {
			continue
		}
		r.audit.Info("A finding was triaged.",
			"organization", strings.TrimPrefix(s.finding.Namespace, v1alpha1.NamespacePrefix),
			"namespace", s.finding.Namespace,
			"finding", s.finding.Name,
			"uid", string(s.finding.UID),
			"seq", t.Seq,
			"at", t.At.UTC().Format(time.RFC3339),
			"by", t.By,
			"from", t.From,
			"to", t.To,
			"comment", s.finding.Spec.Triage.Comments,
			"resourceVersion", s.finding.ResourceVersion,
		)
	}
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
