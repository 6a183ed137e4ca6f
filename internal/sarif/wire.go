package sarif

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
)

// The wire types hold the few members that are used. A member of the wrong type is left
// at its zero value and the rest is read all the same: see lenient.

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
	ID                   text                   `json:"id"`
	Name                 text                   `json:"name"`
	ShortDescription     wireMessage            `json:"shortDescription"`
	FullDescription      wireMessage            `json:"fullDescription"`
	Help                 wireMessage            `json:"help"`
	HelpURI              text                   `json:"helpUri"`
	MessageStrings       map[string]wireMessage `json:"messageStrings"`
	DefaultConfiguration wireConfiguration      `json:"defaultConfiguration"`
	Relationships        []wireRelationship     `json:"relationships"`
	Properties           wireProperties         `json:"properties"`
}

type wireConfiguration struct {
	Level text `json:"level"`
}

type wireRelationship struct {
	Target wireReference `json:"target"`
}

// wireReference points at a reporting descriptor: a rule or a taxon.
type wireReference struct {
	ID            text          `json:"id"`
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
}

type wireMessage struct {
	Text      text   `json:"text"`
	Markdown  text   `json:"markdown"`
	ID        text   `json:"id"`
	Arguments []text `json:"arguments"`
}

type wireInvocation struct {
	ExecutionSuccessful        *bool                `json:"executionSuccessful"`
	StartTimeUTC               text                 `json:"startTimeUtc"`
	WorkingDirectory           wireArtifactLocation `json:"workingDirectory"`
	RuleConfigurationOverrides []wireOverride       `json:"ruleConfigurationOverrides"`
}

type wireOverride struct {
	Descriptor    wireReference     `json:"descriptor"`
	Configuration wireConfiguration `json:"configuration"`
}

type wireProvenance struct {
	RevisionID text `json:"revisionId"`
}

type wireArtifact struct {
	Location wireArtifactLocation `json:"location"`
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
	Kind                text              `json:"kind"`
	Level               text              `json:"level"`
	Message             wireMessage       `json:"message"`
	Locations           []wireLocation    `json:"locations"`
	RelatedLocations    []wireLocation    `json:"relatedLocations"`
	CodeFlows           []wireCodeFlow    `json:"codeFlows"`
	Fingerprints        map[string]text   `json:"fingerprints"`
	PartialFingerprints map[string]text   `json:"partialFingerprints"`
	Suppressions        []wireSuppression `json:"suppressions"`
	BaselineState       text              `json:"baselineState"`
	Fixes               []wireFix         `json:"fixes"`
	Taxa                []wireReference   `json:"taxa"`
	Properties          wireProperties    `json:"properties"`

	// notAnObject marks an entry that could not be read at all.
	notAnObject bool
}

type wireLocation struct {
	PhysicalLocation wirePhysicalLocation `json:"physicalLocation"`
}

type wirePhysicalLocation struct {
	ArtifactLocation wireArtifactLocation `json:"artifactLocation"`
	Region           wireRegion           `json:"region"`
	ContextRegion    wireRegion           `json:"contextRegion"`
}

type wireRegion struct {
	StartLine   *integer    `json:"startLine"`
	StartColumn *integer    `json:"startColumn"`
	Snippet     wireMessage `json:"snippet"`
}

type wireCodeFlow struct {
	ThreadFlows []struct {
		Locations []struct {
			Location wireLocation `json:"location"`
		} `json:"locations"`
	} `json:"threadFlows"`
}

type wireSuppression struct {
	Status text `json:"status"`
}

type wireFix struct {
	Description     wireMessage `json:"description"`
	ArtifactChanges []struct {
		Replacements []struct {
			InsertedContent wireMessage `json:"insertedContent"`
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
			*t = text(s)
		}
	case c == '-' || c >= '0' && c <= '9':
		*t = text(data)
	}
	return nil
}

// anyText is a string or a list of strings, joined by blanks.
type anyText string

// UnmarshalJSON never fails.
func (t *anyText) UnmarshalJSON(data []byte) error {
	var list []text
	if json.Unmarshal(data, &list) == nil {
		for _, s := range list {
			*t += anyText(s) + " "
		}
		return nil
	}
	var one text
	_ = one.UnmarshalJSON(data)
	*t = anyText(one)
	return nil
}

// integer is a number in the range of int32 that some tools write as a string. A value
// that is none counts as -1, which SARIF uses for "absent".
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

// value is what i holds, or the given one where i is absent.
func (i *integer) value(absent int) int {
	if i == nil || *i < 0 {
		return absent
	}
	return int(*i)
}

// lenient drops the error of a member of the wrong type: encoding/json has then read all
// the others.
func lenient(err error) error {
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		return nil
	}
	return err
}
