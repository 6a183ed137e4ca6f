// Package audit writes the log of what people decided, with their comments in full: a status has room for a part of
// them.
package audit

import (
	"strings"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/transitions"
)

// Log is that of one kind.
type Log struct {
	// To is where the lines go.
	To logr.Logger
	// Kind is the key of the object's name in each line, Subject what the messages call the object.
	Kind, Subject string
}

// Decisions writes a line for each decision, and for each end of one, that after has and before has not.
//
// Call it before the status is written, so that no line is missing where the controller dies in between. One that did
// not get to be recorded is then followed by another with the same uid and seq: of such lines the last one is the
// record's.
func (l Log) Decisions(object client.Object, comment string, before, after transitions.History) {
	for _, t := range added(before, after) {
		message := map[v1alpha1.TransitionType]string{
			v1alpha1.TransitionTriaged: l.Subject + " was triaged.", v1alpha1.TransitionExpired: "A decision has ended.",
		}[t.Type]
		if message == "" {
			continue
		}
		l.To.Info(message,
			"organization", strings.TrimPrefix(object.GetNamespace(), v1alpha1.NamespacePrefix),
			"namespace", object.GetNamespace(),
			l.Kind, object.GetName(),
			"uid", string(object.GetUID()),
			"seq", t.Seq,
			"at", t.At.UTC().Format(time.RFC3339),
			"by", t.By,
			"from", t.From,
			"to", t.To,
			"reason", string(t.Reason),
			"expiresAt", rfc3339(t.ExpiresAt),
			"comment", comment,
			"resourceVersion", object.GetResourceVersion(),
		)
	}
}

// added are the transitions of after that before has not.
func added(before, after transitions.History) []v1alpha1.Transition {
	last := before.LastSeq()
	for i := range after.Transitions {
		if after.Transitions[i].Seq > last {
			return after.Transitions[i:]
		}
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
