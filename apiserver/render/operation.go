package render

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
)

// TriageOperationJSON renders an operation. The same operation always gives the same bytes.
func TriageOperationJSON(o *v1alpha1.TriageOperation) ([]byte, error) {
	spec, status := &o.Spec, &o.Status
	selection := valueOf(spec.Select)
	return encodeNamed("triage operation", o.Name, &openapi.TriageOperation{
		Id:          o.Name,
		Uid:         string(o.UID),
		Phase:       OperationPhase(o),
		Set:         decisionOf(spec.Set),
		Filters:     OperationFilters(&selection),
		Ids:         stringsOf(selection.IDs),
		Undo:        string(spec.Undo),
		Commit:      spec.Commit,
		CreatedBy:   spec.By,
		CommittedBy: spec.CommittedBy,
		CreatedAt:   second(o.CreationTimestamp.Time),
		CompletedAt: optionalSecond(status.CompletedAt),
		Matched:     status.Matched, WouldChange: status.WouldChange, NotUndoable: status.NotUndoable,
		Decided: convert(status.Decided, func(d v1alpha1.OperationDecider) openapi.TriageOperationDecider {
			return openapi.TriageOperationDecider{By: d.By, Count: d.Count}
		}),
		Samples: stringsOf(status.Samples),
		Changed: status.Changed, Unchanged: status.Unchanged, Conflicted: status.Conflicted, Failed: status.Failed,
		Conflicts: convert(status.Conflicts, exampleOf), Failures: convert(status.Failures, exampleOf),
		Detail: v1alpha1.StalledMessage(o.Status.Conditions),
	})
}

// OperationPhase returns the shown phase of an operation, which is selecting before any controller has observed
// it.
func OperationPhase(o *v1alpha1.TriageOperation) openapi.TriageOperationPhase {
	return openapi.TriageOperationPhase(strings.ToLower(string(cmp.Or(o.Status.Phase, v1alpha1.OperationSelecting))))
}

func decisionOf(set *v1alpha1.OperationDecision) openapi.TriageOperationDecision {
	d := valueOf(set)
	return openapi.TriageOperationDecision{
		UserStatus:      enum[openapi.UserStatus](d.UserStatus),
		Reason:          enum[openapi.DecisionReason](d.Reason),
		Comments:        valueOf(d.Comments),
		RemovesComments: d.Comments != nil && *d.Comments == "",
		ExpiresAt:       optionalSecond(d.ExpiresAt),
	}
}

func exampleOf(e v1alpha1.OperationExample) openapi.TriageOperationExample {
	return openapi.TriageOperationExample{FindingId: string(e.Finding), Message: e.Message}
}

// OperationFilters returns the filters of a selection as query parameters of a list. Filters with several
// values, which only kubectl can set, are joined by commas.
func OperationFilters(s *v1alpha1.FindingSelection) map[string]string {
	filters := map[string]string{}
	give := func(name, value string) {
		if value != "" {
			filters[name] = value
		}
	}
	give("status", listed(s.State))
	give("user_status", listed(s.UserStatus))
	give("severity", listed(s.Severity))
	give("repo_id", string(s.Repository))
	give("project_id", string(s.Project))
	give("tool", s.Tool)
	give("rule", s.Rule)
	give("vulnerability", s.Vulnerability)
	give("package", s.Package)
	give("owner", s.Owner)
	give("category", listed(s.Category))
	give("created_since", bound(s.CreatedSince))
	give("created_until", bound(s.CreatedUntil))
	give("updated_since", bound(s.UpdatedSince))
	give("updated_until", bound(s.UpdatedUntil))
	give("min_score", s.MinScore)
	give("text", s.Text)
	give("file", s.File)
	give("policy", string(s.Policy))
	give("label_selector", s.LabelSelector)
	give("field_selector", s.FieldSelector)
	if s.Class != nil { // "" matches findings without a class
		filters["class"] = *s.Class
	}
	for name, asked := range map[string]*bool{"stale": s.Stale, "suppressed": s.Suppressed} {
		if asked != nil {
			filters[name] = strconv.FormatBool(*asked)
		}
	}
	return filters
}

// bound returns a time that is asked for, also the earliest that can be; "" if none is.
func bound(at *v1alpha1.Time) string {
	if at == nil {
		return ""
	}
	return Timestamp(at.Time)
}

func listed[T ~string](values []T) string { return strings.Join(stringsOf(values), ",") }
