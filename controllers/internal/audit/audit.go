// Package audit logs the decisions stored in spec.triage, whoever made them (operations too), with their full comments:
// a status has room for only part of them. It also logs who committed which operation, and does not log verdicts.
package audit

import (
	"strings"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/transitions"
)

// Log is the audit log of one kind.
type Log struct {
	// To receives the lines.
	To logr.Logger
	// Kind is the key of the object's name in each line, Subject what the messages call the object.
	Kind, Subject string
}

// Decisions writes a line for each decision, and for each end of a decision, that is in after but not in
// before.
//
// Call it before the status is written, so that no line is missing if the controller crashes in between. If the
// status write fails, a later line with the same uid and seq follows: the last of these lines matches the recorded
// decision.
func (l Log) Decisions(object client.Object, comment string, before, after transitions.History) {
	for _, t := range after.Since(before) {
		message := map[v1alpha1.TransitionType]string{
			v1alpha1.TransitionTriaged: l.Subject + " was triaged.", v1alpha1.TransitionExpired: "A decision has ended.",
		}[t.Type]
		if message == "" {
			continue
		}
		l.To.Info(message,
			"organization", organizationOf(object),
			"namespace", object.GetNamespace(),
			l.Kind, object.GetName(),
			"uid", string(object.GetUID()),
			"seq", t.Seq,
			"at", t.At.UTC().Format(time.RFC3339),
			"by", t.By,
			"author", t.Author,
			"from", t.From,
			"to", t.To,
			"reason", string(t.Reason),
			"expiresAt", rfc3339(t.ExpiresAt),
			"comment", comment,
			"resourceVersion", object.GetResourceVersion(),
		)
	}
}

// Operation writes a line about an operation that is about to decide. Its decisions are signed with its name, and it
// may be deleted before they are observed. Like Decisions, call it before the status is written.
func Operation(to logr.Logger, operation *v1alpha1.TriageOperation) {
	to.Info("A triage operation begins to decide.",
		"organization", organizationOf(operation),
		"namespace", operation.Namespace,
		"triageOperation", operation.Name,
		"uid", string(operation.UID),
		"createdBy", operation.Spec.By,
		"committedBy", operation.Spec.CommittedBy,
		"undo", string(operation.Spec.Undo),
		"matched", operation.Status.Matched,
		"resourceVersion", operation.ResourceVersion,
	)
}

func organizationOf(object client.Object) string {
	return strings.TrimPrefix(object.GetNamespace(), v1alpha1.NamespacePrefix)
}

// rfc3339 formats a time; "" for nil.
func rfc3339(at *v1alpha1.Time) string {
	if at == nil {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}
