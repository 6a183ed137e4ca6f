package sarif

import (
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Log is what a file says.
type Log struct {
	Runs []Run
}

// Run is one run of one tool.
type Run struct {
	// Tool is the driver's name; empty where the file does not say it.
	Tool string
	// ToolVersion is the driver's version; empty where the file does not say it.
	ToolVersion string
	// AutomationID is the run's automationDetails.id: the analysis and, after the last slash, the run; empty
	// where the file does not say it.
	AutomationID string
	// Commit that was scanned; empty where the file does not say it.
	Commit string
	// Repository is the URI of what was scanned, and Branch its branch; empty where the file does not say it.
	Repository, Branch string
	// StartedAt is the earliest start among the invocations; zero where the file does not say it.
	StartedAt time.Time
	// Incomplete says why the run's results are not all that there is to find, so that
	// what is missing from them must not be taken for gone. Empty: they are.
	Incomplete string
	// Scanned are the folders of the files that the tool says it was to look at, as far as it says so: those of
	// artifacts whose role is analysisTarget. Sorted; at most 10,000.
	Scanned []string
	// Total is the number of entries of `results`: len(Results) + len(Skipped).
	Total int
	// Results that are findings, in the order of the file.
	Results []Result
	// Skipped entries, in the order of the file.
	Skipped []Skip
	// Notes count what was put right on the way, by sentence.
	Notes map[string]int
}

// SkipReason says why an entry of `results` is not a finding.
type SkipReason string

// The reasons.
const (
	SkipNotAnObject      SkipReason = "not an object"
	SkipEmpty            SkipReason = "neither a rule nor a message"
	SkipRuleIndex        SkipReason = "no rule id, and the rule index is out of range"
	SkipPass             SkipReason = "kind is pass"
	SkipNotApplicable    SkipReason = "kind is notApplicable"
	SkipTooLarge         SkipReason = "larger than 4 MiB by itself"
	SkipAbsentInBaseline SkipReason = "baselineState is absent: the tool says that it is gone"
)

// Skip is an entry of `results` that is not a finding.
type Skip struct {
	// Index in `results`, from 0.
	Index int
	// RuleID as far as it is known.
	RuleID string
	Reason SkipReason
}

// Result is a finding as a tool reported it.
type Result struct {
	// Index in `results`, from 0.
	Index int
	// RuleID is the tool's own name of the rule; empty where the tool gave none.
	RuleID string
	// Rule is what the file says of the rule; never nil.
	Rule *Rule
	// Level is error, warning, note or none.
	Level string
	// Severity in this service's vocabulary.
	Severity v1alpha1.Level
	// Message with its arguments put in.
	Message string
	// Location is the first with a path; its zero value where there is none.
	Location Location
	// Related places: further locations, related locations, steps of code flows, each once.
	Related []Location
	// Fingerprints by name, `fingerprints` before `partialFingerprints` of the same name.
	Fingerprints map[string]string
	// Fixes that the tool offers.
	Fixes []Fix
	// CWEs of the result and its rule, as "CWE-79", each once.
	CWEs []string
	// The members below follow from those above and from the rule. They take no part in JSON, by
	// which results that are the same are known: it stays what it was before they came.

	// Score from "0.1" to "10.0"; empty where the file gives none.
	Score string `json:"-"`
	// ToolSeverity is the tool's own word for the severity, as it writes it, else the level that the
	// file gives; empty where it gives neither.
	ToolSeverity string `json:"-"`
	// Vulnerability that the result is about; nil where the file names none.
	Vulnerability *Vulnerability `json:"-"`
	// Package that the result is about; nil where it is about none.
	Package *Package `json:"-"`
	// Endpoints that a dynamic scanner tried, each once.
	Endpoints []Endpoint `json:"-"`
	// Logical locations of the first location, in the order of the file.
	Logical []Logical `json:"-"`
	// Suppression of the result in its source; nil where there is none.
	Suppression *Suppression `json:"-"`
}

// Suppression says that the source suppresses a result, which the tool reports all the same.
type Suppression struct {
	// InSource is a comment or the like in the code; otherwise it is a baseline or a list beside it.
	InSource bool
	// Justification as the source gives it; may be empty.
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

	level            string
	securitySeverity string
	messages         map[string]string
	// helpMarkdown is the help in Markdown, where Help is not it.
	helpMarkdown string
	// advice is what Advice has found once advised, labels what labelled has.
	advice  string
	advised bool
	labels  map[string]string
	// cvss are the scores that the rule gives beside securitySeverity, the newest version first.
	cvss []string
	// severityWord and problemSeverity are the rule's own words for the severity.
	severityWord, problemSeverity string
	// purls of the packages that the rule is about.
	purls []string
	// deprecatedIDs are ids that the rule had before, or has elsewhere.
	deprecatedIDs []string
}

// Location is a place in a file.
type Location struct {
	// Path from the root of the source where that is known, with forward slashes; a URI
	// that is not of a file stays as it is. Empty: not known.
	Path string
	// Line and Column from 1; 0 where not known.
	Line, Column int32
	// Snippet of the region.
	Snippet string
	// Context is a snippet of what is around the region.
	Context string
}

// Fix is a change that a tool offers.
type Fix struct {
	Description string
	// Inserted is the content of each replacement.
	Inserted []string
}
