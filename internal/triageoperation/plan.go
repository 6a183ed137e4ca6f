package triageoperation

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// Outcome is what came of one finding of an operation.
type Outcome byte

// The outcomes, as a part records them.
const (
	Changed    Outcome = 'c'
	Unchanged  Outcome = 'u'
	Conflicted Outcome = 'x'
	Failed     Outcome = 'f'
)

// Author is what spec.triage.by holds of what the operation decides.
func Author(operation string) string { return v1alpha1.OperationAuthorPrefix + operation }

// Step is what is to be done about one finding.
type Step struct {
	// Triage are the members of spec.triage that are to be written, as a JSON merge patch has them; empty: nothing is.
	Triage map[string]any
	// Outcome once that is written.
	Outcome Outcome
	// Why the finding is left alone, where it is.
	Why string
}

// Patch is the merge patch of the finding with that resource version.
func (s *Step) Patch(resourceVersion string) ([]byte, error) {
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": resourceVersion},
		"spec":     map[string]any{"triage": s.Triage},
	})
}

// Plan says what the operation does about a finding as it is now. begun says that the operation may have decided about
// it already, since nobody knows how far it came: it has the same outcome then, and changes nothing twice.
func Plan(operation *v1alpha1.TriageOperation, entry *Entry, finding *v1alpha1.Finding, begun bool) Step {
	author := Author(operation.Name)
	switch {
	case hasDecided(operation, finding):
		return Step{Outcome: Changed}
	case Digest(&finding.Spec.Triage) != entry.Digest:
		if finding.Spec.Triage.By == author {
			return Step{Outcome: Changed}
		}
		return Step{Outcome: Conflicted, Why: meanwhile(finding.Spec.Triage.By)}
	case entry.Unknown:
		return Step{Outcome: Failed, Why: "there was no room to keep the decision that it had"}
	}
	changes := changesOf(operation, entry, finding)
	if len(changes) == 0 {
		return Step{Outcome: Unchanged}
	}
	if begun && finding.Generation != entry.Generation { // somebody may have given back by hand what the operation changed
		return Step{Outcome: Conflicted, Why: "it was changed while the operation was interrupted"}
	}
	changes["by"] = author
	return Step{Triage: changes, Outcome: Changed}
}

// hasDecided reports whether the history tells that the operation has decided about the finding, whoever has since. An
// earlier operation may have had the name.
func hasDecided(operation *v1alpha1.TriageOperation, finding *v1alpha1.Finding) bool {
	selected := operation.Status.SelectedAt
	return slices.ContainsFunc(finding.Status.Transitions, func(t v1alpha1.Transition) bool {
		return t.Type == v1alpha1.TransitionTriaged && t.By == Author(operation.Name) &&
			(selected == nil || !t.At.Before(selected))
	})
}

func meanwhile(by string) string {
	if by == "" {
		by = "somebody"
	}
	return fmt.Sprintf("%.200s decided about it in the meantime", by)
}

func changesOf(operation *v1alpha1.TriageOperation, entry *Entry, finding *v1alpha1.Finding) map[string]any {
	if entry.Set != nil {
		return restore(*entry.Set, finding.Spec.Triage)
	}
	standing := findingstate.StandingOf(finding)
	standing.Facts = entry.Facts // what was seen counts
	return decision(operation.Spec.Set).Changes(standing)
}

// decision reads what the operation sets, as a PATCH over REST would.
func decision(set *v1alpha1.OperationDecision) findingstate.Decision {
	var d findingstate.Decision
	if set == nil {
		return d
	}
	d.Comments = set.Comments
	if set.UserStatus != "" {
		d.UserStatus = &set.UserStatus
	}
	if set.Reason != "" {
		d.Reason = &set.Reason
	}
	d.ExpiresAt = set.ExpiresAt
	return d
}

// restore is what turns one decision into another, its author aside.
func restore(to, from v1alpha1.FindingTriage) map[string]any {
	changes := map[string]any{}
	set := func(name string, differs bool, value any, none bool) {
		switch {
		case !differs:
		case none:
			changes[name] = nil
		default:
			changes[name] = value
		}
	}
	if to.UserStatus == "" {
		to.UserStatus = v1alpha1.UserStatusOpen
	}
	set("userStatus", to.UserStatus != from.UserStatus, to.UserStatus, false)
	set("reason", to.Reason != from.Reason, to.Reason, to.Reason == "")
	set("expiresAt", !to.ExpiresAt.Equal(from.ExpiresAt), to.ExpiresAt, to.ExpiresAt == nil)
	set("comments", to.Comments != from.Comments, to.Comments, to.Comments == "")
	set("basis", to.Basis != from.Basis, to.Basis, to.Basis == "")
	return changes
}

// WouldChange reports whether the operation changes the finding, if nobody does before.
func WouldChange(operation *v1alpha1.TriageOperation, entry *Entry, finding *v1alpha1.Finding) bool {
	step := Plan(operation, entry, finding, false)
	return len(step.Triage) > 0
}

// Undo returns what an undo of the operation does about the finding that the entry is of: it gives back what was there
// before. now is the finding as it is; nil: it does not exist. One that is no longer the operation's stays as it is.
func Undo(operation string, entry *Entry, now *v1alpha1.Finding) Entry {
	before := entry.before()
	undone := Entry{Finding: entry.Finding, Set: &before, Unknown: entry.Lost}
	if now != nil && now.Spec.Triage.By == Author(operation) {
		undone.Digest, undone.Before = Digest(&now.Spec.Triage), now.Spec.Triage.DeepCopy()
		undone.Generation = now.Generation
	}
	return undone
}
