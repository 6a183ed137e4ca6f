package main

import (
	"encoding/json"
	"errors"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// decision is what is to be said of findings. A nil member stays as it is. Who says it is not
// in it: the API server puts the name of whoever sends the request.
type decision struct{ findingstate.Decision }

// decide reads the flags: one of the three, or a comment, or both; and why, and until when.
func decide(mute, confirm, reopen bool, comment *string, grounds grounds) (decision, error) {
	var chosen []v1alpha1.UserStatus
	for _, c := range []struct {
		given bool
		means v1alpha1.UserStatus
	}{{mute, v1alpha1.UserStatusMuted}, {confirm, v1alpha1.UserStatusActive}, {reopen, v1alpha1.UserStatusOpen}} {
		if c.given {
			chosen = append(chosen, c.means)
		}
	}
	switch {
	case len(chosen) > 1:
		return decision{}, errors.New("--mute, --confirm and --reopen exclude each other: use one of them")
	case len(chosen) == 0 && comment == nil && grounds.reason == nil && grounds.expiresAt == nil:
		return decision{}, errors.New("nothing to do: use --mute, --confirm or --reopen, or only --comment to keep the decision")
	}
	d := decision{findingstate.Decision{Comments: comment, Reason: grounds.reason, ExpiresAt: grounds.expiresAt}}
	if (d.Reason != nil || d.ExpiresAt != nil) && (len(chosen) == 0 || chosen[0] == v1alpha1.UserStatusOpen) {
		return decision{}, errors.New("--reason, --expires-at and --expires-in belong to a decision: use --mute or --confirm with them")
	}
	if len(chosen) == 1 {
		d.UserStatus = &chosen[0]
	}
	return d, nil
}

// imperative and past say what is done, to people.
func (d decision) imperative() string {
	if d.UserStatus == nil {
		return "comment on"
	}
	return verbs[*d.UserStatus]
}

// verbs are what the flags call a decision; a comment alone is none.
var verbs = map[v1alpha1.UserStatus]string{
	v1alpha1.UserStatusMuted: "mute", v1alpha1.UserStatusActive: "confirm", v1alpha1.UserStatusOpen: "reopen",
	"": "comment",
}

// verb is the decision in a word.
func (d decision) verb() string { return verbs[ptr.Deref(d.UserStatus, "")] }

// set is the decision as an operation has it.
func (d decision) set() *v1alpha1.OperationDecision {
	return &v1alpha1.OperationDecision{
		UserStatus: ptr.Deref(d.UserStatus, ""), Reason: ptr.Deref(d.Reason, ""),
		Comments: d.Comments, ExpiresAt: d.ExpiresAt,
	}
}

func (d decision) past() string {
	if d.UserStatus == nil {
		return "commented"
	}
	return map[v1alpha1.UserStatus]string{
		v1alpha1.UserStatusMuted: "muted", v1alpha1.UserStatusActive: "confirmed", v1alpha1.UserStatusOpen: "reopened",
	}[*d.UserStatus]
}

// verdict is what people said of a finding.
type verdict struct{ findingstate.Standing }

func verdictOf(f *v1alpha1.Finding) verdict { return verdict{findingstate.StandingOf(f)} }

// String says it to people.
func (v verdict) String() string {
	switch {
	case v.Stale:
		return string(v.UserStatus) + ", stale"
	case v.UserStatus == v1alpha1.UserStatusOpen && v.Triage.ExpiresAt != nil:
		return "open, ended"
	}
	return string(v.UserStatus)
}

// changes reports whether the decision makes a difference.
func (d decision) changes(v verdict) bool { return len(d.Changes(v.Standing)) > 0 }

// patch turns the finding of that very resourceVersion into what was decided. It names only
// what differs, and the facts that were decided upon.
func (d decision) patch(v verdict, resourceVersion string) (client.Patch, error) {
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": resourceVersion},
		"spec":     map[string]any{"triage": d.Changes(v.Standing)},
	})
	return client.RawPatch(types.MergePatchType, data), err
}

// becomes says in a word what the decision makes of a verdict.
func (d decision) becomes(v verdict) string {
	changed := d.Changes(v.Standing)
	has := func(member string) bool { _, has := changed[member]; return has }
	status := v.UserStatus
	if d.UserStatus != nil {
		status = *d.UserStatus
	}
	switch {
	case status != v.UserStatus:
		return string(status)
	case has("basis"):
		return string(status) + " again"
	case has("reason") || has("expiresAt"):
		return string(status) + ", otherwise"
	case has("comments"):
		return string(status) + ", commented"
	}
	return string(status)
}
