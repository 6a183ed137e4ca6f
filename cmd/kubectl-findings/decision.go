package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// decision is what is to be said of findings. A nil member stays as it is. Who says it is not
// in it: the API server puts the name of whoever sends the request.
type decision struct {
	userStatus *v1alpha1.UserStatus
	comment    *string
}

// decide reads the flags: one of the three, or a comment, or both.
func decide(mute, confirm, reopen bool, comment *string) (decision, error) {
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
		return decision{}, errors.New("--mute, --confirm and --reopen exclude one another: give one")
	case len(chosen) == 0 && comment == nil:
		return decision{}, errors.New("there is nothing to say: give --mute, --confirm or --reopen, or --comment alone to leave the decision as it is")
	}
	d := decision{comment: comment}
	if len(chosen) == 1 {
		d.userStatus = &chosen[0]
	}
	return d, nil
}

// imperative and past say what is done, to people.
func (d decision) imperative() string {
	if d.userStatus == nil {
		return "comment on"
	}
	return map[v1alpha1.UserStatus]string{
		v1alpha1.UserStatusMuted: "mute", v1alpha1.UserStatusActive: "confirm", v1alpha1.UserStatusOpen: "reopen",
	}[*d.userStatus]
}

func (d decision) past() string {
	if d.userStatus == nil {
		return "commented"
	}
	return map[v1alpha1.UserStatus]string{
		v1alpha1.UserStatusMuted: "muted", v1alpha1.UserStatusActive: "confirmed", v1alpha1.UserStatusOpen: "reopened",
	}[*d.userStatus]
}

// verdict is what people said of a finding.
type verdict struct {
	userStatus v1alpha1.UserStatus
	comment    string
}

func verdictOf(f *v1alpha1.Finding) verdict {
	return verdict{findingstate.UserStatus(&f.Spec), f.Spec.Triage.Comments}
}

// after is the verdict that the decision makes of another.
func (d decision) after(v verdict) verdict {
	if d.userStatus != nil {
		v.userStatus = *d.userStatus
	}
	if d.comment != nil {
		v.comment = *d.comment
	}
	return v
}

// changes reports whether the decision makes a difference.
func (d decision) changes(v verdict) bool { return d.after(v) != v }

// patch turns the finding of that very resourceVersion into what was decided. It names only
// what differs.
func (d decision) patch(v verdict, resourceVersion string) (client.Patch, error) {
	triage := map[string]any{}
	after := d.after(v)
	if after.userStatus != v.userStatus {
		triage["userStatus"] = after.userStatus
	}
	if after.comment != v.comment {
		triage["comments"] = after.comment
	}
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": resourceVersion},
		"spec":     map[string]any{"triage": triage},
	})
	return client.RawPatch(types.MergePatchType, data), err
}

// becomes says in a word what the decision makes of a verdict.
func (d decision) becomes(v verdict) string {
	after := d.after(v)
	switch {
	case after.userStatus != v.userStatus:
		return string(after.userStatus)
	case after.comment != v.comment:
		return fmt.Sprintf("%s, commented", after.userStatus)
	}
	return string(after.userStatus)
}
