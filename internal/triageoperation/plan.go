package triageoperation

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// Outcome is the result for one finding of an operation.
type Outcome byte

// The outcomes, as a part records them.
const (
	Changed    Outcome = 'c'
	Unchanged  Outcome = 'u'
	Conflicted Outcome = 'x'
	Failed     Outcome = 'f'
)

// Author returns the value of spec.triage.by for the operation's decisions.
func Author(operation string) string { return v1alpha1.OperationAuthorPrefix + operation }

// Step is what to do about one finding.
type Step struct {
	// Triage holds the members of spec.triage to be written, in the form of a JSON merge patch; empty if there is
	// nothing to write.
	Triage map[string]any
	// Outcome after the write.
	Outcome Outcome
	// Why the finding is not changed, if so.
	Why string
}

// Plan returns what the operation does now about the finding in its current state. mayHaveDecided means that an
// interrupted run may have decided about it already: Plan then returns the same outcome, and changes nothing twice. If
// mayHaveDecided is false, the history can name only an earlier operation of the same name.
func Plan(operation *v1alpha1.TriageOperation, entry *Entry, finding *v1alpha1.Finding, now time.Time,
	mayHaveDecided bool) Step {
	author := Author(operation.Name)
	differs := Digest(&finding.Spec.Triage) != entry.Digest
	decided := differs && finding.Spec.Triage.By == author || mayHaveDecided && hasDecided(operation, finding)
	switch {
	case decided && entry.Digest != "": // otherwise an earlier operation of the same name has decided
		return Step{Outcome: Changed}
	case entry.Absent:
		return Step{Outcome: Conflicted, Why: "it did not exist, or could not be read, when the operation selected its findings"}
	case differs && entry.Set != nil && entry.Digest == "": // it did not stand when the undo was made
		return Step{Outcome: Conflicted, Why: whoDecided(finding, "since the undone operation")}
	case differs:
		return Step{Outcome: Conflicted, Why: whoDecided(finding, "in the meantime")}
	case entry.Unknown:
		return Step{Outcome: Failed, Why: "its previous decision was too long to be kept for an undo"}
	}
	changes := changesOf(operation, entry, finding, now)
	if len(changes) == 0 {
		return Step{Outcome: Unchanged}
	}
	switch changed := finding.Generation != entry.Generation; {
	case changed && decides(operation, entry, now) && mayBeAnother(entry, finding):
		return Step{Outcome: Conflicted, Why: "a scan has changed it, and it may be another problem now"}
	case changed && mayHaveDecided: // somebody may have reverted the operation's change
		return Step{Outcome: Conflicted, Why: "it has changed since it was selected, and an earlier try may have decided about it"}
	}
	changes["by"] = author
	return Step{Triage: changes, Outcome: Changed}
}

// MayBeSkipped reports whether Plan skips the finding if a scan has changed it and it may be another problem by now. It
// reads only the finding's decision.
func MayBeSkipped(operation *v1alpha1.TriageOperation, entry *Entry, finding *v1alpha1.Finding, now time.Time) bool {
	return entry.Generation > 0 && decides(operation, entry, now) && !findingstate.Decided(finding)
}

// hasDecided reports whether the operation has decided about the finding according to its history, even if somebody
// else, perhaps another operation, has decided since. Transitions before the selection belong to an earlier operation
// of the same name.
func hasDecided(operation *v1alpha1.TriageOperation, finding *v1alpha1.Finding) bool {
	selected := operation.Status.SelectedAt
	return slices.ContainsFunc(finding.Status.Transitions, func(t v1alpha1.Transition) bool {
		return t.Type == v1alpha1.TransitionTriaged && t.By == Author(operation.Name) &&
			(selected == nil || !t.At.Before(selected))
	})
}

// decides reports whether the operation mutes or confirms the finding. A decision that an undo restores may have ended.
func decides(operation *v1alpha1.TriageOperation, entry *Entry, now time.Time) bool {
	var triage v1alpha1.FindingTriage
	if entry.Set != nil {
		triage = *entry.Set
	} else if set := operation.Spec.Set; set != nil {
		triage.UserStatus, triage.ExpiresAt = set.UserStatus, set.ExpiresAt
	}
	standing := findingstate.Standing{UserStatus: cmp.Or(triage.UserStatus, v1alpha1.UserStatusOpen), Triage: triage}
	return standing.InForce(now) != v1alpha1.UserStatusOpen
}

// mayBeAnother reports whether another problem may have taken the finding's name since the selection without making a
// decision stale, because a scan stores no doubt about a finding that nobody has ever decided about. Earlier versions
// stored none about any undecided finding, and no generation in entries.
func mayBeAnother(entry *Entry, finding *v1alpha1.Finding) bool {
	basis := entry.Facts
	if entry.Set != nil {
		basis = entry.Set.Basis
	}
	return entry.Generation > 0 && !findingstate.Decided(finding) && findingstate.MayBeAnother(basis, &finding.Spec)
}

func whoDecided(finding *v1alpha1.Finding, when string) string {
	return fmt.Sprintf("%.200s decided about it %s", cmp.Or(finding.Spec.Triage.By, "somebody"), when)
}

func changesOf(operation *v1alpha1.TriageOperation, entry *Entry, finding *v1alpha1.Finding,
	now time.Time) map[string]any {
	if entry.Set != nil {
		return restore(*entry.Set, finding.Spec.Triage)
	}
	standing := findingstate.StandingOf(finding)
	standing.Facts = entry.Facts // the decision is based on the facts at the selection
	return decision(operation.Spec.Set).Changes(standing, now)
}

// Ended reports whether the decision that the operation sets would have ended as soon as it is made.
func Ended(operation *v1alpha1.TriageOperation, now time.Time) bool {
	set := operation.Spec.Set
	return set != nil && set.ExpiresAt != nil && !set.ExpiresAt.After(now)
}

// decision converts what the operation sets, with the semantics of a PATCH over REST.
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
	if set.ExpiresAt != nil {
		d.ExpiresAt = new(v1alpha1.NewTime(set.ExpiresAt.Time)) // as it is stored
	}
	return d
}

// restore returns the patch that turns one decision into another, without the author.
func restore(to, from v1alpha1.FindingTriage) map[string]any {
	changes := map[string]any{}
	set := func(name string, differs bool, value any, none bool) {
		if differs {
			changes[name] = findingstate.OrNull(value, none)
		}
	}
	to.UserStatus = cmp.Or(to.UserStatus, v1alpha1.UserStatusOpen)
	set("userStatus", to.UserStatus != from.UserStatus, to.UserStatus, false)
	set("reason", to.Reason != from.Reason, to.Reason, to.Reason == "")
	set("expiresAt", !to.ExpiresAt.Equal(from.ExpiresAt), to.ExpiresAt, to.ExpiresAt == nil)
	set("comments", to.Comments != from.Comments, to.Comments, to.Comments == "")
	set("basis", to.Basis != from.Basis, to.Basis, to.Basis == "")
	return changes
}

// Undo returns the entry with which an undo of the operation restores the previous decision. current is the finding;
// nil if it does not exist. author is that of the operation's decisions. A finding for which the operation's decision
// no longer stands is not changed.
func Undo(entry *Entry, current *v1alpha1.Finding, author string, stands bool) Entry {
	before := entry.before()
	undone := Entry{Finding: entry.Finding, Absent: current == nil, Set: &before, Unknown: entry.Lost}
	if stands {
		undone.Digest, undone.Before = Digest(&current.Spec.Triage), current.Spec.Triage.DeepCopy()
		undone.Generation, undone.Basis = current.Generation, undeclared(current)
		// The operation has written once, so another generation means that the finding has changed since the operation
		// decided about it. It need not be a scan that has changed it: others may have decided in between, and the undo of
		// a later operation may have restored this operation's decision.
		decided := cmp.Or(before.UserStatus, v1alpha1.UserStatusOpen) != v1alpha1.UserStatusOpen
		if decided && entry.Generation > 0 && current.Spec.Triage.By == author && mayBeAnother(&undone, current) {
			undone.Generation = entry.Generation + 1
		}
	}
	return undone
}

// Restored returns the authors of the decisions that an undo has restored, by finding; none if the part is unreadable
// or not one of an undo.
func Restored(part *v1alpha1.TriageOperationPart) map[v1alpha1.ResourceName]string {
	entries, err := Decode(part)
	if err != nil {
		return nil
	}
	authors := map[v1alpha1.ResourceName]string{}
	for i, outcome := range []byte(part.Spec.Outcomes[:min(len(part.Spec.Outcomes), len(entries))]) {
		if set := entries[i].Set; set != nil && Outcome(outcome) == Changed {
			authors[entries[i].Finding] = set.By
		}
	}
	return authors
}
