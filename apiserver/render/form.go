package render

import (
	"bytes"
	"fmt"
	"time"
)

// filling is what fills a hole.
type filling int

// The texts of a finding that both shapes show: most of its bytes.
const (
	titleText filling = iota
	descriptionText
	codeText
	fixedCodeText
	walkthroughText
	remediationText
	textCount // how many there are
)

// What a finding shows that is not its own.
const (
	updatedAtTime filling = iota + textCount
	organizationID
	projectV1
	projectContext
	projectWords
	repositoryURL
	repositoryWords
)

// hole is where a shape shows what is not in its own parts.
type hole struct {
	filling filling
	// before is the JSON that comes before the hole, and empty what is in it where nothing fills it.
	before, empty string
}

// form is the holes of a shape, in the order of its members. The JSON of a shape is cut at them:
// quotation marks within texts are escaped, so that a member's name is never found in one.
type form struct {
	holes []hole
	// patterns are before and empty of each hole.
	patterns [][]byte
	// first is the place of the shape's first part among the texts and parts of a Finding.
	first int
}

func newForm(first int, holes ...hole) *form {
	f := &form{first: first, holes: holes}
	for _, h := range holes {
		f.patterns = append(f.patterns, []byte(h.before+h.empty))
	}
	return f
}

// How many parts the shapes are cut into: one more than they have holes.
const (
	partsV1 = 9 + 1
	partsV2 = 11 + 1
)

const noText = `""`

var noTime = string(mustEncode(time.Time{}))

var formV1 = newForm(int(textCount),
	hole{walkthroughText, `"attack_walkthrough":`, noText},
	hole{descriptionText, `"description":`, noText},
	hole{fixedCodeText, `"fixed_code_block":`, noText},
	hole{titleText, `"name":`, noText},
	hole{projectV1, `"project":`, string(mustEncode(emptyProjectV1))},
	hole{remediationText, `"remediation":`, noText},
	hole{repositoryURL, `"repo_url":`, noText},
	hole{updatedAtTime, `"updated_at":`, noTime},
	hole{codeText, `"vulnerable_code_block":`, noText},
)

var formV2 = newForm(int(textCount)+partsV1,
	hole{codeText, `"details":{"code":`, noText},
	hole{descriptionText, `"description":`, noText},
	hole{walkthroughText, `"exploit_walkthrough":`, noText},
	hole{fixedCodeText, `"fixed_code":`, noText},
	hole{remediationText, `"remediation":`, noText},
	hole{titleText, `"title":`, noText},
	hole{organizationID, `"organization_id":`, noText},
	hole{projectContext, `"project":{"context":`, string(mustEncode(emptyProjectContext))},
	hole{projectWords, `,`, `"name":"","purpose":""`},
	hole{repositoryWords, `,`, `"name":"","provider":"","url":""`},
	hole{updatedAtTime, `"updated_at":`, noTime},
)

// cut appends the JSON of a shape without what is in its holes, and the ends of its parts.
func (f *form) cut(buffer *bytes.Buffer, shape any, ends []uint32) ([]uint32, error) {
	start := buffer.Len()
	if err := encodeTo(buffer, shape); err != nil {
		return nil, err
	}
	rest := buffer.Bytes()[start:]
	kept := start
	for i, h := range f.holes {
		at := bytes.Index(rest, f.patterns[i])
		if at < 0 {
			return nil, fmt.Errorf("there is no %s%s where it is to be filled in", h.before, h.empty)
		}
		part := rest[:at+len(h.before)]
		rest = rest[at+len(f.patterns[i]):]
		kept += copy(buffer.Bytes()[kept:], part)
		ends = append(ends, uint32(kept)) //nolint:gosec // an object is far below 4 GiB
	}
	kept += copy(buffer.Bytes()[kept:], rest)
	buffer.Truncate(kept)
	return append(ends, end(buffer)), nil
}

func end(buffer *bytes.Buffer) uint32 { return uint32(buffer.Len()) } //nolint:gosec // an object is far below 4 GiB

// fragment is the JSON that fills a hole.
func (s *Shown) fragment(of filling) []byte {
	switch of {
	case organizationID:
		return s.Organization.json
	case projectV1:
		return s.project().v1
	case projectContext:
		return s.project().context
	case projectWords:
		return s.project().words
	case repositoryURL:
		return s.repository().urlJSON
	default:
		return s.repository().words
	}
}

func (s *Shown) project() *Project {
	if s.Project == nil {
		return noProject
	}
	return s.Project
}

func (s *Shown) repository() *Repository {
	if s.Repository == nil {
		return noRepository
	}
	return s.Repository
}

func (s *Shown) length(of filling) int {
	if of == updatedAtTime {
		return len(s.UpdatedAt) + len(noText)
	}
	return len(s.fragment(of))
}

func (s *Shown) append(to []byte, of filling) []byte {
	if of == updatedAtTime {
		return append(append(append(to, '"'), s.UpdatedAt...), '"')
	}
	return append(to, s.fragment(of)...)
}
