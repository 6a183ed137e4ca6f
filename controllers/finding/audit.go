package finding

import (
	"context"
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// auditTriage writes a line for each decision of a person that is about to be recorded, or whose end is, with
// the comment in full: the status has room for a part of it.
//
// The line comes before the write, so that none is missing where the controller dies in
// between. One that did not get to be recorded is then followed by another with the same uid and
// seq: of such lines the last one is the record's.
func (r *Reconciler) auditTriage(_ context.Context, s *scope) error {
	for _, t := range added(s.Before, s.Status) {
		message := map[v1alpha1.TransitionType]string{
			v1alpha1.TransitionTriaged: "A finding was triaged.", v1alpha1.TransitionExpired: "A decision has ended.",
		}[t.Type]
		if message == "" {
			continue
		}
		r.audit.Info(message,
			"organization", strings.TrimPrefix(s.Object.Namespace, v1alpha1.NamespacePrefix),
			"namespace", s.Object.Namespace,
			"finding", s.Object.Name,
			"uid", string(s.Object.UID),
			"seq", t.Seq,
			"at", t.At.UTC().Format(time.RFC3339),
			"by", t.By,
			"from", t.From,
			"to", t.To,
			"reason", string(t.Reason),
			"expiresAt", rfc3339(t.ExpiresAt),
			"comment", s.Object.Spec.Triage.Comments,
			"resourceVersion", s.Object.ResourceVersion,
		)
	}
	return nil
}

// rfc3339 formats a time; "" where there is none.
func rfc3339(at *v1alpha1.Time) string {
	if at == nil {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

// added are the transitions of after that before has not.
func added(before, after *v1alpha1.FindingStatus) []v1alpha1.Transition {
	last := findingstate.LastSeq(before)
	for i := range after.Transitions {
		if after.Transitions[i].Seq > last {
			return after.Transitions[i:]
		}
	}
	return nil
}
