package importer

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"slices"

	appsecv1alpha1 "github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/internal/recognition"
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
	// because says how the finding was recognised, where not by everything; empty else.
	because string
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
	// recognised counts the results whose finding was recognised by a rung beyond the first, and
	// doubtful those of them that may be another problem of the same kind.
	recognised map[recognition.Rung]int
	doubtful   int
}

// reported is a result with the facts that it makes.
type reported struct {
	result *sarif.Result
	spec   appsecv1alpha1.FindingSpec
	// index in the batch.
	index int
}

// report makes facts of the results of a batch. It returns apart those that are the same in
// everything as one of the others.
func report(c *scanContext, b *Batch) (out []reported, duplicates []*sarif.Result) {
	out = make([]reported, 0, len(b.Results))
	seen := make(map[[32]byte]bool, len(b.Results))
	for i := range b.Results {
		r := &b.Results[i]
		if d := digest(r); seen[d] {
			duplicates = append(duplicates, r)
			continue
		} else {
			seen[d] = true
		}
		out = append(out, reported{result: r, spec: c.spec(r), index: i})
	}
	return out, duplicates
}

// scope of the names of a batch's findings.
func (c *scanContext) scope() fingerprints.Scope {
	return fingerprints.Scope{Repository: c.repository, Project: c.project, Tool: c.tool, Category: string(c.category)}
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

// digest of what a file says of a result, without what is derived from it. The rule's texts are
// left out: the rule is the same wherever its id is. Names depend on the order of digests, so
// what is digested stays as it is.
func digest(r *sarif.Result) [32]byte {
	encoded, err := json.Marshal(struct {
		Index        int
		RuleID       string
		Rule         *sarif.Rule
		Level        string
		Severity     appsecv1alpha1.Level
		Message      string
		Location     sarif.Location
		Related      []sarif.Location
		Fingerprints map[string]string
		Fixes        []sarif.Fix
		CWEs         []string
	}{
		RuleID: r.RuleID, Level: r.Level, Severity: r.Severity, Message: r.Message, Location: r.Location,
		Related: r.Related, Fingerprints: r.Fingerprints, Fixes: r.Fixes, CWEs: r.CWEs,
	})
	if err != nil {
		panic("a result has no member that JSON cannot encode: " + err.Error())
	}
	return sha256.Sum256(encoded)
}

// diff works out what to write. It is a pure function of its arguments, whatever their order.
func diff(c *scanContext, b *Batch, results []reported, there []appsecv1alpha1.Finding, complete bool) plan {
	p := plan{recognised: map[recognition.Rung]int{}}
	matched := recognise(c, b, results, there)
	reported := make(map[string]bool, len(results))
	for i := range results {
		ch := changeFor(c, &results[i], &matched[i])
		reported[ch.name] = true
		p.count(&matched[i])
		if ch.action == ActionKeep {
			p.unchanged++
		} else {
			p.changes = append(p.changes, ch)
		}
	}
	for i := range there {
		finding := &there[i]
		if finding.Spec.Closed != nil {
			continue
		}
		p.open++
		if reported[finding.Name] {
			continue
		}
		p.toClose++
		if complete {
			p.changes = append(p.changes, closing(c, finding.Name, finding))
		}
	}
	slices.SortFunc(p.changes, func(a, b change) int { return cmp.Compare(a.name, b.name) })
	return p
}

func (p *plan) count(m *match) {
	if m.before == nil || m.rung == recognition.Unchanged {
		return
	}
	p.recognised[m.rung]++
	if m.doubt != "" {
		p.doubtful++
	}
}

func changeFor(c *scanContext, r *reported, m *match) change {
	ch := change{action: ActionCreate, name: m.name, spec: r.spec, before: m.before}
	if m.before == nil {
		return ch
	}
	before := &m.before.Spec
	ch.because = m.because()
	// When a finding was first seen never changes, nor may it be added.
	ch.spec.DetectedAt = before.DetectedAt
	ch.spec.Doubt = doubtOf(c, m)
	switch {
	case before.Closed != nil:
		ch.action = ActionReopen // by leaving `closed` out of the whole set of facts
	case m.doubt == "" && sameFacts(&ch.spec, before):
		ch.action = ActionKeep
	default:
		ch.action = ActionUpdate
	}
	return ch
}

// doubtOf is the doubt that the finding carries from now on: only of a decision can one doubt
// that it belongs there.
func doubtOf(c *scanContext, m *match) *appsecv1alpha1.FindingDoubt {
	before := &m.before.Spec
	if !decided(&before.Triage) {
		return nil
	}
	if m.doubt != "" {
		return &appsecv1alpha1.FindingDoubt{Reason: string(m.doubt), ScanID: c.scanID}
	}
	return before.Doubt
}

func decided(t *appsecv1alpha1.FindingTriage) bool {
	return t.UserStatus != "" && t.UserStatus != appsecv1alpha1.UserStatusOpen
}

// closing keeps every fact as it is: the scan has nothing new to say but that it is gone.
func closing(c *scanContext, name string, finding *appsecv1alpha1.Finding) change {
	spec := *finding.Spec.DeepCopy()
	spec.Triage = appsecv1alpha1.FindingTriage{}
	spec.Closed = &appsecv1alpha1.FindingClosure{At: c.startedAt, ScanID: c.scanID}
	return change{action: ActionClose, name: name, spec: spec, before: finding}
}
