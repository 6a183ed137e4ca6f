package render

import (
	"bytes"
	"fmt"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Finding is the rendered content of a finding's own object, in all shapes. The parts that come from other objects are
// inserted when a shape is written. So a finding is rendered once, however often the joined objects change, and
// thousands of findings share one project's JSON. It never changes.
type Finding struct {
	// content holds the parts of shape v1 and then those of shape v2.
	content []byte
	// endsV1 and endsV2 are where each part ends in the content; texts is where the texts are that v2 shares
	// with v1.
	endsV1 [partsV1]uint32
	endsV2 [partsV2]uint32
	texts  [textCount]span
	// ownV1 and ownV2 are the lengths of the shapes without the parts from other objects.
	ownV1, ownV2 uint32
	common       common
	rest         rest
}

// Shown is what a finding shows from other objects, and the time of its last change. It never changes.
type Shown struct {
	Organization *Organization
	// UpdatedAt is the time to show. It is not taken from the object, which does not contain it before its
	// first reconcile.
	UpdatedAt string
	// Project and Repository may be nil: they may be created after the finding.
	Project    *Project
	Repository *Repository
}

// NewFinding renders a finding. The same finding always gives the same bytes.
func NewFinding(finding *v1alpha1.Finding) (Finding, error) {
	buffer := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buffer)
	buffer.Reset()
	rest, err := newRest(finding)
	if err != nil {
		return Finding{}, fmt.Errorf("encode finding %s in the full shape: %w", finding.Name, err)
	}
	w := &writer{buffer: buffer}
	shapes(w, finding)
	rendered := Finding{content: bytes.Clone(buffer.Bytes()), texts: w.texts, common: w.common, rest: rest}
	copy(rendered.endsV1[:], w.ends)
	copy(rendered.endsV2[:], w.ends[partsV1:])
	rendered.ownV1 = rendered.endsV1[partsV1-1] + rendered.ownFillings(holesV1)
	rendered.ownV2 = rendered.endsV2[partsV2-1] - rendered.endsV1[partsV1-1] + rendered.ownFillings(holesV2)
	return rendered, nil
}

// LenV1 returns how many bytes AppendV1 appends.
func (f *Finding) LenV1(shown *Shown) int { return int(f.ownV1) + shown.lengthV1() }

// AppendV1 appends the JSON of shape v1.
func (f *Finding) AppendV1(to []byte, shown *Shown) []byte {
	return f.append(to, 0, f.endsV1[:], holesV1, shown)
}

// LenV2 returns how many bytes AppendV2 appends.
func (f *Finding) LenV2(shown *Shown) int { return int(f.ownV2) + shown.lengthV2() }

// AppendV2 appends the JSON of shape v2.
func (f *Finding) AppendV2(to []byte, shown *Shown) []byte {
	return f.append(to, f.endsV1[partsV1-1], f.endsV2[:], holesV2, shown)
}

// ownFillings returns the total length of the content of the holes that comes from the finding's own object.
func (f *Finding) ownFillings(holes []filling) (length uint32) {
	for _, hole := range holes {
		switch {
		case hole < textCount:
			length += f.texts[hole].end - f.texts[hole].start
		case hole < ownCount:
			length += uint32(len(f.common.of(hole))) //nolint:gosec // an object is far below 4 GiB
		}
	}
	return length
}

// append appends the parts from start on, with the content of the holes between them.
func (f *Finding) append(to []byte, start uint32, ends []uint32, holes []filling, shown *Shown) []byte {
	for i, hole := range holes {
		to = append(to, f.content[start:ends[i]]...)
		start = ends[i]
		switch {
		case hole < textCount:
			to = append(to, f.content[f.texts[hole].start:f.texts[hole].end]...)
		case hole < ownCount:
			to = append(to, f.common.of(hole)...)
		default:
			to = shown.append(to, hole)
		}
	}
	return append(to, f.content[start:ends[len(holes)]]...)
}
