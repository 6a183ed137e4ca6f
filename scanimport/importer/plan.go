package importer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/scanimport/recognition"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
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
	// ActionRename changes the tool's name in a finding from a former one to the current one, and nothing else.
	ActionRename Action = "rename"
)

// change is an action on one finding.
type change struct {
	action Action
	name   string
	// spec is the spec to apply, without triage.
	spec v1alpha1.FindingSpec
	// before is the existing finding; nil for create. In a plan it is a copy, so that the plan does not keep the list.
	before *v1alpha1.Finding
	// because explains how the finding was recognised; empty if everything agrees.
	because string
	// doubt is why it may be another finding; empty if certain, or if the doubt is stored already.
	doubt recognition.Doubt
}

// plan is the difference between the existing findings and the results of a scan.
type plan struct {
	// changes are sorted by name; there is no ActionKeep.
	changes []change
	// open is the number of existing findings that are not closed.
	open int
	// unchanged is the number of results whose finding is already up to date; unchangedInFiles counts those of them whose
	// finding has a file.
	unchanged, unchangedInFiles int
	// toClose is the number of open findings that the scan no longer reports. They are closed only if the batch is
	// complete.
	toClose int
	// recognised counts the results that were recognised by a later rung than the first, or with doubt; doubtful counts
	// those that may be another problem of the same kind.
	recognised map[recognition.Rung]int
	doubtful   int
	// suppressed counts the findings that the source suppresses, and unseen the suppressed results without a finding.
	suppressed int
	unseen     []*sarif.Result
	// unreadable are the results whose finding cannot be read.
	unreadable []*sarif.Result
	// renamed counts the findings that got the tool's current name, by their former one; the job's group counts them.
	// adopted counts those that had no analysis before. notAdopted holds the names of open findings without an analysis
	// that were not reported.
	renamed    map[string]int
	adopted    int
	notAdopted []string
	// elsewhere holds, by other analysis, the new results that are known there.
	elsewhere map[string]overlap
}

// overlap counts the findings of another analysis that are results of this scan; decided means that any of them has a
// triage decision.
type overlap struct {
	n       int
	decided bool
}

// reported is a result and the facts derived from it.
type reported struct {
	result *sarif.Result
	spec   v1alpha1.FindingSpec
	// index is the result's index in the batch, and batch that of the batch.
	index, batch int
}

func (r *reported) at() ResultIndex { return ResultIndex{r.batch, r.index} }

// report converts the results of a batch to facts; suppressed ones come last. It returns exact duplicates separately.
// The error is that of the context, or tells users that the facts do not fit in memory.
func report(ctx context.Context, c *scanContext, b *Batch) (out []reported, duplicates []*sarif.Result, err error) {
	all := b.All()
	out = make([]reported, 0, len(all))
	seen := make(map[fingerprints.ResultKey]bool, len(all))
	for i, r := range all {
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		key := keyOf(r)
		if seen[key] {
			duplicates = append(duplicates, r)
			continue
		}
		seen[key] = true
		spec := c.spec(r)
		if err := b.budget.share(&spec); err != nil {
			return nil, nil, err
		}
		out = append(out, reported{result: r, spec: spec, index: i})
	}
	return out, duplicates, nil
}

// scope returns the scope in which the names of a batch's findings are derived.
func (c *scanContext) scope() fingerprints.Scope {
	return fingerprints.Scope{Repository: c.repository, Project: c.project, Tool: c.tool, Category: string(c.category),
		Analysis: c.analysis}
}

// All returns all results; suppressed ones come last.
func (b *Batch) All() []*sarif.Result {
	out := make([]*sarif.Result, 0, len(b.Results)+len(b.Suppressed))
	for _, results := range [][]sarif.Result{b.Results, b.Suppressed} {
		for i := range results {
			out = append(out, &results[i])
		}
	}
	return out
}

// identities returns the identities of all results, in order.
func (b *Batch) identities(scope fingerprints.Scope) []fingerprints.Identity {
	all := b.All()
	inputs := make([]fingerprints.Result, len(all))
	for i, r := range all {
		inputs[i] = fingerprints.Result{
			Rule: r.RuleID, Path: r.Location.Path, Fingerprints: r.Fingerprints,
			Message: r.Message, Snippet: r.Location.Snippet,
			Line: r.Location.Line, Column: r.Location.Column,
			ResultKey: keyOf(r),
		}
	}
	return fingerprints.Identify(scope, inputs)
}

// keyOf returns the key by which duplicates are found.
func keyOf(r *sarif.Result) fingerprints.ResultKey {
	return fingerprints.ResultKey{Digest: digest(r), About: about(r), Detail: r.Detail}
}

// digest returns the digest of a result as it is in the file, without derived values. It leaves out the rule's texts,
// because the rule's id stands for them. Names depend on the order of digests, so never change what is digested: an
// added field must be omitted for results without it.
func digest(r *sarif.Result) [32]byte {
	related := slices.Clone(r.Related)
	for i := range related {
		related[i] = placeInUTF8(related[i])
	}
	encoded, err := json.Marshal(struct {
		Index        int
		RuleID       string
		Rule         *sarif.Rule
		Level        string
		Severity     v1alpha1.Level
		Message      string
		Location     sarif.Location
		Related      []sarif.Location
		Fingerprints map[string]string
		Fixes        []sarif.Fix
		CWEs         []string
		Subjects     []string `json:",omitempty"`
	}{
		RuleID: r.RuleID, Level: r.Level, Severity: r.Severity, Message: r.Message, Location: placeInUTF8(r.Location),
		Related: related, Fingerprints: r.Fingerprints, Fixes: r.Fixes, CWEs: r.CWEs,
		Subjects: subjects(r),
	})
	if err != nil {
		panic("a result has no member that JSON cannot encode: " + err.Error())
	}
	return sha256.Sum256(encoded)
}

// placeInUTF8 returns a location whose path keeps every byte in JSON; see inUTF8.
func placeInUTF8(l sarif.Location) sarif.Location {
	l.Path = inUTF8(l.Path)
	return l
}

// diff computes the changes to write. It is a pure function of its arguments, whose order does not matter.
func diff(c *scanContext, b *Batch, results []reported, k *known) plan {
	p := plan{recognised: map[recognition.Rung]int{}, renamed: map[string]int{}}
	matched := recognise(c, b, results, k)
	reported := make(map[string]bool, len(results))
	for i := range results {
		if matched[i].before == nil && results[i].spec.Suppression != nil {
			p.unseen = append(p.unseen, results[i].result)
			continue
		}
		if matched[i].name == "" {
			p.unreadable = append(p.unreadable, results[i].result)
			continue
		}
		ch := changeFor(c, &results[i], &matched[i])
		reported[ch.name] = true
		if ch.spec.Suppression != nil {
			p.suppressed++
		}
		p.count(&matched[i])
		p.add(ch)
	}
	for i := range k.findings {
		if !reported[k.findings[i].Name] {
			p.gone(c, k, &k.findings[i], b.complete())
		} else if k.findings[i].Spec.Closed == nil {
			p.open++
		}
	}
	for i := range k.others {
		// Findings under the other built-in names are left to the scan of their own job.
		if tool := k.others[i].Spec.Tool; !k.othersLater && tool != c.tool && tool == c.formerly {
			p.rename(c, k, &k.others[i])
		}
	}
	p.knownElsewhere(c.analysis, k)
	slices.SortFunc(p.changes, func(a, b change) int { return cmp.Compare(a.name, b.name) })
	return p
}

// gone plans the change for a finding that the scan does not report.
func (p *plan) gone(c *scanContext, k *known, finding *v1alpha1.Finding, complete bool) {
	switch {
	case finding.Spec.Closed == nil && finding.Spec.Analysis == c.analysis:
		p.open++
		p.toClose++
		if complete {
			p.add(closing(c, finding))
			return
		}
	case finding.Spec.Closed == nil: // it may belong to another analysis, or to a job without one
		p.notAdopted = append(p.notAdopted, finding.Name)
	}
	if finding.Spec.Tool == c.formerly && finding.Spec.Analysis != c.analysis && k.othersLater {
		return // a later job may take it over, else the last one renames it
	}
	if c.renames(finding.Spec.Tool) {
		p.rename(c, k, finding)
	}
}

// rename plans to give a finding the tool's current name, unless the plan of an earlier job does.
func (p *plan) rename(c *scanContext, k *known, finding *v1alpha1.Finding) {
	if !k.renames[finding.Name] {
		p.add(renaming(c, finding))
	}
}

func (p *plan) add(ch change) {
	if ch.action == ActionKeep {
		p.unchanged++
		if ch.before.Spec.Details.Place().FilePath != "" {
			p.unchangedInFiles++
		}
		return
	}
	if ch.before != nil {
		before := *ch.before
		ch.before = &before
		if ch.before.Spec.Analysis != ch.spec.Analysis {
			p.adopted++
		}
	}
	p.changes = append(p.changes, ch)
}

func (p *plan) count(m *match) {
	if m.before == nil || m.rung == recognition.Unchanged && m.doubt == "" {
		return
	}
	p.recognised[m.rung]++
	if m.doubt != "" {
		p.doubtful++
	}
}

func changeFor(c *scanContext, r *reported, m *match) change {
	ch := change{action: ActionCreate, name: m.name, spec: r.spec}
	if m.before == nil {
		return ch
	}
	if !m.doubted {
		ch.doubt = m.doubt
	}
	ch.spec.Evidence = keepDigests(m, ch.spec.Evidence)
	suppressed := becauseSuppressed(m.before.Spec.Suppression, ch.spec.Suppression)
	ch.because = strings.Join(distinct(m.because(), suppressed), "; ")
	ch.replaces(m.before, c.scanID)
	if ch.action == ActionUpdate && !m.addsDoubt() && sameFacts(&ch.spec, &m.before.Spec) {
		ch.action = ActionKeep
	}
	return ch
}

// becauseSuppressed describes how a suppression changed.
func becauseSuppressed(was, is *v1alpha1.FindingSuppression) string {
	switch {
	case is == nil && was != nil:
		return "no longer suppressed in the source"
	case is != nil && (was == nil || *was != *is):
		return strings.TrimSuffix("suppressed in the source: "+is.Justification, ": ")
	}
	return ""
}

// replaces rebases the change onto the finding's current state.
func (ch *change) replaces(now *v1alpha1.Finding, scanID string) {
	ch.before = now
	ch.action = ActionUpdate
	if now.Spec.Closed != nil {
		ch.action = ActionReopen // the applied facts leave out `closed`
	}
	// The time of detection is immutable, and cannot be added later.
	ch.spec.DetectedAt = now.Spec.DetectedAt
	ch.spec.Doubt = doubtOf(ch.doubt, now, scanID)
}

// doubtOf returns the doubt to store with the finding. A stored one stays without a decision, because an undo may
// restore the decision.
func doubtOf(doubt recognition.Doubt, before *v1alpha1.Finding, scanID string) *v1alpha1.FindingDoubt {
	if doubt != "" && storesDoubt(before) {
		return &v1alpha1.FindingDoubt{Reason: string(doubt), ScanID: scanID}
	}
	return before.Spec.Doubt
}

// storesDoubt reports whether a new doubt about the finding is stored: with a decision that is in force or that an undo
// may restore, because it may belong to another problem, and in place of an older doubt.
func storesDoubt(finding *v1alpha1.Finding) bool {
	return findingstate.Decided(finding) || restorable(&finding.Spec.Triage) || finding.Spec.Doubt != nil
}

// restorable reports whether an operation wrote the triage, so that its undo may restore a decision that it withdrew or
// whose end it set. If a person decides or comments afterwards, the undo skips the finding.
func restorable(t *v1alpha1.FindingTriage) bool {
	return strings.HasPrefix(t.By, v1alpha1.OperationAuthorPrefix)
}

// closing closes a finding and keeps its facts: the scan only reports that it is gone.
func closing(c *scanContext, finding *v1alpha1.Finding) change {
	ch := renaming(c, finding)
	ch.action = ActionClose
	ch.spec.Closed = &v1alpha1.FindingClosure{At: c.startedAt, ScanID: c.scanID}
	return ch
}

// renaming gives a finding the tool's current name and keeps all other facts.
func renaming(c *scanContext, finding *v1alpha1.Finding) change {
	spec := c.renamed(&finding.Spec)
	spec.Triage = v1alpha1.FindingTriage{}
	return change{action: ActionRename, name: finding.Name, spec: *spec, before: finding}
}

// renamed returns a copy of a finding's spec with the tool's current name.
func (c *scanContext) renamed(of *v1alpha1.FindingSpec) *v1alpha1.FindingSpec {
	spec := of.DeepCopy()
	if spec.Agent != nil && spec.Agent.Name == cut(spec.Tool, maxAgentName) {
		spec.Agent.Name = cut(c.tool, maxAgentName)
	}
	spec.Tool = c.tool
	return spec
}
