package scan

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

var made = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// running returns a scan by gosec that started when it was created.
func running() *v1alpha1.Scan {
	scan := builder.Scan("s", made).Build()
	scan.Spec.Tool = "gosec"
	scan.Generation = 1
	scan.CreationTimestamp = metav1.NewTime(made)
	return scan
}

// end records the end, which is the importer's last write.
func end(scan *v1alpha1.Scan, at time.Time, outcome v1alpha1.ScanOutcome) {
	moment := v1alpha1.NewTime(at)
	scan.Generation++
	scan.Spec.Outcome = outcome
	scan.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "scanner/gosec", Time: &metav1.Time{Time: moment.Time}},
		{Manager: v1alpha1.ControllerFieldManager, Subresource: "status", Time: &metav1.Time{Time: new(v1alpha1.NewTime(at.Add(time.Minute))).Time}},
	}
}

// look updates the status like the controller.
func look(scan *v1alpha1.Scan, now time.Time) {
	observe(scan, progressOf(scan, liveness{}, now), now)
}

func told(scan *v1alpha1.Scan) []string {
	var out []string
	for _, t := range scan.Status.Transitions {
		out = append(out, fmt.Sprintf("%d %s %s>%s %s +%s", t.Seq, t.Type, t.From, t.To, t.By, t.At.Sub(made)))
	}
	return out
}

func TestWhatIsRecordedOfAScan(t *testing.T) {
	const day = 24 * time.Hour
	// A step changes the scan, and the controller reconciles it.
	type step struct {
		change func(*v1alpha1.Scan)
		now    time.Duration
	}
	ends := func(after time.Duration, outcome v1alpha1.ScanOutcome) func(*v1alpha1.Scan) {
		return func(scan *v1alpha1.Scan) { end(scan, made.Add(after), outcome) }
	}
	nothing := func(*v1alpha1.Scan) {}
	missed := func(scan *v1alpha1.Scan) {
		scan.Spec.Lease = &v1alpha1.ScanLease{Name: "import-1", Holder: "runner-1"}
		now := made.Add(time.Minute)
		observe(scan, progressOf(scan, liveness{dead: givenUp("its Lease is gone")}, now), now)
	}
	abandoned := "1 completed >Failed " + v1alpha1.ControllerFieldManager + " +1h0m0s"
	cases := []struct {
		reason string
		steps  []step
		want   []string
	}{
		{"a scan that runs has nothing to tell", []step{{nothing, 0}, {nothing, time.Minute}}, nil},
		{"a success, dated by the write and not by the look", []step{{nothing, 0}, {ends(time.Minute, v1alpha1.ScanSucceeded), time.Hour}},
			[]string{"1 completed >Succeeded scanner/gosec +1m0s"}},
		{"a failure that the importer tells", []step{{ends(time.Minute, v1alpha1.ScanFailed), time.Minute}},
			[]string{"1 completed >Failed scanner/gosec +1m0s"}},
		{"another look adds nothing", []step{{ends(time.Minute, v1alpha1.ScanFailed), time.Minute}, {nothing, day}},
			[]string{"1 completed >Failed scanner/gosec +1m0s"}},
		{"given up, dated when its time was over and not when it was checked", []step{{nothing, 0}, {nothing, 5 * time.Hour}, {nothing, day}},
			[]string{abandoned}},
		{"given up once, though the clock goes back", []step{{nothing, time.Hour}, {nothing, time.Minute}, {nothing, day}},
			[]string{abandoned}},
		{"a success that comes late is one more", []step{{nothing, time.Hour}, {ends(2*time.Hour, v1alpha1.ScanSucceeded), 2 * time.Hour}},
			[]string{abandoned, "2 completed Failed>Succeeded scanner/gosec +2h0m0s"}},
		{"a failure that comes late is one more: it has counts", []step{{nothing, time.Hour}, {ends(2*time.Hour, v1alpha1.ScanFailed), 2 * time.Hour}, {nothing, day}},
			[]string{abandoned, "2 completed Failed>Failed scanner/gosec +2h0m0s"}},
		{"a late end that nobody saw to be late", []step{{nothing, 0}, {ends(2*time.Hour, v1alpha1.ScanSucceeded), day}},
			[]string{"1 completed >Succeeded scanner/gosec +2h0m0s"}},
		{"a scan that ended before transitions were kept is not new", []step{{func(scan *v1alpha1.Scan) {
			end(scan, made, v1alpha1.ScanSucceeded)
			look(scan, made)
			scan.Status.Transitions = nil
		}, time.Minute}, {nothing, day}}, nil},
		{"missed by its heartbeat, dated when that was found", []step{{nothing, 0}, {missed, time.Minute}, {nothing, day}},
			[]string{"1 completed >Failed " + v1alpha1.ControllerFieldManager + " +1m0s"}},
		{"an end after a missed heartbeat is the truth", []step{{missed, time.Minute}, {ends(2*time.Minute, v1alpha1.ScanSucceeded), 2 * time.Minute}},
			[]string{"1 completed >Failed " + v1alpha1.ControllerFieldManager + " +1m0s", "2 completed Failed>Succeeded scanner/gosec +2m0s"}},
		{"a scan recorded long after its start was not given up before it was there", []step{{func(scan *v1alpha1.Scan) {
			scan.Spec.StartedAt = v1alpha1.NewTime(made.Add(-day))
		}, time.Minute}}, []string{"1 completed >Failed " + v1alpha1.ControllerFieldManager + " +0s"}},
	}
	for _, c := range cases {
		scan := running()
		for _, s := range c.steps {
			s.change(scan)
			look(scan, made.Add(s.now))
		}
		harness.Same(t, c.reason, c.want, told(scan))
	}
}

// Whenever it is reconciled and whenever it ends, there is one end, or our guess and then the end.
// The phase follows the last one, and recorded transitions stay.
func TestAScanEndsOnceAndAtMostOnceMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scan := running()
		for range rapid.IntRange(1, 8).Draw(t, "looks") {
			if scan.Spec.Outcome == "" && rapid.Bool().Draw(t, "ends") {
				end(scan, made, rapid.SampledFrom([]v1alpha1.ScanOutcome{v1alpha1.ScanSucceeded, v1alpha1.ScanFailed}).Draw(t, "outcome"))
			}
			before := scan.Status.DeepCopy().Transitions
			look(scan, made.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "minute"))*time.Minute))
			after := scan.Status.Transitions
			if len(after) < len(before) || !slices.Equal(before, after[:len(before)]) {
				t.Fatalf("what was recorded has changed: %v", told(scan))
			}
		}
		got := scan.Status.Transitions
		wantOne := scan.Status.Phase != v1alpha1.ScanPhaseRunning
		if len(got) > 2 || (len(got) > 0) != wantOne {
			t.Fatalf("phase %s, history %v", scan.Status.Phase, told(scan))
		}
		if len(got) == 2 && (got[0].By != v1alpha1.ControllerFieldManager || got[1].By != "scanner/gosec") {
			t.Fatalf("two ends that the importer told: %v", told(scan))
		}
		if wantOne && (got[len(got)-1].To == string(v1alpha1.ScanSucceeded)) != (scan.Status.Phase == v1alpha1.ScanPhaseCompleted) {
			t.Fatalf("phase %s, history %v", scan.Status.Phase, told(scan))
		}
	})
}
