package importer

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"slices"

	appsecv1alpha1 "github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/internal/sarif"
)

// Action is what an import does to a finding.
type Action string

// The actions.
const (
	ActionCreate Action = "create"
	ActionUpdate Action = "update"
	ActionReopen Action = "reopen"
	ActionClose  Action = "close"
	ActionKeep   Action = "keep"
)

// change is an action on one finding.
type change struct {
	action Action
	name   string
	// spec to apply. The triage is empty.
	spec appsecv1alpha1.FindingSpec
	// before is the finding that is there; nil for create.
	before *appsecv1alpha1.Finding
}

// plan is the difference between what is there and what a scan found.
type plan struct {
	// changes by name; none is ActionKeep.
	changes []change
	// open is the number of findings there that are not closed.
	open int
	// unchanged is the number of results whose finding says the same already.
	unchanged int
	// toClose is the number of findings that the scan no longer reports, closed or not as
	// the batch is complete or not.
	toClose int
}

// reported is a result with its identity.
type reported struct {
	fingerprints.Identity
	result *sarif.Result
	spec   appsecv1alpha1.FindingSpec
}

// identify names the results of a batch. It returns apart those that are the same in
// everything as one of the others.
func identify(c *scanContext, b *Batch) (out []reported, duplicates []*sarif.Result) {
	scope := fingerprints.Scope{Repository: c.repository, Project: c.project, Tool: c.tool, Category: string(c.category)}
	out = make([]reported, 0, len(b.Results))
	for i, identity := range b.identities(scope) {
		r := &b.Results[i]
		if identity.Duplicate {
			duplicates = append(duplicates, r)
			continue
		}
		out = append(out, reported{Identity: identity, result: r, spec: c.spec(r)})
	}
	slices.SortFunc(out, func(a, b reported) int { return cmp.Compare(a.Name, b.Name) })
	return out, duplicates
}

// identities of the results, in their order.
func (b *Batch) identities(scope fingerprints.Scope) []fingerprints.Identity {
	inputs := make([]fingerprints.Result, len(b.Results))
	for i := range b.Results {
		r := &b.Results[i]
		inputs[i] = fingerprints.Result{
			Rule: r.RuleID, Path: r.Location.Path, Fingerprints: r.Fingerprints,
			Message: r.Message, Snippet: r.Location.Snippet,
			Line: r.Location.Line, Column: r.Location.Column, Digest: digest(r),
		}
	}
	return fingerprints.Identify(scope, inputs)
}

// digest of what a file says of a result. The rule's texts are left out: the rule is the
// same wherever its id is.
func digest(r *sarif.Result) [32]byte {
	c := *r
	c.Index, c.Rule = 0, nil
	encoded, err := json.Marshal(c)
	if err != nil {
		panic("a result has no member that JSON cannot encode: " + err.Error())
	}
	return sha256.Sum256(encoded)
}

// diff works out what to write. It is a pure function of its arguments, whatever their order.
func diff(c *scanContext, results []reported, there []appsecv1alpha1.Finding, complete bool) plan {
	existing := make(map[string]*appsecv1alpha1.Finding, len(there))
	var p plan
	for i := range there {
		existing[there[i].Name] = &there[i]
		if there[i].Spec.Closed == nil {
			p.open++
		}
	}
	names := match(results, existing)
	for i := range results {
		switch ch := changeFor(names[i], results[i].spec, existing[names[i]]); ch.action {
		case ActionKeep:
			p.unchanged++
		default:
			p.changes = append(p.changes, ch)
		}
		delete(existing, names[i])
	}
	for name, finding := range existing {
		if finding.Spec.Closed != nil {
			continue
		}
		p.toClose++
		if complete {
			p.changes = append(p.changes, closing(c, name, finding))
		}
	}
	slices.SortFunc(p.changes, func(a, b change) int { return cmp.Compare(a.name, b.name) })
	return p
}

func changeFor(name string, spec appsecv1alpha1.FindingSpec, before *appsecv1alpha1.Finding) change {
	ch := change{action: ActionCreate, name: name, spec: spec, before: before}
	if before == nil {
		return ch
	}
	// When a finding was first seen never changes, nor may it be added.
	ch.spec.DetectedAt = before.Spec.DetectedAt
	switch {
	case before.Spec.Closed != nil:
		ch.action = ActionReopen // by leaving `closed` out of the whole set of facts
	case sameFacts(&spec, &before.Spec):
		ch.action = ActionKeep
	default:
		ch.action = ActionUpdate
	}
	return ch
}

// closing keeps every fact as it is: the scan has nothing new to say but that it is gone.
func closing(c *scanContext, name string, finding *appsecv1alpha1.Finding) change {
	spec := *finding.Spec.DeepCopy()
	spec.Triage = appsecv1alpha1.FindingTriage{}
	spec.Closed = &appsecv1alpha1.FindingClosure{At: c.startedAt, ScanID: c.scanID}
	return change{action: ActionClose, name: name, spec: spec, before: finding}
}

// match finds for each result the name of its finding. A name that several could bear goes to
// the one that says what the finding says.
func match(results []reported, existing map[string]*appsecv1alpha1.Finding) []string {
	identities := make([]fingerprints.Identity, len(results))
	for i := range results {
		identities[i] = results[i].Identity
	}
	by := func(same func(a, b *appsecv1alpha1.FindingSpec) bool) func(int, string) bool {
		return func(i int, name string) bool { return same(&results[i].spec, &existing[name].Spec) }
	}
	recorded := func(name string) bool { return existing[name] != nil }
	return fingerprints.Match(identities, recorded, by(sameFacts), by(sameText))
}

func sameText(a, b *appsecv1alpha1.FindingSpec) bool {
	return a.Details.Title == b.Details.Title && a.Details.Description == b.Details.Description
}
