package sarif

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Sentences of Run.Notes.
const (
	NoteRuleIndex    = "rule index out of range or of another rule: looked up by id"
	NoteRuleConflict = "ruleId and rule.id differ: ruleId was taken"
	NoteUnknownRule  = "the file does not describe the rule"
	NoteNoLocation   = "no location in a file"
	NoteSuppression  = "unknown status of a suppression: not suppressed"
)

func normalise(run *wireRun, sourceRoot string, expanded *budget) Run {
	n := &normaliser{
		wire:     run,
		rules:    newRuleBook(run),
		paths:    newPathBook(run, sourceRoot, expanded),
		notes:    map[string]int{},
		ratings:  ratingsOf(string(run.tool.Driver.Name)),
		expanded: expanded,
	}
	out := Run{
		Tool:         strings.TrimSpace(string(run.tool.Driver.Name)),
		ToolVersion:  FirstOf(string(run.tool.Driver.SemanticVersion), string(run.tool.Driver.Version)),
		AutomationID: strings.TrimSpace(string(run.automation.ID)),
		StartedAt:    startedAt(run.invocations),
		Scanned:      n.scanned(),
		Total:        len(run.results),
		Notes:        n.notes,
	}
	for _, p := range run.provenance {
		out.Commit = FirstOf(out.Commit, string(p.RevisionID))
		out.Repository = FirstOf(out.Repository, string(p.RepositoryURI))
		out.Branch = FirstOf(out.Branch, string(p.Branch))
	}
	for i := range run.results {
		if !expanded.spend(0) {
			break // the caller refuses the file
		}
		result, reason := n.result(i)
		if reason != "" {
			out.Skipped = append(out.Skipped, Skip{Index: i, RuleID: result.RuleID, Reason: reason})
			continue
		}
		out.Results = append(out.Results, result)
	}
	out.Incomplete = incomplete(run, out.Skipped)
	out.Warnings = n.warnings()
	return out
}

func incomplete(run *wireRun, skipped []Skip) string {
	if !run.resultsGiven {
		return "`results` is absent or null, so the tool stopped before it reported results"
	}
	for _, invocation := range run.invocations {
		switch invocation.ExecutionSuccessful {
		case truthAbsent, truthYes:
		case truthNo:
			return "the tool reports that it failed (executionSuccessful is false)"
		case truthNeither:
			return "it is not known whether the tool succeeded (executionSuccessful is neither true nor false)"
		}
		if errs := &invocation.Execution; errs.general > 0 {
			return "the tool reports an error (a notification of level error)" + errs.because()
		}
		if invocation.unread {
			return "it is not known whether the tool succeeded (`invocations` is not a list of objects)"
		}
	}
	for _, s := range skipped {
		if s.Reason.unread() {
			return fmt.Sprintf("result %d cannot be read (%s), and may be a known one", s.Index, s.Reason)
		}
	}
	return ""
}

func startedAt(invocations []wireInvocation) time.Time {
	var first time.Time
	for _, invocation := range invocations {
		t, err := time.Parse(time.RFC3339, string(invocation.StartTimeUTC))
		if err == nil && (first.IsZero() || t.Before(first)) {
			first = t.UTC()
		}
	}
	return first
}

type normaliser struct {
	wire  *wireRun
	rules *ruleBook
	paths *pathBook
	notes map[string]int
	// ratings define how to read the tool's levels.
	ratings ratings
	// expanded bounds the total size of expanded paths and messages.
	expanded *budget
}

func (n *normaliser) result(index int) (Result, SkipReason) {
	wire := n.wire.results[index]
	out := Result{Index: index}
	if wire.notAnObject {
		return out, SkipNotAnObject
	}
	if wire.tooLarge {
		return out, SkipTooLarge
	}
	rule, id, notes, ok := n.rules.of(wire)
	out.Rule, out.RuleID = rule, id
	if reason := notAFinding(wire); reason != "" {
		return out, reason
	}
	if !ok {
		return out, SkipRuleIndex
	}
	out.Message = n.message(wire.Message, rule.messages)
	if id == "" && strings.TrimSpace(out.Message) == "" {
		return out, SkipEmpty
	}
	for _, note := range notes {
		n.notes[note]++
	}
	out.Level = n.rules.level(wire, rule, id)
	out.Location, out.Related = n.places(wire)
	out.Message = n.paths.withoutUsers(out.Message, wire.Locations)
	if out.Location.Path == "" {
		n.notes[NoteNoLocation]++
	}
	out.Fingerprints = fingerprints(wire)
	out.Fixes = fixes(wire.Fixes)
	out.CWEs = resultCWEs(wire, rule)
	out.Suppression = n.suppression(wire.Suppressions)
	out.TaggedSecret = tagged(wire.Properties.Tags)
	n.addToolFacts(&out, wire)
	out.Detail = n.detail(&out, wire)
	return out, ""
}

// addToolFacts adds what the tool reports besides rule and location: the severity in its own words, and the
// vulnerability and package.
func (n *normaliser) addToolFacts(out *Result, wire *wireResult) {
	rule := out.Rule
	out.Score = score(slices.Concat([]string{string(wire.Properties.SecuritySeverity), rule.securitySeverity},
		rule.cvss)...)
	word, given := toolSeverity(wire, rule, out.Message), n.rules.given(wire, rule, out.RuleID)
	out.ToolSeverity = FirstOf(word, given)
	out.Severity = n.ratings.severity(rated{
		securitySeverities: []string{string(wire.Properties.SecuritySeverity), rule.securitySeverity},
		word:               word, score: out.Score, given: given, level: out.Level,
	})
	out.Endpoints = n.endpoints(wire, out.Message)
	out.Package = packageOf(wire, rule, out.RuleID, out.Message)
	out.Vulnerability = vulnerabilityOf(rule, out.RuleID, out.Message, out.Package)
	if len(wire.Locations) > 0 {
		for _, l := range wire.Locations[0].LogicalLocations {
			logical := Logical{Name: string(l.Name), FullyQualifiedName: string(l.FullyQualifiedName), Kind: string(l.Kind)}
			if logical.Name == "" && logical.FullyQualifiedName == "" {
				logical.Reference = l.Index.value(-1) + 1
			}
			out.Logical = append(out.Logical, logical)
		}
	}
}

// notAFinding returns why the result's kind or baseline state makes it no finding.
func notAFinding(wire *wireResult) SkipReason {
	switch {
	case wire.Kind == "pass":
		return SkipPass
	case wire.Kind == "notapplicable":
		return SkipNotApplicable
	case wire.BaselineState == "absent":
		return SkipAbsentInBaseline
	}
	return ""
}

// suppression returns nil unless the result is suppressed and all suppressions are accepted; no status means accepted.
// An empty list means that the tool looked for suppressions and found none. The first one with a justification counts.
func (n *normaliser) suppression(list []wireSuppression) *Suppression {
	var out *Suppression
	for _, s := range list {
		switch s.Status {
		case "", statusAccepted:
		case statusRejected, statusUnderReview:
			return nil
		case statusUnknown:
			n.notes[NoteSuppression]++
			return nil
		}
		why := strings.TrimSpace(string(s.Justification))
		if out == nil || out.Justification == "" && why != "" {
			out = &Suppression{InSource: s.Kind == "insource", Justification: why}
		}
	}
	return out
}

// maxPlaces bounds how many locations of one result are read, since a code flow can have thousands of steps.
const maxPlaces = 64

func (n *normaliser) places(wire *wireResult) (Location, []Location) {
	var first Location
	var related []Location
	type spot struct {
		path string
		line int32
	}
	seen := map[spot]bool{}
	looked := 0
	add := func(w wireLocation, primary bool) {
		if looked++; looked > maxPlaces {
			return
		}
		location := n.location(w.PhysicalLocation)
		key := spot{location.Path, location.Line}
		if location.Path == "" || seen[key] {
			return
		}
		seen[key] = true
		if primary && first.Path == "" {
			first = location
			return
		}
		related = append(related, location)
	}
	for _, l := range wire.Locations {
		add(l, true)
	}
	for _, l := range wire.RelatedLocations {
		add(l, false)
	}
	for _, flow := range wire.CodeFlows {
		for _, thread := range flow.ThreadFlows {
			for _, step := range thread.Locations {
				add(step.Location, false)
			}
		}
	}
	if first.Path == "" && len(wire.Locations) > 0 {
		// A region without a file still has the line.
		first = n.location(wire.Locations[0].PhysicalLocation)
	}
	return first, related
}

func (n *normaliser) location(w wirePhysicalLocation) Location {
	return Location{
		Path:    n.paths.path(w.ArtifactLocation),
		Line:    int32(w.Region.StartLine.value(0)),   //nolint:gosec // integer is an int32
		Column:  int32(w.Region.StartColumn.value(0)), //nolint:gosec // integer is an int32
		Snippet: string(w.Region.Snippet.Text),
		Context: string(w.ContextRegion.Snippet.Text),
	}
}

func fingerprints(wire *wireResult) map[string]string {
	if len(wire.Fingerprints)+len(wire.PartialFingerprints) == 0 {
		return nil
	}
	out := make(map[string]string, len(wire.Fingerprints)+len(wire.PartialFingerprints))
	for name, value := range wire.PartialFingerprints {
		out[name] = string(value)
	}
	for name, value := range wire.Fingerprints {
		out[name] = string(value)
	}
	return out
}

func fixes(list []wireFix) []Fix {
	var out []Fix
	for _, f := range list {
		fix := Fix{Description: FirstOf(string(f.Description.Text), string(f.Description.Markdown))}
		for _, change := range f.ArtifactChanges {
			for _, replacement := range change.Replacements {
				fix.Inserted = append(fix.Inserted, string(replacement.InsertedContent.Text))
			}
		}
		out = append(out, fix)
	}
	return out
}

// message fills in the arguments. A message without arguments is left alone, because tools then write plain braces,
// contrary to the standard.
func (n *normaliser) message(m wireMessage, strs map[string]string) string {
	out := FirstOf(string(m.Text), string(m.Markdown))
	if out == "" && m.ID != "" {
		out = strs[string(m.ID)]
		n.expanded.spend(max(0, len(out)-spareMessage)) // it is searched for facts again
	}
	if len(m.Arguments) == 0 {
		return out
	}
	pairs := make([]string, 0, 2*len(m.Arguments)+4)
	pairs = append(pairs, "{{", "{", "}}", "}")
	for i, argument := range m.Arguments {
		pairs = append(pairs, fmt.Sprintf("{%d}", i), string(argument))
	}
	filled := &filledText{}
	// The error means that the text is full; what fits is kept.
	_, _ = strings.NewReplacer(pairs...).WriteString(filled, out)
	n.expanded.spend(filled.Len())
	return strings.ToValidUTF8(filled.String(), "")
}

// filledText accepts at most maxText bytes.
type filledText struct{ strings.Builder }

var errFull = errors.New("the text is full")

func (t *filledText) Write(p []byte) (int, error) { return t.WriteString(string(p)) }

func (t *filledText) WriteString(s string) (int, error) {
	room := maxText - t.Len()
	if len(s) > room {
		t.Builder.WriteString(s[:room])
		return room, errFull
	}
	return t.Builder.WriteString(s)
}

// FirstOf returns the first of the values that is not blank; "" if all are.
func FirstOf(values ...string) string {
	for _, v := range values {
		if strings.TrimSpace(v) != "" {
			return v
		}
	}
	return ""
}
