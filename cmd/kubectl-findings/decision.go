package main

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/apitime"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// decision is the triage to write to findings. A nil field keeps the old value. The author is not part of it, because
// the API server records the user who sends the request.
type decision struct{ findingstate.Decision }

// wording names what happens to findings: verb is one word, imperative goes before a number of findings, and past
// describes what happened to them.
type wording struct{ verb, imperative, past string }

// decisionWords names each decision in the words of the flags; the empty status means only a comment.
var decisionWords = map[v1alpha1.UserStatus]wording{
	v1alpha1.UserStatusMuted:  {"mute", "mute", "muted"},
	v1alpha1.UserStatusActive: {"confirm", "confirm", "confirmed"},
	v1alpha1.UserStatusOpen:   {"reopen", "reopen", "reopened"},
	"":                        {"comment", "comment on", "commented"},
}

func (d decision) wording() wording { return decisionWords[ptr.Deref(d.UserStatus, "")] }

// set returns the decision in the form of an operation.
func (d decision) set() *v1alpha1.OperationDecision {
	return &v1alpha1.OperationDecision{
		UserStatus: ptr.Deref(d.UserStatus, ""), Reason: ptr.Deref(d.Reason, ""),
		Comments: d.Comments, ExpiresAt: d.ExpiresAt,
	}
}

// verdict is the triage of a finding or an issue.
type verdict struct{ findingstate.Standing }

func verdictOf(f *v1alpha1.Finding) verdict { return verdict{findingstate.StandingOf(f)} }

// openEnded is the verdict of a finding whose decision has ended.
const openEnded = "open, ended"

// String returns the verdict in words for users.
func (v verdict) String() string {
	switch {
	case v.Stale:
		return string(v.UserStatus) + ", stale"
	case v.UserStatus == v1alpha1.UserStatusOpen && v.Triage.ExpiresAt != nil:
		return openEnded
	}
	return string(v.UserStatus)
}

// changes reports whether the decision changes the verdict.
func (d decision) changes(v verdict) bool {
	return len(d.Changes(v.Standing, apitime.Now())) > 0
}

// patch returns the patch that applies the decision to the object at that resourceVersion. It contains only what
// differs, and the facts that the decision is based on.
func (d decision) patch(v verdict, resourceVersion string) (client.Patch, error) {
	triage := d.Changes(v.Standing, apitime.Now())
	data, err := kube.MergePatch(resourceVersion, "spec", map[string]any{"triage": triage})
	return client.RawPatch(types.MergePatchType, data), err
}

// becomes returns in a few words the verdict after the decision.
func (d decision) becomes(v verdict) string {
	changed := d.Changes(v.Standing, apitime.Now())
	has := func(member string) bool { _, has := changed[member]; return has }
	status := v.UserStatus
	if d.UserStatus != nil {
		status = *d.UserStatus
	}
	word := string(status)
	if status != v.UserStatus {
		return word
	}
	if has("basis") {
		word += " again"
	}
	switch {
	case has("reason") || has("expiresAt"):
		return word + ", with other terms"
	case has("comments"):
		return word + ", commented"
	}
	return word
}
