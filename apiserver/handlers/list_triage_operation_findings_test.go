package handlers

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/cluster"
	"github.com/appsec-dev/findings-operator/internal/triageoperation"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Whatever the outcomes and the size, the pages hold each finding once, HasMore is true until the last one, and each
// reads few parts.
func TestPagesOfAnOperationsFindingsReadFewPartsAndEndWithTheLastFinding(t *testing.T) {
	const parts, entries = 4 * maxParts, 5
	for name, conflicted := range map[string][]int{
		"none": nil, "the first": {0}, "the last": {parts*entries - 1}, "far apart": {3, 7, 8, 60, 61, 62, 63, 64, 170},
	} {
		for _, final := range []bool{true, false} {
			reads := 0
			f := &operationFindings{outcome: "conflicted", parts: parts, total: len(conflicted), final: final}
			f.read = func(index int) (part cluster.Part, err error) {
				reads++
				var outcomes strings.Builder
				for i := index * entries; i < (index+1)*entries; i++ {
					part.Findings = append(part.Findings, v1alpha1.ResourceName(fmt.Sprintf("f-%03d", i)))
					outcomes.WriteByte(map[bool]byte{true: byte(triageoperation.Conflicted), false: byte(triageoperation.Changed)}[slices.Contains(conflicted, i)])
				}
				part.Outcomes = outcomes.String()
				return part, nil
			}
			for size := 1; size <= 3; size++ {
				var got []int
				for at := (place{}); ; {
					reads = 0
					page, err := f.page(at, size)
					if err != nil || reads > maxParts || len(page.Items) > size {
						t.Fatalf("%s: a page of %d reads %d parts and has %d items: %v", name, size, reads, len(page.Items), err)
					}
					for _, item := range page.Items {
						var id int
						_, err := fmt.Sscanf(string(item.AppendTo(nil)), `{"finding_id":"f-%d`, &id)
						harness.Must(t, err)
						got = append(got, id)
					}
					if page.HasMore && final && len(got) == len(conflicted) {
						t.Errorf("%s: HasMore is true on the page with the last of them", name)
					}
					if !page.HasMore {
						break
					}
					at = placeOf(&page.Next)
				}
				harness.Same(t, fmt.Sprintf("%s, final %t: pages of %d", name, final, size), conflicted, got)
			}
		}
	}
	without := operationFindings{total: 70_000}
	if page, err := without.page(place{}, 1); err != nil || page.Total != 0 || page.HasMore {
		t.Errorf("an operation that failed before it had a set has %d findings, more: %t, %v", page.Total, page.HasMore, err)
	}
}
