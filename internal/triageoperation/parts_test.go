package triageoperation

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/corpus"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// entries returns entries with incompressible comments of that length.
func entries(n, length int) []Entry {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	r := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // a test
	out := make([]Entry, n)
	for i := range out {
		comment := make([]byte, length)
		for j := range comment {
			comment[j] = letters[r.IntN(len(letters))]
		}
		out[i] = Entry{
			Finding: v1alpha1.ResourceName(fmt.Sprintf("f-%d", i)), Digest: "d", Basis: "severity=high",
			Before: &v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusMuted, Comments: string(comment)},
		}
	}
	return out
}

func TestPartsHoldTheSetWithinTheirBounds(t *testing.T) {
	const most = 1 << 20 // in place of maxSetLength, which takes minutes to fill with the race detector
	operation := builder.TriageOperation("mute", "G1").Build()
	for _, c := range []struct {
		n, length int
		lost      bool
	}{{0, 0, false}, {1, 0, false}, {1200, 20, false}, {60, v1alpha1MaxComments, false}, {200, v1alpha1MaxComments, true}} {
		set := entries(c.n, c.length)
		parts, lost, err := partsUpTo(most, maxSetComments, operation, set)
		harness.Must(t, err)
		harness.Same(t, fmt.Sprintf("%d of %d characters: some are lost", c.n, c.length), c.lost, lost > 0)
		var back []Entry
		for i, part := range parts {
			if len(part.Spec.Entries) > v1alpha1.MaxPartLength || part.Name != PartName("mute", i) || int(part.Spec.Index) != i {
				t.Fatalf("part %d is %s with %d characters", i, part.Name, len(part.Spec.Entries))
			}
			some, err := Decode(part)
			harness.Must(t, err)
			back = append(back, some...)
		}
		want := set
		if len(want) == 0 {
			want = nil
		}
		if diff := cmp.Diff(want, back); diff != "" && !c.lost {
			t.Errorf("%d of %d characters (-put in +read):\n%.500s", c.n, c.length, diff)
		}
		forgotten := 0
		for i := range back {
			if back[i].Lost {
				harness.Same(t, "what remains of a decision that is lost", Entry{Finding: back[i].Finding, Digest: "d", Lost: true}, back[i])
				forgotten++
			}
		}
		if forgotten != int(lost) || len(back) != c.n {
			t.Errorf("%d come back, %d without their decision, want %d and %d", len(back), forgotten, c.n, lost)
		}
	}
}

// v1alpha1MaxComments is how long the comments of a decision may be.
const v1alpha1MaxComments = 10000

// Reading a part is bounded by its uncompressed text.
func TestPartsOfWhatCompressesWellAreRead(t *testing.T) {
	long := &v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusMuted, Comments: strings.Repeat("─", v1alpha1MaxComments)}
	set := slices.Repeat([]Entry{{Finding: "f", Digest: "d", Before: long, Set: long}}, v1alpha1.MaxPartEntries)
	parts, lost, err := Parts(builder.TriageOperation("undo", "").Build(), set)
	harness.Must(t, err)
	var back []Entry
	for _, part := range parts {
		some, err := Decode(part)
		harness.Must(t, err)
		back = append(back, some...)
	}
	if diff := cmp.Diff(set, back); diff != "" || lost > 0 {
		t.Errorf("%d are lost (-put in +read):\n%.500s", lost, diff)
	}
	// An undo holds all previous comments at once. The first part, of 150 findings, exceeds this bound.
	_, lost, err = partsUpTo(maxSetLength, 1<<20, builder.TriageOperation("undo", "").Build(), set[:300])
	harness.Must(t, err)
	harness.Same(t, "lost of what is too much for an undo", int32(150), lost)
}

// A page of a list reads up to ten parts, of which it shows the names.
func TestTheNamesOfAPartAreReadWithoutItsDecisions(t *testing.T) {
	long := &v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusMuted, Comments: strings.Repeat("─", v1alpha1MaxComments)}
	set := slices.Repeat([]Entry{{Finding: "f", Digest: "d", Before: long, Set: long}}, 250)
	parts, _, err := Parts(builder.TriageOperation("undo", "").Build(), set)
	harness.Must(t, err)
	harness.Same(t, "parts", 1, len(parts))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	names, err := Findings(parts[0])
	runtime.ReadMemStats(&after)
	harness.Must(t, err)
	harness.Same(t, "names", true, slices.Equal(names, slices.Repeat([]v1alpha1.ResourceName{"f"}, 250)))
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 2<<20 {
		t.Errorf("it allocates %d bytes for %d names", allocated, len(names))
	}
}

func TestAPartThatWasDamagedIsNotRead(t *testing.T) {
	parts, _, err := Parts(builder.TriageOperation("mute", "G1").Build(), entries(3, 5))
	harness.Must(t, err)
	for name, damage := range map[string]func(*v1alpha1.TriageOperationPartSpec){
		"cut off":         func(s *v1alpha1.TriageOperationPartSpec) { s.Entries = s.Entries[:len(s.Entries)/2] },
		"empty":           func(s *v1alpha1.TriageOperationPartSpec) { s.Entries = "" },
		"not compressed":  func(s *v1alpha1.TriageOperationPartSpec) { s.Entries = "e30=" },
		"another's count": func(s *v1alpha1.TriageOperationPartSpec) { s.Count = 2 },
		"too many findings": func(s *v1alpha1.TriageOperationPartSpec) {
			s.Count = v1alpha1.MaxPartEntries + 1
			s.Entries, _, _ = Encode(entries(int(s.Count), 0))
		},
		"too large unpacked": func(s *v1alpha1.TriageOperationPartSpec) {
			s.Count = 1
			s.Entries, _, _ = Encode([]Entry{{Facts: strings.Repeat("x", maxPartBytes)}})
		},
	} {
		part := parts[0].DeepCopy()
		damage(&part.Spec)
		if _, err := Decode(part); err == nil {
			t.Errorf("%s: it is read", name)
		}
	}
}

func FuzzDecode(f *testing.F) {
	text, _, err := Encode(entries(2, 5))
	harness.Must(f, err)
	f.Add(text, int32(2))
	f.Add("", int32(0))
	f.Fuzz(func(t *testing.T, text string, count int32) {
		part := &v1alpha1.TriageOperationPart{Spec: v1alpha1.TriageOperationPartSpec{Entries: text, Count: count}}
		entries, err := Decode(part)
		if err == nil && (len(entries) != int(count) || len(entries) > v1alpha1.MaxPartEntries) {
			t.Errorf("%d entries, %d said", len(entries), count)
		}
	})
}

func TestTheBoundsOfAPartAreThoseOfTheSchema(t *testing.T) {
	crd, err := corpus.CRD("TriageOperationPart")
	harness.Must(t, err)
	spec := corpus.SchemaOf(crd).Properties["spec"].Properties
	harness.Same(t, "the length of the entries", int64(v1alpha1.MaxPartLength), *spec["entries"].MaxLength)
	harness.Same(t, "how many outcomes", int64(v1alpha1.MaxPartEntries), *spec["outcomes"].MaxLength)
	harness.Same(t, "the count", float64(v1alpha1.MaxPartEntries), *spec["count"].Maximum)
}
