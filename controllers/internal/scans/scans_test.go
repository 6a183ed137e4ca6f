package scans_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"

	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/scans"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func scan(name string, started, recorded time.Duration) v1alpha1.Scan {
	s := builder.Scan(name, noon.Add(started)).Build()
	s.CreationTimestamp = metav1.NewTime(noon.Add(recorded))
	return *s
}

// An import writes its progress again and again.
func TestOnlyWhatIsCountedOfAScanConcernsItsProject(t *testing.T) {
	running := scan("s-1", 0, 0)
	for _, c := range []struct {
		reason string
		change func(*v1alpha1.Scan)
		want   bool
	}{
		{"its progress", func(s *v1alpha1.Scan) { s.Spec.Progress = &v1alpha1.ScanProgress{Done: 1, Total: 2} }, false},
		{"its status, but not the phase", func(s *v1alpha1.Scan) { s.Status.Progress = "1/2" }, false},
		{"its phase", func(s *v1alpha1.Scan) { s.Status.Phase = v1alpha1.ScanPhaseFailed }, true},
		{"its outcome", func(s *v1alpha1.Scan) { s.Spec.Outcome = v1alpha1.ScanSucceeded }, true},
		{"its end", func(s *v1alpha1.Scan) { s.Spec.CompletedAt = new(v1alpha1.NewTime(noon)) }, true},
		{"it is another one", func(s *v1alpha1.Scan) { s.UID = "another" }, true},
	} {
		after := running.DeepCopy()
		c.change(after)
		harness.Same(t, c.reason, c.want, scans.CountsOtherwise.Update(event.UpdateEvent{ObjectOld: &running, ObjectNew: after}))
	}
}

func TestLastStarted(t *testing.T) {
	cases := []struct {
		reason string
		scans  []v1alpha1.Scan
		want   string
	}{
		{"of none", nil, ""},
		{"by the start, not the record", []v1alpha1.Scan{scan("a", 2*time.Second, time.Minute), scan("b", time.Second, time.Hour)}, "a"},
		{"not one whose start is that of a clock that was ahead", []v1alpha1.Scan{scan("a", 365*24*time.Hour, 0), scan("b", 0, time.Second)}, "b"},
		{"of two started at once the one recorded last", []v1alpha1.Scan{scan("a", 0, time.Second), scan("b", 0, 0)}, "a"},
		{"of two recorded at once the greater name", []v1alpha1.Scan{scan("a", 0, 0), scan("b", 0, 0)}, "b"},
		{"whatever the order of the list", []v1alpha1.Scan{scan("b", 0, 0), scan("a", 0, 0)}, "b"},
	}
	for _, c := range cases {
		got := ""
		if last := scans.LastStarted(c.scans); last != nil {
			got = last.Name
		}
		harness.Same(t, c.reason, c.want, got)
	}
}

func TestLastSuccess(t *testing.T) {
	ended := func(at time.Duration, outcome v1alpha1.ScanOutcome) v1alpha1.Scan {
		return *builder.Scan("s", noon).Ended(noon.Add(at), outcome).Build()
	}
	cases := []struct {
		reason string
		scans  []v1alpha1.Scan
		want   *time.Duration
	}{
		{"of none", nil, nil},
		{"a running scan has not succeeded", []v1alpha1.Scan{scan("a", 0, 0)}, nil},
		{"a failed scan has not succeeded", []v1alpha1.Scan{ended(1, v1alpha1.ScanFailed)}, nil},
		{"the latest end, whatever the order", []v1alpha1.Scan{
			ended(time.Minute, v1alpha1.ScanSucceeded), ended(time.Hour, v1alpha1.ScanSucceeded),
			ended(time.Second, v1alpha1.ScanSucceeded), ended(2*time.Hour, v1alpha1.ScanFailed),
		}, new(time.Hour)},
	}
	for _, c := range cases {
		got := scans.LastSuccess(c.scans)
		if (got == nil) != (c.want == nil) || got != nil && !got.Spec.CompletedAt.Equal(new(v1alpha1.NewTime(noon.Add(*c.want)))) {
			t.Errorf("%s: got %v", c.reason, got)
		}
	}
}

// Whichever scans of a series are removed that are not the last in any sense, the results about the
// last scan stay the same.
func TestWhatIsNotLastTellsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []v1alpha1.Scan
		for i := range rapid.IntRange(1, 8).Draw(t, "scans") {
			second := func(label string) time.Duration {
				return time.Duration(rapid.IntRange(0, 4).Draw(t, label)) * time.Second
			}
			s := scan(fmt.Sprint("s-", i), second("started"), second("recorded"))
			if outcome := rapid.SampledFrom([]v1alpha1.ScanOutcome{"", v1alpha1.ScanSucceeded, v1alpha1.ScanFailed}).Draw(t, "outcome"); outcome != "" {
				s.Spec.Outcome, s.Spec.CompletedAt = outcome, new(v1alpha1.NewTime(noon.Add(second("completed"))))
			}
			list = append(list, s)
		}
		type knowledge struct {
			lastStarted           string
			succeeded, lastToPass time.Time
		}
		learn := func(list []v1alpha1.Scan) knowledge {
			k := knowledge{lastStarted: scans.LastStarted(list).Name}
			if last := scans.LastSuccess(list); last != nil {
				k.succeeded = last.Spec.CompletedAt.Time
			}
			for _, s := range list { // as the importer does
				if s.Spec.Outcome == v1alpha1.ScanSucceeded && s.Began().After(k.lastToPass) {
					k.lastToPass = s.Began()
				}
			}
			return k
		}
		want := learn(list)
		for range 2 * len(list) {
			i := rapid.IntRange(0, len(list)-1).Draw(t, "removed")
			if scans.IsLast(&list[i], list) {
				continue
			}
			list = slices.Delete(slices.Clone(list), i, i+1)
			harness.Same(t, "known without it", want, learn(list), cmp.AllowUnexported(knowledge{}))
		}
		left := 0
		for i := range list {
			if !scans.IsLast(&list[i], list) {
				left++
			}
		}
		if kept := len(list) - left; kept > 3 {
			t.Fatalf("%d scans of a series are the last", kept)
		}
	})
}
