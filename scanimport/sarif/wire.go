package sarif

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The wire types hold only the members that are used. A member of the wrong type keeps its zero value, and the rest is
// still read: see lenient.

type wireTool struct {
	Driver     wireComponent   `json:"driver"`
	Extensions []wireComponent `json:"extensions"`
}

type wireComponent struct {
	Name            text       `json:"name"`
	GUID            text       `json:"guid"`
	SemanticVersion text       `json:"semanticVersion"`
	Version         text       `json:"version"`
	Rules           []wireRule `json:"rules"`
}

type wireRule struct {
	ID                   text                       `json:"id"`
	GUID                 text                       `json:"guid"`
	Name                 text                       `json:"name"`
	ShortDescription     wireMultiformat            `json:"shortDescription"`
	FullDescription      wireMultiformat            `json:"fullDescription"`
	Help                 wireMultiformat            `json:"help"`
	HelpURI              text                       `json:"helpUri"`
	MessageStrings       map[string]wireMultiformat `json:"messageStrings"`
	DefaultConfiguration wireConfiguration          `json:"defaultConfiguration"`
	Relationships        []wireRelationship         `json:"relationships"`
	DeprecatedIDs        []text                     `json:"deprecatedIds"`
	Properties           wireProperties             `json:"properties"`
}

type wireConfiguration struct {
	Level word `json:"level"`
}

type wireRelationship struct {
	Target wireReference `json:"target"`
}

// wireReference refers to a reporting descriptor: a rule or a taxon.
type wireReference struct {
	ID            text          `json:"id"`
	GUID          text          `json:"guid"`
	Index         *integer      `json:"index"`
	ToolComponent wireComponRef `json:"toolComponent"`
}

type wireComponRef struct {
	Name  text     `json:"name"`
	GUID  text     `json:"guid"`
	Index *integer `json:"index"`
}

type wireProperties struct {
	SecuritySeverity text    `json:"security-severity"`
	Precision        text    `json:"precision"`
	Tags             []text  `json:"tags"`
	CWE              anyText `json:"cwe"`
	PURLs            []text  `json:"purls"`
	CVSS4            text    `json:"cvssv4_baseScore"`
	CVSS3            text    `json:"cvssv3_baseScore"`
	CVSS2            text    `json:"cvssv2_score"`
	CVSS4Severity    text    `json:"cvssv4_baseSeverity"`
	CVSS3Severity    text    `json:"cvssv3_baseSeverity"`
	CVSS2Severity    text    `json:"cvssv2_severity"`
	// Severity and the fields after it are the tools' own words for it.
	Severity        text `json:"severity"`
	IssueSeverity   text `json:"issue_severity"`
	ProblemSeverity text `json:"problem.severity"`
}

type wireMessage struct {
	Text      text   `json:"text"`
	Markdown  text   `json:"markdown"`
	ID        text   `json:"id"`
	Arguments []text `json:"arguments"`
}

type wireMultiformat struct {
	Text     text `json:"text"`
	Markdown text `json:"markdown"`
}

type wireInvocation struct {
	ExecutionSuccessful        truth                `json:"executionSuccessful"`
	StartTimeUTC               text                 `json:"startTimeUtc"`
	WorkingDirectory           wireArtifactLocation `json:"workingDirectory"`
	RuleConfigurationOverrides []wireOverride       `json:"ruleConfigurationOverrides"`
	Execution                  wireNotifications    `json:"toolExecutionNotifications"`
	Configuration              wireNotifications    `json:"toolConfigurationNotifications"`

	// unread marks an entry that could not be read.
	unread bool
}

type wireOverride struct {
	Descriptor    wireReference     `json:"descriptor"`
	Configuration wireConfiguration `json:"configuration"`
}

type wireAutomation struct {
	ID text `json:"id"`
}

type wireProvenance struct {
	RevisionID    text `json:"revisionId"`
	RepositoryURI text `json:"repositoryUri"`
	Branch        text `json:"branch"`
}

type wireArtifact struct {
	Location    wireArtifactLocation `json:"location"`
	ParentIndex *integer             `json:"parentIndex"`
	Target      analysisTarget       `json:"roles"`
}

type wireArtifactLocation struct {
	URI       text     `json:"uri"`
	URIBaseID text     `json:"uriBaseId"`
	Index     *integer `json:"index"`
}

type wireResult struct {
	RuleID              text              `json:"ruleId"`
	RuleIndex           *integer          `json:"ruleIndex"`
	Rule                wireReference     `json:"rule"`
	Kind                word              `json:"kind"`
	Level               word              `json:"level"`
	Message             wireMessage       `json:"message"`
	Locations           []wireLocation    `json:"locations"`
	RelatedLocations    []wireLocation    `json:"relatedLocations"`
	CodeFlows           []wireCodeFlow    `json:"codeFlows"`
	Fingerprints        map[string]text   `json:"fingerprints"`
	PartialFingerprints map[string]text   `json:"partialFingerprints"`
	Suppressions        []wireSuppression `json:"suppressions"`
	BaselineState       word              `json:"baselineState"`
	Fixes               []wireFix         `json:"fixes"`
	Taxa                []wireReference   `json:"taxa"`
	WebRequest          wireWebRequest    `json:"webRequest"`
	Properties          wireProperties    `json:"properties"`

	// notAnObject marks an entry that could not be read, tooLarge one that was too large to read.
	notAnObject, tooLarge bool
}

// trim drops unused parts of a result, so that long lists in it do not stay in memory.
func (r *wireResult) trim() {
	r.Message.Arguments = keep(r.Message.Arguments, maxValues)
	r.Locations, r.RelatedLocations = keep(r.Locations, maxPlaces), keep(r.RelatedLocations, maxPlaces)
	for i := range r.Locations {
		r.Locations[i].LogicalLocations = keep(r.Locations[i].LogicalLocations, maxLogical)
	}
	r.CodeFlows = keep(r.CodeFlows, maxPlaces)
	steps := maxPlaces
	for i := range r.CodeFlows {
		r.CodeFlows[i].ThreadFlows = keep(r.CodeFlows[i].ThreadFlows, maxPlaces)
		for j := range r.CodeFlows[i].ThreadFlows {
			thread := &r.CodeFlows[i].ThreadFlows[j]
			thread.Locations = keep(thread.Locations, steps)
			steps -= len(thread.Locations)
		}
	}
	r.Fingerprints, r.PartialFingerprints = keepOf(r.Fingerprints, maxValues), keepOf(r.PartialFingerprints, maxValues)
	r.Fixes = keep(r.Fixes, maxPlaces)
	for i := range r.Fixes {
		r.Fixes[i].ArtifactChanges = keep(r.Fixes[i].ArtifactChanges, maxPlaces)
		for j := range r.Fixes[i].ArtifactChanges {
			change := &r.Fixes[i].ArtifactChanges[j]
			change.Replacements = keep(change.Replacements, maxPlaces)
		}
	}
	r.Taxa, r.Properties.Tags = keep(r.Taxa, maxPlaces), keep(r.Properties.Tags, maxValues)
}

func (r *wireRule) trim() {
	r.Relationships, r.Properties.Tags = keep(r.Relationships, maxValues), keep(r.Properties.Tags, maxValues)
	r.DeprecatedIDs, r.Properties.PURLs = keep(r.DeprecatedIDs, maxValues), keep(r.Properties.PURLs, maxValues)
	r.MessageStrings = keepOf(r.MessageStrings, maxValues)
}

type wireLocation struct {
	PhysicalLocation wirePhysicalLocation `json:"physicalLocation"`
	LogicalLocations []wireLogical        `json:"logicalLocations"`
}

type wireLogical struct {
	Name               text     `json:"name"`
	FullyQualifiedName text     `json:"fullyQualifiedName"`
	DecoratedName      text     `json:"decoratedName"`
	Kind               text     `json:"kind"`
	Index              *integer `json:"index"`
}

type wirePhysicalLocation struct {
	ArtifactLocation wireArtifactLocation `json:"artifactLocation"`
	Region           wireRegion           `json:"region"`
	ContextRegion    struct {
		Snippet wireMultiformat `json:"snippet"`
	} `json:"contextRegion"`
}

type wireRegion struct {
	StartLine   *integer        `json:"startLine"`
	StartColumn *integer        `json:"startColumn"`
	EndLine     integer         `json:"endLine"`
	EndColumn   integer         `json:"endColumn"`
	ByteOffset  integer         `json:"byteOffset"`
	ByteLength  integer         `json:"byteLength"`
	CharOffset  integer         `json:"charOffset"`
	CharLength  integer         `json:"charLength"`
	Snippet     wireMultiformat `json:"snippet"`
}

type wireWebRequest struct {
	Method text `json:"method"`
	Target text `json:"target"`
}

type wireCodeFlow struct {
	ThreadFlows []struct {
		Locations []struct {
			Location wireLocation `json:"location"`
		} `json:"locations"`
	} `json:"threadFlows"`
}

type wireSuppression struct {
	Kind          word              `json:"kind"`
	Status        suppressionStatus `json:"status"`
	Justification text              `json:"justification"`
}

// UnmarshalJSON gives an entry that is not an object an unknown status, because nothing shows that it was accepted.
func (s *wireSuppression) UnmarshalJSON(data []byte) error {
	if data[0] != '{' {
		*s = wireSuppression{Status: statusUnknown}
		return nil
	}
	type members wireSuppression
	return lenient(json.Unmarshal(data, (*members)(s)))
}

type wireFix struct {
	Description     wireMultiformat `json:"description"`
	ArtifactChanges []struct {
		Replacements []struct {
			InsertedContent wireMultiformat `json:"insertedContent"`
		} `json:"replacements"`
	} `json:"artifactChanges"`
}

// text is a string that some tools write as a number; any other value counts as absent.
type text string

// UnmarshalJSON never fails.
func (t *text) UnmarshalJSON(data []byte) error {
	*t = ""
	if len(data) == 0 {
		return nil
	}
	switch c := data[0]; {
	case c == '"':
		var s string
		if err := json.Unmarshal(data, &s); err == nil {
			*t = text(shorten(s, maxText))
		}
	case c == '-' || c >= '0' && c <= '9':
		*t = text(shorten(string(data), maxText))
	}
	return nil
}

// word is one of the words that SARIF defines, in lower case and without surrounding blanks: some tools write them in
// another case.
type word string

// UnmarshalJSON never fails.
func (w *word) UnmarshalJSON(data []byte) error {
	var given text
	_ = given.UnmarshalJSON(data)
	*w = word(strings.ToLower(strings.TrimSpace(string(given))))
	return nil
}

// anyText is a string or a list of strings, joined by blanks.
type anyText string

// UnmarshalJSON never fails.
func (t *anyText) UnmarshalJSON(data []byte) error {
	var list []text
	if json.Unmarshal(data, &list) == nil {
		var joined strings.Builder
		for _, s := range list {
			if joined.Len() > maxText {
				break
			}
			joined.WriteString(string(s) + " ")
		}
		*t = anyText(joined.String())
		return nil
	}
	var one text
	_ = one.UnmarshalJSON(data)
	*t = anyText(one)
	return nil
}

// analysisTarget means that a list of roles contains analysisTarget: the tool scanned this file.
type analysisTarget bool

// UnmarshalJSON never fails.
func (t *analysisTarget) UnmarshalJSON(data []byte) error {
	var roles []text
	_ = json.Unmarshal(data, &roles)
	*t = analysisTarget(slices.Contains(roles, "analysisTarget"))
	return nil
}

// integer is an int32 that some tools write as a string. Any other value counts as -1, which SARIF uses for "absent".
type integer int32

// UnmarshalJSON never fails.
func (i *integer) UnmarshalJSON(data []byte) error {
	*i = -1
	var t text
	_ = t.UnmarshalJSON(data)
	f, err := strconv.ParseFloat(string(t), 64)
	if err == nil && f == math.Trunc(f) && f >= 0 && f <= math.MaxInt32 {
		*i = integer(f)
	}
	return nil
}

// value returns i, or the argument if i is absent.
func (i *integer) value(absent int) int {
	if i == nil || *i < 0 {
		return absent
	}
	return int(*i)
}

// truth is a boolean that some tools write as a string.
type truth int8

const (
	truthAbsent truth = iota
	truthYes
	truthNo
	// truthNeither is any other value.
	truthNeither
)

// UnmarshalJSON never fails.
func (t *truth) UnmarshalJSON(data []byte) error {
	switch strings.ToLower(string(data)) {
	case `null`:
		*t = truthAbsent
	case `true`, `"true"`:
		*t = truthYes
	case `false`, `"false"`:
		*t = truthNo
	default:
		*t = truthNeither
	}
	return nil
}

// suppressionStatus is "" if absent.
type suppressionStatus string

const (
	statusAccepted    suppressionStatus = "accepted"
	statusRejected    suppressionStatus = "rejected"
	statusUnderReview suppressionStatus = "underReview"
	// statusUnknown is any other value.
	statusUnknown suppressionStatus = "unknown"
)

// UnmarshalJSON never fails. The case of a status has no meaning.
func (s *suppressionStatus) UnmarshalJSON(data []byte) error {
	var given text
	_ = given.UnmarshalJSON(data)
	if *s = ""; string(data) == `null` || string(data) == `""` {
		return nil
	}
	*s = statusUnknown
	for _, known := range []suppressionStatus{statusAccepted, statusRejected, statusUnderReview} {
		if strings.EqualFold(strings.TrimSpace(string(given)), string(known)) {
			*s = known
		}
	}
	return nil
}

// lenient drops the error about a member of the wrong type: encoding/json has still read all others.
func lenient(err error) error {
	if _, wrongType := errors.AsType[*json.UnmarshalTypeError](err); wrongType {
		return nil
	}
	return err
}
