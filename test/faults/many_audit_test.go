package faults

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/triageoperation"
	"github.com/appsec-dev/findings-operator/test/faults/internal/rig"
)

// manyAudit checks the actions of operations and policies against the complete history of etcd: an operation decides at
// most once about a finding of its set, and only while the decision is the one it was selected with; nobody else writes
// in its name; a policy decides about no finding that a person has decided about.
type manyAudit struct {
	s          *trial
	operations map[string]*v1alpha1.TriageOperation
	sets       map[string]map[string]triageoperation.Entry
	// decisions are the latest known decisions by finding; wrote counts how often an operation has decided
	// about a finding.
	decisions map[string]v1alpha1.FindingTriage
	wrote     map[string]map[string]int
}

func newManyAudit(s *trial) *manyAudit {
	return &manyAudit{
		s: s, operations: map[string]*v1alpha1.TriageOperation{}, sets: map[string]map[string]triageoperation.Entry{},
		decisions: map[string]v1alpha1.FindingTriage{}, wrote: map[string]map[string]int{},
	}
}

func (a *manyAudit) readOperation(stored rig.Stored) error {
	if stored.Deleted {
		a.s.verdict.lose("%s %s was deleted", stored.Resource, stored.Name)
		return nil
	}
	if stored.Resource == "triageoperations" {
		var o v1alpha1.TriageOperation
		if err := json.Unmarshal(stored.Object, &o); err != nil {
			return fmt.Errorf("operation %s: %w", stored.Name, err)
		}
		a.operations[o.Name] = &o
		return nil
	}
	var part v1alpha1.TriageOperationPart
	if err := json.Unmarshal(stored.Object, &part); err != nil {
		return fmt.Errorf("part %s: %w", stored.Name, err)
	}
	entries, err := triageoperation.Decode(&part)
	if err != nil {
		return err
	}
	operation := string(part.Spec.Operation)
	if a.sets[operation] == nil {
		a.sets[operation], a.wrote[operation] = map[string]triageoperation.Entry{}, map[string]int{}
	}
	for i := range entries {
		a.sets[operation][string(entries[i].Finding)] = entries[i]
	}
	return nil
}

func (a *manyAudit) readFinding(f *v1alpha1.Finding) {
	before, known := a.decisions[f.Name]
	a.decisions[f.Name] = f.Spec.Triage
	if known && triageoperation.Digest(&before) != triageoperation.Digest(&f.Spec.Triage) {
		if operation, is := strings.CutPrefix(f.Spec.Triage.By, v1alpha1.OperationAuthorPrefix); is {
			a.decided(operation, f, &before)
		}
	}
	if f.Status.Verdict != nil && f.Status.ObservedGeneration == f.Generation && findingstate.UserStatus(f) != v1alpha1.UserStatusOpen {
		a.s.verdict.wrong("a policy decides about %s, which %s has decided about", f.Name, f.Spec.Triage.By)
	}
}

// decided compares a write of an operation with the set that limits it.
func (a *manyAudit) decided(operation string, f *v1alpha1.Finding, before *v1alpha1.FindingTriage) {
	entry, in := a.sets[operation][f.Name]
	switch o := a.operations[operation]; {
	case !in:
		a.s.verdict.wrong("operation %s decided about %s, which is not in its set", operation, f.Name)
		return
	case o == nil || !o.Spec.Commit:
		a.s.verdict.wrong("operation %s decided about %s, and nobody has committed it", operation, f.Name)
	case triageoperation.Digest(before) != entry.Digest:
		a.s.verdict.lose("operation %s overwrote what %q decided about %s after its set was made", operation, before.By, f.Name)
	}
	if a.wrote[operation][f.Name]++; a.wrote[operation][f.Name] > 1 {
		a.s.verdict.double("operation %s decided %d times about %s", operation, a.wrote[operation][f.Name], f.Name)
	}
	if entry.Set != nil {
		want, got := *entry.Set, f.Spec.Triage
		want.By, got.By = "", ""
		if triageoperation.Digest(&want) != triageoperation.Digest(&got) {
			a.s.verdict.lose("operation %s gave back %+v to %s, which had %+v", operation, got, f.Name, want)
		}
	}
}

// check compares the status of all operations, which have ended, with their actions. If an operation was interrupted
// between a write and its record, and the decision was overruled in between, the finding counts as conflicted.
func (a *manyAudit) check() {
	for name, o := range a.operations {
		status := &o.Status
		if done := len(a.wrote[name]); int(status.Changed) > done || done > int(status.Changed+status.Conflicted) {
			a.s.verdict.wrong("operation %s says that it changed %d findings, and it changed %d", name, status.Changed, done)
		}
		if sum := status.Changed + status.Unchanged + status.Conflicted + status.Failed; o.Spec.Commit &&
			status.Phase == v1alpha1.OperationCompleted && sum != status.Matched {
			a.s.verdict.wrong("operation %s has %d findings, and tells of %d", name, status.Matched, sum)
		}
	}
}
