package reviewimport

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/safely"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// parent is any repository or project.
var parent = metav1.PartialObjectMetadata{
	TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Project"},
	ObjectMeta: metav1.ObjectMeta{Name: "web"},
}

// storing returns a client of an API server that has every repository and project, and stores scans.
func storing(t *testing.T, store func(scan *v1alpha1.Scan)) *importer.Client {
	t.Helper()
	return answeredBy(t, func(r *http.Request) (code int, object any) {
		if r.Method == http.MethodGet {
			return http.StatusOK, parent
		}
		scan := scanOf(t, r)
		store(scan)
		return http.StatusOK, scan
	})
}

// scanOf returns the scan that the request writes.
func scanOf(t *testing.T, r *http.Request) *v1alpha1.Scan {
	t.Helper()
	scan := &v1alpha1.Scan{}
	harness.NoError(t, "decode the scan", json.NewDecoder(r.Body).Decode(scan))
	return scan
}

// Nothing removes a Scan that is created behind the removal of its project, and a new project of that name would show it.
func TestNoScanOfAReviewIsRecordedBehindTheRemovalOfItsProject(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		removed int // after so many writes
		created int
		want    []string
	}{
		{"before the second Scan is recorded", 1, 1, []string{`project "web" was deleted`}},
		{"before the second Scan ends", 3, 2, []string{"record the end of scan", `project "web" was deleted`}},
	} {
		writes, created := 0, 0
		c := answeredBy(t, func(r *http.Request) (code int, object any) {
			if r.Method == http.MethodGet && writes >= tc.removed && strings.Contains(r.URL.Path, "/projects/") {
				return harness.Refusal(apierrors.NewNotFound(schema.GroupResource{}, "web"))
			}
			if r.Method == http.MethodGet {
				return http.StatusOK, parent
			}
			scan := scanOf(t, r)
			switch writes++; {
			case writes == 3:
				return harness.Refusal(apierrors.NewForbidden(schema.GroupResource{}, scan.Name, nil))
			case scan.UID != "" && writes > tc.removed:
				return harness.Refusal(apierrors.NewConflict(schema.GroupResource{}, scan.Name, nil))
			case scan.UID == "":
				created++
			}
			scan.UID = "1"
			return http.StatusOK, scan
		})
		batches := []*importer.Batch{{Tool: "lint"}, {Tool: "gosec"}}
		im := New(c, pr, Options{Record: &Record{Project: "web"}})
		err := im.recorder(&Commit{SHA: "c0"}, batches, v1alpha1.ScanLease{}).
			during(t.Context(), newSummary(pr, batches), func() error { return nil })
		harness.ErrorContains(t, "the project is removed "+tc.reason, err, tc.want...)
		harness.Same(t, "Scans that were created", tc.created, created)
	}
}

// Otherwise its scans would be reported as those of a review that has died, and the cause would be only in the log.
func TestAReviewThatPanicsIsRecordedAsFailed(t *testing.T) {
	var scan v1alpha1.Scan // as it was written last
	c := storing(t, func(s *v1alpha1.Scan) { scan = *s })
	im, batches := New(c, pr, Options{Record: &Record{}}), []*importer.Batch{{Tool: "lint"}}
	recorder := im.recorder(&Commit{SHA: "c0"}, batches, v1alpha1.ScanLease{})
	err := recorder.during(t.Context(), newSummary(pr, batches), func() error { panic("no such result") })
	if safely.Stack(err) == "" {
		t.Errorf("got %v, want the panic", err)
	}
	if spec := scan.Spec; spec.Outcome != v1alpha1.ScanFailed || !strings.Contains(spec.Message, "panic: no such result") {
		t.Errorf("the scan is %q, and says %q", spec.Outcome, spec.Message)
	}
}

// What a scanner missed in a file counts as resolved: the gate may pass for it.
func TestACommentNamesTheFileThatAScannerCouldNotRead(t *testing.T) {
	var scans []*v1alpha1.Scan // as they were written last
	c := storing(t, func(scan *v1alpha1.Scan) { scans = append([]*v1alpha1.Scan{scan}, scans[:min(1, len(scans))]...) })
	const passed = "it passed"
	batches := []*importer.Batch{
		{Tool: "lint", Skipped: map[string]int{passed: 2}},
		{Tool: "ESLint", Skipped: map[string]int{passed: 1}, Warnings: []string{"errors about files, the first about a.js", "b.js", "c.js", "d.js", "e.js"}},
	}
	s := newSummary(pr, batches)
	recorder := New(c, pr, Options{Record: &Record{Gate: GateHigh}}).recorder(&Commit{SHA: "c0"}, batches, v1alpha1.ScanLease{})
	harness.Must(t, recorder.during(t.Context(), s, func() error {
		s.Base = &BaseSummary{Known: 3, InDoubt: 2, Unsuppressed: 1, Replaced: 5, Fixed: 4, Unscanned: []string{"lint"}}
		s.Commit, s.Gate = "c0", GateHigh.Judge(s)
		s.Created, s.Reopened, s.Seen, s.Unchanged, s.Resolved = 1, 2, 3, 4, 5
		s.Open, s.OpenMedium, s.OpenLow = 3, 2, 1
		s.Issues = []Issue{{Name: "i-1", Severity: v1alpha1.LevelMedium, Title: "eval", Place: "a.js:1", New: true}}
		s.Warnings = append(s.Warnings, "a warning of the importer") // it may quote what readers of the comment may not see
		return nil
	}))
	comment := string(s.Markdown())
	harness.Contains(t, "the comment, with the scanners' warnings alone", comment,
		"**Passed**", "Warning: `errors about files, the first about a.js`\n", "More warnings of the scanners: 2.")
	harness.Lacks(t, "the comment, with the scanners' warnings alone", comment, "of the importer")
	harness.Same(t, "the comment from the scans", comment, string(Recorded(scans).Markdown()))
	harness.Same(t, "what scans store of the result", s.result(), Recorded(scans).result())
	harness.Lacks(t, "the comment without the scan that has the warnings", string(Recorded(scans[:1]).Markdown()), "warnings")
}

func TestTheScansOfAReviewEndByTheAPIServersClock(t *testing.T) {
	server := time.Now().Add(-48 * time.Hour)
	testenv.SetServerTime(t, server)
	var scan v1alpha1.Scan // as it was written last
	c := storing(t, func(s *v1alpha1.Scan) { scan = *s })
	im, batches := New(c, pr, Options{Record: &Record{}}), []*importer.Batch{{Tool: "lint"}}
	recorder := im.recorder(&Commit{SHA: "c0"}, batches, v1alpha1.ScanLease{})
	harness.Must(t, recorder.during(t.Context(), newSummary(pr, batches), func() error { return nil }))
	if end := scan.Spec.CompletedAt; end == nil || end.Sub(server).Abs() > time.Minute {
		t.Errorf("it ended at %v, want about %v", end, server)
	}
}

func TestACommitIsNotReviewedInTheFutureOfTheAPIServer(t *testing.T) {
	testenv.SetServerTime(t, time.Now().Add(-48*time.Hour)) // the local clock is ahead
	c := newCluster()
	c.importsResults(t, "c0", nil, nil)
	im := New(c.serve(t, nil, start), pr, Options{DryRun: true})
	_, err := im.Import(t.Context(), &Commit{SHA: "c1", ReviewedAt: time.Now()}, []*importer.Batch{batchOf("ESLint")})
	harness.ErrorContains(t, "the import", err, "which is in the future")
}
