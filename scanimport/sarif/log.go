package sarif

import (
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Log is the content of a file.
type Log struct {
	Runs []Run
	// Bytes is the decompressed size of the file.
	Bytes int64
}

// Run is one run of one tool.
type Run struct {
	// Tool is the driver's name; empty if missing.
	Tool string
	// ToolVersion is the driver's version; empty if missing.
	ToolVersion string
	// AutomationID is the run's automationDetails.id: the analysis and, after the last slash, the run; empty if missing.
	AutomationID string
	// Commit that was scanned; empty if missing.
	Commit string
	// Repository and Branch are the scanned repository's URI and branch; empty if missing.
	Repository, Branch string
	// StartedAt is the earliest start among the invocations; zero if missing.
	StartedAt time.Time
	// Incomplete explains why the run's results are incomplete, so that missing ones must not count as fixed; empty if
	// they are complete.
	Incomplete string
	// Warnings are errors reported by the tool that do not make the run incomplete: about single files, or about its
	// configuration.
	Warnings []string
	// Scanned holds the folders of the files that the tool reports as scanned: artifacts with the role analysisTarget, and
	// places of results that passed or are gone. It is sorted, and holds at most 10,000.
	Scanned []string
	// Total is the number of entries of `results`: len(Results) + len(Skipped).
	Total int
	// Results that are findings, in the order of the file.
	Results []Result
	// Skipped entries, in the order of the file.
	Skipped []Skip
	// Notes counts the corrections made while reading, by sentence.
	Notes map[string]int
}

// SkipReason explains why an entry of `results` is not a finding.
type SkipReason string

// The reasons.
const (
	SkipNotAnObject      SkipReason = "not an object"
	SkipEmpty            SkipReason = "neither a rule nor a message"
	SkipRuleIndex        SkipReason = "no rule id, and the index or GUID of the rule is unknown"
	SkipPass             SkipReason = "kind is pass"
	SkipNotApplicable    SkipReason = "kind is notApplicable"
	SkipTooLarge         SkipReason = "larger than 4 MiB by itself"
	SkipAbsentInBaseline SkipReason = "baselineState is absent: the tool says that it is gone"
)

// unread reports whether the content of the entry is unknown.
func (r SkipReason) unread() bool {
	return r == SkipNotAnObject || r == SkipRuleIndex || r == SkipTooLarge
}

// Skip is an entry of `results` that is not a finding.
type Skip struct {
	// Index in `results`, from 0.
	Index int
	// RuleID, if known.
	RuleID string
	Reason SkipReason
}

// Result is a finding as a tool reported it.
type Result struct {
	// Index in `results`, from 0.
	Index int
	// RuleID is the tool's own name of the rule; empty if the tool gave none.
	RuleID string
	// Rule is the file's description of the rule; never nil.
	Rule *Rule
	// Level is error, warning, note or none.
	Level string
	// Severity in this service's vocabulary.
	Severity v1alpha1.Level
	// Message with its arguments filled in.
	Message string
	// Location is the first one with a path; the zero value if there is none.
	Location Location
	// Related holds further locations, related locations, and steps of code flows, each once.
	Related []Location
	// Fingerprints by name, `fingerprints` before `partialFingerprints` of the same name.
	Fingerprints map[string]string
	// Fixes that the tool offers.
	Fixes []Fix
	// CWEs of the result and its rule, as "CWE-79", each once.
	CWEs []string
	// Score from "0.1" to "10.0"; empty if the file gives none.
	Score string
	// ToolSeverity is the severity in the tool's own word, or else the level in the file; empty if it gives neither.
	ToolSeverity string
	// Vulnerability that the result is about; nil if the file names none.
	Vulnerability *Vulnerability
	// Package that the result is about; nil if there is none.
	Package *Package
	// Endpoints that a dynamic scanner tried, each once.
	Endpoints []Endpoint
	// Logical locations of the first location, in the order of the file.
	Logical []Logical
	// Detail distinguishes results that agree in everything else; see detail. Empty: the file gives no such detail.
	Detail string
	// TaggedSecret means that one of the result's own tags is for secrets.
	TaggedSecret bool
	// Suppression of the result in its source; nil if it is not suppressed.
	Suppression *Suppression
	// Analysis of the result's run. The importer sets it; empty: none.
	Analysis string
}

// Suppression records that the source suppresses a result that the tool reports anyway.
type Suppression struct {
	// InSource means suppressed in the code, as by a comment; otherwise by a baseline or a separate list.
	InSource bool
	// Justification is that of the source; may be empty.
	Justification string
}

// Rule is a reporting descriptor.
type Rule struct {
	ID               string
	Name             string
	ShortDescription string
	FullDescription  string
	Help             string
	HelpURI          string
	// Precision is the tool's own word, for example "very-high".
	Precision string
	Tags      []string
	CWEs      []string
	// Formerly are the rule's deprecated ids that no other rule of the run has or deprecates.
	Formerly []string

	level            string
	securitySeverity string
	messages         map[string]string
	// helpMarkdown is the help in Markdown, if Help is not.
	helpMarkdown string
	// labels caches the result of labelled, ids that of identified, and namesSecret that of NamesSecret.
	labels      map[string]string
	ids         *ruleIDs
	namesSecret *bool
	// cvss are the scores that the rule gives in addition to securitySeverity, the newest version first.
	cvss []string
	// severityWord and problemSeverity are the rule's own words for the severity.
	severityWord, problemSeverity string
	// packages that the rule is about, from their package URLs.
	packages []*Package
	// deprecatedIDs are former or alternative ids of the rule.
	deprecatedIDs []string
}

// Location is a place in a file. It is part of importer.digest, so every new field needs `json:",omitempty"`.
type Location struct {
	// Path from the root of the source if that is known, with forward slashes. A URI that is not that of a file is left
	// unchanged. Empty: unknown.
	Path string
	// Line and Column from 1; 0 if unknown.
	Line, Column int32
	// Snippet of the region.
	Snippet string
	// Context is a snippet of the code around the region.
	Context string
}

// Fix is a change that the tool suggests. It is part of importer.digest, so every new field needs `json:",omitempty"`.
type Fix struct {
	Description string
	// Inserted is the content of each replacement.
	Inserted []string
}
