package render

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// filling identifies the content of a hole.
type filling int

// The texts of a finding that both shapes show: most of its bytes. They are stored once, within the parts of
// shape v1.
const (
	titleText filling = iota
	descriptionText
	codeText
	fixedCodeText
	walkthroughText
	textCount // how many there are
)

// Content that many findings share, those of one rule, agent, scan or operation. It is stored once for all of them.
const (
	remediationText filling = iota + textCount
	commentsText
	agentObject
	scanObject
	ownCount // the number of fillings from the finding's own object
)

// What a finding shows of other objects.
const (
	updatedAtTime filling = iota + ownCount
	organizationID
	projectV1
	projectWords
	repositoryURL
	repositoryWords
)

// The holes of the shapes in order. They are the same for every finding.
var holesV1, holesV2 = holes()

// The number of parts of the shapes: one more than they have holes.
const (
	partsV1 = 4 + 1
	partsV2 = 13 + 1
)

func holes() (v1, v2 []filling) {
	w := &writer{buffer: new(bytes.Buffer)}
	shapes(w, &v1alpha1.Finding{})
	if len(w.ends) != partsV1+partsV2 {
		panic(fmt.Sprintf("the shapes have %d parts, not %d", len(w.ends), partsV1+partsV2))
	}
	return w.holes[:partsV1-1], w.holes[partsV1-1:]
}

// shapes writes both shapes of a finding.
func shapes(w *writer, f *v1alpha1.Finding) {
	for _, shape := range []func(*writer, *v1alpha1.Finding){shapeV1, shapeV2} {
		w.write(func() { shape(w, f) })
		w.ends = append(w.ends, end(w.buffer))
	}
}

// fragment returns the JSON for a hole.
func (s *Shown) fragment(of filling) []byte {
	switch of {
	case organizationID:
		return s.Organization.json
	case projectV1:
		return s.project().v1
	case projectWords:
		return s.project().words
	case repositoryURL:
		return s.repository().urlJSON
	default:
		return s.repository().words
	}
}

func (s *Shown) project() *Project { return cmp.Or(s.Project, noProject) }

func (s *Shown) repository() *Repository { return cmp.Or(s.Repository, noRepository) }

// lengthV1 returns the length of what shape v1 shows of other objects.
func (s *Shown) lengthV1() int {
	return len(s.UpdatedAt) + len(`""`) + len(s.project().v1) + len(s.repository().urlJSON)
}

// lengthV2 returns the length of what shape v2 shows of other objects.
func (s *Shown) lengthV2() int {
	return len(s.UpdatedAt) + len(`""`) + len(s.Organization.json) + len(s.project().words) + len(s.repository().words)
}

func (s *Shown) append(to []byte, of filling) []byte {
	if of == updatedAtTime {
		return append(append(append(to, '"'), s.UpdatedAt...), '"')
	}
	return append(to, s.fragment(of)...)
}
