package importer

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// A job replaces only its own findings.
func TestWhichJobOwnsAFinding(t *testing.T) {
	scanned := series{category: v1alpha1.CategoryPackage}
	past := history{
		"nightly":    {series: scanned, succeeded: true, wrote: true},
		"nightly-2":  {series: scanned, succeeded: true},
		"incomplete": {series: series{category: v1alpha1.CategorySecret}, startedAt: time.Unix(1, 0), wrote: true},
		"refused":    {series: series{category: v1alpha1.CategoryCode}, completedAt: time.Unix(2, 0)},
	}
	for name, tc := range map[string]struct {
		reason         string
		category       v1alpha1.FindingCategory
		scan, closedBy string
		own            bool
		job            v1alpha1.FindingCategory // empty: the one that scanned
	}{
		"its own":                  {"", v1alpha1.CategoryPackage, "nightly", "", true, ""},
		"of another category":      {"a tool may look for several things at once", v1alpha1.CategorySecret, "nightly", "", true, ""},
		"of a job without success": {"it would be closed as not reported", v1alpha1.CategorySecret, "incomplete", "", false, ""},
		"closed by this job":       {"its own job reports it again", v1alpha1.CategorySecret, "incomplete", "nightly-2", false, ""},
		"scan removed, closed":     {"the closing scan is the best that is known", v1alpha1.CategorySecret, "removed", "nightly-2", true, ""},
		"scan removed":             {"no other job has succeeded", v1alpha1.CategorySecret, "removed", "", true, ""},
		"scan removed, job is new": {"the job that has succeeded made it", v1alpha1.CategoryCode, "removed", "", false, v1alpha1.CategoryCode},
		"scan removed, job never succeeds": {
			"its incomplete scans write findings too", v1alpha1.CategorySecret, "removed", "", true, v1alpha1.CategorySecret,
		},
	} {
		t.Run(name, func(t *testing.T) {
			job := scanned
			if tc.job != "" {
				job.category = tc.job
			}
			f := v1alpha1.Finding{Spec: v1alpha1.FindingSpec{Category: tc.category, Scan: &v1alpha1.FindingScan{ScanID: tc.scan}}}
			if tc.closedBy != "" {
				f.Spec.Closed = &v1alpha1.FindingClosure{ScanID: tc.closedBy}
			}
			own, _ := past.ofJob(job, []v1alpha1.Finding{f})
			harness.Same(t, "own, because "+tc.reason, tc.own, len(own) == 1)
		})
	}
}

func TestWhichAnalysesAreDistinct(t *testing.T) {
	past := history{"s-1": {series: series{analysis: "scanned"}}}
	findings := []v1alpha1.Finding{{Spec: v1alpha1.FindingSpec{Analysis: "found"}}}
	got := past.distinct([]string{"new", "scanned", "newer", "found", "", "scanned", "newest"}, findings)
	harness.Same(t, "of analyses without a scan or finding the first, and the others once", []string{"new", "scanned", "found", ""}, got)
}

// A scan whose clock was ahead was imported before every later one.
func TestAScanOfAClockThatWasAheadDoesNotRefuseLaterOnes(t *testing.T) {
	imported := v1alpha1.Now()
	ahead := v1alpha1.Scan{
		ObjectMeta: metav1.ObjectMeta{Name: "ahead", CreationTimestamp: metav1.NewTime(imported.Time)},
		Spec:       v1alpha1.ScanSpec{StartedAt: v1alpha1.NewTime(imported.AddDate(0, 0, 1)), Outcome: v1alpha1.ScanSucceeded},
	}
	past := history{}
	past.add([]v1alpha1.Scan{ahead})
	last, name := past.last(series{})
	harness.Must(t, guardAge(imported.Add(time.Second), last, name))
}

func TestWhetherAScanIsTooOldIsDecidedPerAnalysis(t *testing.T) {
	at := func(second int64) v1alpha1.Time { return v1alpha1.NewTime(time.Unix(second, 0)) }
	past := history{}
	past.add([]v1alpha1.Scan{{
		ObjectMeta: metav1.ObjectMeta{Name: "s-1"},
		Spec:       v1alpha1.ScanSpec{Analysis: "new", StartedAt: at(9), Outcome: v1alpha1.ScanSucceeded},
	}})
	for analysis, refused := range map[string]bool{"new": true, "old": false} {
		j := &job{Batch: &Batch{Analysis: analysis}, scan: scanContext{startedAt: at(8)}, scans: past}
		if err := (&Importer{}).guardAge(t.Context(), j); (err != nil) != refused {
			t.Errorf("a scan of the analysis %s: %v, want refused %t", analysis, err, refused)
		}
	}
}

// What an unfinished scan wrote is only in doubt until a scan of its job succeeds.
func TestWhichScansAreUnfinished(t *testing.T) {
	code, secrets := series{category: v1alpha1.CategoryCode}, series{category: v1alpha1.CategorySecret}
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	past := history{
		"repeated":         {series: code, recordedAt: at(1), completedAt: at(2)},
		"killed, repeated": {series: code, startedAt: at(50), recordedAt: at(3)},
		"newer, repeated":  {series: code, startedAt: at(99), recordedAt: at(4), completedAt: at(5)},
		"success":          {series: code, startedAt: at(50), recordedAt: at(6), completedAt: at(8), succeeded: true},
		"same file":        {series: code, startedAt: at(50), recordedAt: at(8), completedAt: at(9)},
		"older, forced":    {series: code, startedAt: at(1), recordedAt: at(9), completedAt: at(10)},
		"killed":           {series: code, startedAt: at(50), recordedAt: at(10)},
		"incomplete":       {series: code, startedAt: at(50), recordedAt: at(11), completedAt: at(12), incomplete: true},
		"of another job":   {series: secrets, recordedAt: at(1), completedAt: at(2)},
	}
	want := []string{"incomplete", "killed", "of another job", "older, forced", "same file"}
	harness.Same(t, "unfinished scans", want, slices.Sorted(maps.Keys(past.unfinished())))
	harness.Same(t, "their positions", map[string]int{
		"of another job": 1, "same file": 2, "older, forced": 3, "killed": 4, "incomplete": 5,
	}, past.unfinished().positions())
	past["incomplete, of no analysis"] = pastScan{series: series{category: v1alpha1.CategoryPackage}, incomplete: true}
	past["of the second"] = pastScan{series: series{code.category, "the second"}, startedAt: at(60), succeeded: true}
	for reason, tc := range map[string]struct {
		batch Batch
		want  bool
	}{
		"one of its own":               {Batch{Category: code.category}, true},
		"none but one cut off":         {Batch{Category: secrets.category}, false},
		"one whose findings it adopts": {Batch{Category: v1alpha1.CategoryPackage, Analysis: "the first"}, true},
		"none since it adopts them":    {Batch{Category: code.category, Analysis: "the second"}, false},
	} {
		harness.Same(t, "incomplete by "+reason, tc.want, past.knownTo(&tc.batch, nil, nil).incomplete)
	}
}

// An import that was cut off, or that the API server refused, says nothing about what the tool has looked at.
func TestAScanIsIncompleteIfItsImportDidItsPart(t *testing.T) {
	failed := func(name, message string, done, total int32) v1alpha1.Scan {
		return v1alpha1.Scan{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ScanSpec{
			Outcome: v1alpha1.ScanFailed, CompletedAt: &v1alpha1.Time{}, Message: message,
			Progress: &v1alpha1.ScanProgress{Done: done, Total: total},
		}}
	}
	refused := FailedMessage(guardRefusals(2, 0, errors.New("a freeze")))
	killed, succeeded := failed("killed", "", 1, 2), failed("succeeded", "", 2, 2)
	killed.Spec.Outcome, killed.Spec.CompletedAt = "", nil
	succeeded.Spec.Outcome = v1alpha1.ScanSucceeded
	past := history{}
	past.add([]v1alpha1.Scan{
		failed("incomplete", "nothing was closed: the tool failed", 2, 2), failed("incomplete, nothing to write", "nothing was closed: it failed", 0, 0),
		failed("cut off", FailedMessage(errors.New("lost the lease")), 1, 2), failed("every change refused", refused, 2, 2), killed, succeeded,
	})
	maps.DeleteFunc(past, func(_ string, scan pastScan) bool { return !scan.incomplete })
	harness.Same(t, "incomplete scans", []string{"incomplete", "incomplete, nothing to write"}, slices.Sorted(maps.Keys(past)))
}
