package reviewimport

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// serve returns a client of an API server that holds the cluster's review and issues, and the findings of the base, which
// were detected then.
func (c *cluster) serve(t *testing.T, base []found, detected time.Time) *importer.Client {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: pr.Namespace, Name: name, CreationTimestamp: metav1.NewTime(start)}
	}
	kind := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind}
	}
	review := v1alpha1.Review{TypeMeta: kind("Review"), ObjectMeta: meta(Name(pr.Repository, pr.Number)), Spec: *c.review}
	repository := *shop
	repository.TypeMeta = kind("Repository")
	issues := v1alpha1.ReviewIssueList{TypeMeta: kind("ReviewIssueList")}
	for name, spec := range c.issues {
		issues.Items = append(issues.Items, v1alpha1.ReviewIssue{TypeMeta: kind("ReviewIssue"), ObjectMeta: meta(name), Spec: spec})
	}
	findings := v1alpha1.FindingList{TypeMeta: kind("FindingList")}
	for _, f := range base {
		finding := v1alpha1.Finding{TypeMeta: kind("Finding"), ObjectMeta: meta(f.Name), Spec: f.Facts}
		finding.Spec.DetectedAt = new(v1alpha1.NewTime(detected))
		finding.Spec.ProjectRef.Name = "web"
		findings.Items = append(findings.Items, finding)
	}
	project := meta("web")
	project.Annotations = map[string]string{v1alpha1.BesideAnnotation: c.patterns}
	objects := map[string]any{
		"repositories/shop": repository, "reviews/" + review.Name: review,
		"reviewissues": issues, "findings": findings,
		"scans": v1alpha1.ScanList{TypeMeta: kind("ScanList")},
		"projects": v1alpha1.ProjectList{TypeMeta: kind("ProjectList"), Items: []v1alpha1.Project{{
			ObjectMeta: project, Spec: v1alpha1.ProjectSpec{RelativePath: "services/web"},
		}}},
	}
	var reads atomic.Int32 // of the repository
	return answeredBy(t, func(r *http.Request) (code int, object any) {
		_, path, _ := strings.Cut(r.URL.Path, "/namespaces/"+pr.Namespace+"/")
		if c.onRead != nil {
			c.onRead(path)
		}
		object = objects[path]
		if path == "repositories/shop" && reads.Add(1) > 1 && c.anew {
			another := repository
			another.UID = "another"
			object = another
		}
		if object == nil || r.Method != http.MethodGet {
			t.Errorf("%s %s", r.Method, r.URL.Path)
		}
		return http.StatusOK, object
	})
}

// answeredBy returns a client of an API server that answers each request with what the function returns for it.
func answeredBy(t *testing.T, answer func(*http.Request) (code int, object any)) *importer.Client {
	t.Helper()
	client, err := importer.NewClient(&rest.Config{Host: harness.ServeJSON(t, answer)})
	harness.Must(t, err)
	return client
}

// A finding of the base that only resembles an issue would take its result away: the gate would pass, and the next
// commit would resolve what it still shows.
func TestADoubtfulMatchInTheBaseHidesNoOpenIssue(t *testing.T) {
	for _, tc := range []struct {
		reason   string
		first    []string // become issues in c0, and stay open
		commit   string
		base     []string
		detected time.Duration // of the base's finding, after the first review
		results  []string
		// of the base
		known, inDoubt, fixed int
	}{
		{"another pull request brings a similar problem to the base", []string{"25 eval:eval(b)"}, "c0", []string{"40 eval:eval(c)"}, time.Minute,
			[]string{"25 eval:eval(b)"}, 0, 0, 0},
		{"and then the next commit is reviewed", []string{"25 eval:eval(b)"}, "c1", []string{"40 eval:eval(c)"}, time.Minute,
			[]string{"25 eval:eval(b)"}, 0, 0, 0},
		{"the problem of the base is repaired", []string{"20 eval:eval(b)"}, "c1", []string{"10 eval:eval(a)"}, -time.Hour,
			[]string{"20 eval:eval(b)"}, 0, 0, 1},
		{"the problem of the base stays", []string{"20 eval:eval(b)"}, "c1", []string{"10 eval:eval(a)"}, -time.Hour,
			[]string{"10 eval:eval(a)", "20 eval:eval(b)"}, 1, 0, 0},
		{"the problem of the base changes, and the issue is nearer", []string{"8 eval:eval(b)"}, "c1", []string{"10 eval:eval(a)"}, -time.Hour,
			[]string{"8 eval:eval(b)", "16 eval:eval(aa)"}, 1, 1, 0},
		{"two issues are alike", []string{"20 eval:eval(b)", "30 eval:eval(b)"}, "c1", []string{"40 eval:eval(b)"}, time.Minute,
			[]string{"20 eval:eval(b)", "30 eval:eval(b)"}, 0, 0, 0},
		{"all problems move, and another of the base is repaired", []string{"25 eval:eval(b)"}, "c1",
			[]string{"10 eval:eval(b)", "12 eval:eval(b)", "30 eval:eval(a)"}, -time.Hour,
			[]string{"13 eval:eval(b)", "15 eval:eval(b)", "28 eval:eval(b)"}, 2, 0, 1},
		{"only the issue moves, and another problem of the base is repaired", []string{"25 eval:eval(b)"}, "c1",
			[]string{"10 eval:eval(b)", "12 eval:eval(b)", "30 eval:eval(a)"}, -time.Hour,
			[]string{"10 eval:eval(b)", "12 eval:eval(b)", "27 eval:eval(b)"}, 2, 0, 1},
		{"lines come between the issue and a problem of the base with its code", []string{"25 eval:eval(b)"}, "c1",
			[]string{"30 eval:eval(b)"}, -time.Hour,
			[]string{"25 eval:eval(b)", "80 eval:eval(b)"}, 1, 0, 0},
		{"two issues move, and two problems of the base with their code are nearer to their lines", []string{"14 eval:eval(b)", "16 eval:eval(b)"}, "c1",
			[]string{"10 eval:eval(b)", "12 eval:eval(b)", "30 eval:eval(a)", "32 eval:eval(a)"}, -time.Hour,
			[]string{"10 eval:eval(b)", "12 eval:eval(b)", "20 eval:eval(b)", "22 eval:eval(b)"}, 2, 0, 2},
		{"the matches of both are in doubt, and the issue is nearer", []string{"25 eval"}, "c1", []string{"10 eval"}, -time.Hour, []string{"27 eval"}, 0, 0, 1},
		{"both are as near", []string{"20 eval"}, "c1", []string{"10 eval"}, -time.Hour, []string{"15 eval"}, 0, 0, 1},
		{"the base has one that is alike, and all problems move", []string{"25 eval:eval(b)"}, "c1",
			[]string{"10 eval:eval(b)", "30 eval:eval(a)"}, -time.Hour,
			[]string{"13 eval:eval(b)", "28 eval:eval(b)"}, 1, 0, 1},
		{"only offsets tell it from a problem of the base", []string{"0 strcpy@900"}, "c1", []string{"0 strcpy@100"}, -time.Hour,
			[]string{"0 strcpy@100", "0 strcpy@900"}, 1, 0, 0},
	} {
		c := newCluster()
		c.importsResults(t, "c0", results(tc.first...), nil)
		im := New(c.serve(t, results(tc.base...), start.Add(tc.detected)), pr, Options{DryRun: true})
		s, err := im.Import(t.Context(), &Commit{SHA: tc.commit, ReviewedAt: start.Add(time.Hour)}, []*importer.Batch{batchOf("ESLint", tc.results...)})
		harness.Must(t, err)
		if want := len(tc.first); s.Open != want || GateNew.Judge(s).Passed || s.Resolved != 0 {
			t.Errorf("%s: %d are open and %d resolved, want %d and 0: %v", tc.reason, s.Open, s.Resolved, want, s.Warnings)
		}
		harness.Same(t, tc.reason+": known, in doubt, fixed", [3]int{tc.known, tc.inDoubt, tc.fixed}, [3]int{s.Base.Known, s.Base.InDoubt, s.Base.Fixed})
	}
}

// Until the tool's own file for the commit comes, the commit does not show its issues.
func TestADoubtfulMatchInTheBaseHidesNoIssueOfTheCommitBefore(t *testing.T) {
	c := newCluster()
	c.importsResults(t, "c0", results("20 eval:eval(b)"), nil)
	c.importsResults(t, "c1", resultsOf("gosec", "5 x"), nil)
	im := New(c.serve(t, results("10 eval:eval(a)"), start.Add(-time.Hour)), pr, Options{DryRun: true})
	s, err := im.Import(t.Context(), &Commit{SHA: "c1", ReviewedAt: start.Add(time.Hour)}, []*importer.Batch{batchOf("ESLint", "20 eval:eval(b)")})
	harness.Must(t, err)
	harness.Same(t, "open, known, fixed", [3]int{2, 0, 1}, [3]int{s.Open, s.Base.Known, s.Base.Fixed})
}

// A job that names the commit in full and one that shortens it scan the same commit: their results add up.
func TestAHashInFullAndShortenedIsOneCommit(t *testing.T) {
	const full, short = "8f3e1c2d4b5a69788796a5b4c3d2e1f001234567", "8f3e1c2d"
	for recorded, given := range map[string]string{short: full, full: short} {
		c := newCluster()
		c.importsResults(t, recorded, results("20 eval:eval(b)"), nil)
		im := New(c.serve(t, nil, start), pr, Options{DryRun: true})
		s, err := im.Import(t.Context(), &Commit{SHA: given, ReviewedAt: start.Add(time.Hour)}, []*importer.Batch{batchOf("gosec")})
		harness.Must(t, err)
		if s.Open != 1 || s.Resolved != 0 || GateHigh.Judge(s).Passed || s.Commit != given {
			t.Errorf("commit %s, recorded as %s: %d are open and %d resolved, want 1 and 0", s.Commit, recorded, s.Open, s.Resolved)
		}
	}
}

// The findings of a deleted repository or project are removed first: all results would be new, and the gate would fail.
func TestADryRunJudgesNoRepositoryThatIsDeletedDuringTheComparison(t *testing.T) {
	c := newCluster()
	c.anew = true
	c.importsResults(t, "c0", nil, nil)
	im := New(c.serve(t, nil, start), pr, Options{DryRun: true})
	_, err := im.Import(t.Context(), &Commit{SHA: "c1", ReviewedAt: start.Add(time.Hour)}, []*importer.Batch{batchOf("ESLint", "10 eval")})
	harness.ErrorContains(t, "the import", err, `repository "shop" was deleted during the import`)
}

// turn is the only turn, which counts those who have it.
type turn struct {
	had  *atomic.Int32
	over bool
}

func (t turn) Over() bool { return t.over }

func (t turn) End() { t.had.Add(-1) }

// A pull request may have as many issues as its repository has findings, and a dry run waits without a Lease.
func TestIssuesAreListedInATurnWithTheFindingsOfTheBase(t *testing.T) {
	for over, want := range map[bool]int32{false: 1, true: 2} {
		var had, turns atomic.Int32
		c := newCluster()
		c.importsResults(t, "c0", results("10 eval"), nil)
		var mu sync.Mutex
		var issues int32
		listed := map[string]int32{}
		c.onRead = func(path string) {
			mu.Lock()
			defer mu.Unlock()
			if path == "reviewissues" || path == "findings" {
				listed[path] = had.Load()
			}
			if path == "reviewissues" {
				issues++
			}
		}
		client := c.serve(t, nil, start)
		client.WaitForTurn = func(context.Context) (importer.Turn, error) {
			turns.Add(1)
			had.Add(1)
			return turn{&had, over}, nil
		}
		batches := []*importer.Batch{batchOf("ESLint", "10 eval"), batchOf("gosec")}
		_, err := New(client, pr, Options{DryRun: true}).Import(t.Context(), &Commit{SHA: "c1", ReviewedAt: start.Add(time.Hour)}, batches)
		harness.Must(t, err)
		harness.Same(t, "turns while they are listed", map[string]int32{"reviewissues": 1, "findings": 1}, listed)
		harness.Same(t, "all turns, lists of issues, and turns that have not ended", []int32{want, want, 0}, []int32{turns.Load(), issues, had.Load()})
	}
}

func TestOfTwoDoubtfulMatchesTheNearerCounts(t *testing.T) {
	c := newCluster()
	c.importsResults(t, "c0", results("25 eval"), nil)
	im := New(c.serve(t, results("10 eval"), start.Add(-time.Hour)), pr, Options{DryRun: true})
	s, err := im.Import(t.Context(), &Commit{SHA: "c1", ReviewedAt: start.Add(time.Hour)}, []*importer.Batch{batchOf("ESLint", "12 eval")})
	harness.Must(t, err)
	harness.Same(t, "open, resolved, known", [3]int{0, 1, 1}, [3]int{s.Open, s.Resolved, s.Base.Known})
}

// mutedAfter mutes the finding, which had the code of the other one when somebody decided.
func mutedAfter(f, decided *found) {
	f.Facts.Triage = v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusMuted, Basis: findingstate.Basis(&decided.Facts)}
}

// closedSince closes a finding of the base after the pull request began.
func closedSince(spec *v1alpha1.FindingSpec) {
	spec.Closed = &v1alpha1.FindingClosure{ScanID: "s-2", At: v1alpha1.NewTime(start.Add(30 * time.Minute))}
}

// It would pass the gate as known from the base, and be muted after the merge.
func TestOtherCodeInThePlaceOfAMutedFindingIsAnIssue(t *testing.T) {
	for _, tc := range []struct {
		reason string
		first  []string // become issues in c0, and stay open
		base   string
		muted  string                      // the finding of the base as it was when somebody muted it; empty: nobody has
		change func(*v1alpha1.FindingSpec) // of the base, may be nil
		result string
		known  int
	}{
		{"at its line", nil, "10 eval:eval(a)", "10 eval:eval(a)", nil, "10 eval:eval(b)", 0},
		{"near its line", nil, "10 eval:eval(a)", "10 eval:eval(a)", nil, "14 eval:eval(b)", 0},
		{"and it is an issue already", []string{"14 eval:eval(b)"}, "10 eval:eval(a)", "10 eval:eval(a)", nil, "14 eval:eval(b)", 0},
		{"muted before decisions recorded their basis", nil, "10 eval:eval(a)", "10 eval:eval(a)",
			func(spec *v1alpha1.FindingSpec) { spec.Triage.Basis = "" }, "10 eval:eval(b)", 0},
		{"the base has changed since, in another way", nil, "10 eval:eval(c)", "10 eval:eval(a)", nil, "10 eval:eval(b)", 0},
		{"the base has changed since, and the branch has not", nil, "10 eval:eval(c)", "10 eval:eval(a)", nil, "10 eval:eval(a)", 1},
		{"so it has, and the severity has changed", nil, "10 eval:eval(c)", "10 eval:eval(a)", func(spec *v1alpha1.FindingSpec) {
			spec.Triage.Basis = strings.Replace(spec.Triage.Basis, "high", "low", 1)
		}, "10 eval:eval(a)", 1},
		{"nobody muted it", nil, "10 eval:eval(a)", "", nil, "14 eval:eval(b)", 1},
		{"it is confirmed", nil, "10 eval:eval(a)", "10 eval:eval(a)",
			func(spec *v1alpha1.FindingSpec) { spec.Triage.UserStatus = v1alpha1.UserStatusActive }, "14 eval:eval(b)", 1},
		{"the same code", nil, "10 eval:eval(a)", "10 eval:eval(a)", nil, "40 eval:eval(a)", 1},
		{"no code, and the scanner rates it higher", nil, "10 eval", "10 eval", func(spec *v1alpha1.FindingSpec) {
			spec.Details.Severity, spec.Triage.Basis = v1alpha1.LevelLow, "severity=low"
		}, "14 eval", 1},
	} {
		base := results(tc.base)
		if tc.muted != "" {
			mutedAfter(&base[0], &results(tc.muted)[0])
		}
		if tc.change != nil {
			tc.change(&base[0].Facts)
		}
		c := newCluster()
		c.importsResults(t, "c0", results(tc.first...), nil)
		im := New(c.serve(t, base, start.Add(-time.Hour)), pr, Options{DryRun: true})
		s, err := im.Import(t.Context(), &Commit{SHA: "c1", ReviewedAt: start.Add(time.Hour)}, []*importer.Batch{batchOf("ESLint", tc.result)})
		harness.Must(t, err)
		harness.Same(t, tc.reason+": known, open, replaced, fixed", [4]int{tc.known, 1 - tc.known, 1 - tc.known, 0},
			[4]int{s.Base.Known, s.Open, s.Base.Replaced, s.Base.Fixed})
		warned := strings.HasPrefix(strings.Join(s.Warnings, "\n"), "Results of ESLint with other code in the place of findings that are muted in the base: 1.")
		harness.Same(t, tc.reason+": warned", tc.known == 0, warned)
	}
}

// The issue that stays in the place of the second finding leaves that finding to other results, but not to one that is
// an issue itself.
func TestAResultInThePlaceOfAMutedFindingTakesNoOtherFinding(t *testing.T) {
	muted, open := results("10 eval:eval(a)"), results("14 eval:eval(c)")
	mutedAfter(&muted[0], &muted[0])
	base := slices.Concat(muted, open)
	c := newCluster()
	c.importsResults(t, "c0", results("14 eval:eval(d)"), nil)
	im := New(c.serve(t, base, start.Add(-time.Hour)), pr, Options{DryRun: true})
	s, err := im.Import(t.Context(), &Commit{SHA: "c1", ReviewedAt: start.Add(time.Hour)},
		[]*importer.Batch{batchOf("ESLint", "13 eval:eval(b)", "14 eval:eval(d)")})
	harness.Must(t, err)
	harness.Same(t, "known, open, replaced", [3]int{0, 2, 1}, [3]int{s.Base.Known, s.Open, s.Base.Replaced})
}

func TestAMutedFindingThatIsClosedSinceIsKnownByItsFingerprintWhateverItsCode(t *testing.T) {
	at := func(place string) *importer.Batch {
		batch := batchOf("ESLint", place)
		batch.Results[0].Fingerprints = map[string]string{"primaryLocationLineHash": "f00"}
		return batch
	}
	for _, tc := range []struct {
		reason string
		closed bool
		result string
	}{
		{"open, and at another line", false, "14 eval:eval(b)"},
		{"closed, and at another line", true, "14 eval:eval(b)"},
		{"closed, and at its line", true, "10 eval:eval(b)"},
	} {
		base := describedBy(at("10 eval:eval(a)"))
		mutedAfter(&base[0], &base[0])
		if tc.closed {
			closedSince(&base[0].Facts)
		}
		c := newCluster()
		c.importsResults(t, "c0", nil, nil)
		im := New(c.serve(t, base, start.Add(-time.Hour)), pr, Options{DryRun: true})
		s, err := im.Import(t.Context(), &Commit{SHA: "c1", ReviewedAt: start.Add(time.Hour)}, []*importer.Batch{at(tc.result)})
		harness.Must(t, err)
		harness.Same(t, tc.reason+": known, in doubt, open", [3]int{1, 0, 0}, [3]int{s.Base.Known, s.Base.InDoubt, s.Open})
	}
}

func TestASuppressedResultInThePlaceOfAMutedFindingFixesNothing(t *testing.T) {
	base := results("10 eval:eval(a)")
	mutedAfter(&base[0], &base[0])
	batch := batchOf("ESLint", "10 eval:eval(a) // nosec")
	batch.Results[0].Suppression = &sarif.Suppression{InSource: true}
	batch.Results, batch.Suppressed = nil, batch.Results
	c := newCluster()
	c.importsResults(t, "c0", nil, nil)
	im := New(c.serve(t, base, start.Add(-time.Hour)), pr, Options{DryRun: true})
	s, err := im.Import(t.Context(), &Commit{SHA: "c1", ReviewedAt: start.Add(time.Hour)}, []*importer.Batch{batch})
	harness.Must(t, err)
	harness.Same(t, "open, replaced, fixed", [3]int{}, [3]int{s.Open, s.Base.Replaced, s.Base.Fixed})
}

func TestAnotherSecretBesideAMaskIsKnownFromTheBaseInDoubtUnlessItIsMuted(t *testing.T) {
	const dummy, secret = `pw = "dummy" # ***`, `pw = "real" # ***`
	for _, tc := range []struct {
		code                 string
		muted, closed        bool
		known, inDoubt, open int
	}{
		{dummy, false, false, 1, 0, 0}, {secret, false, false, 1, 1, 0}, {dummy, true, false, 1, 0, 0},
		{secret, true, false, 0, 0, 1}, {secret, true, true, 0, 0, 1},
	} {
		base := describedBy(secretWith(dummy))
		if tc.closed {
			closedSince(&base[0].Facts)
		}
		if tc.muted {
			mutedAfter(&base[0], &base[0])
		}
		c := newCluster()
		c.importsResults(t, "c0", nil, nil)
		im := New(c.serve(t, base, start.Add(-time.Hour)), pr, Options{DryRun: true})
		s, err := im.Import(t.Context(), &Commit{SHA: "c1", ReviewedAt: start.Add(time.Hour)}, []*importer.Batch{secretWith(tc.code)})
		harness.Must(t, err)
		harness.Same(t, fmt.Sprintf("%s, muted %t, closed %t: known, in doubt, open", tc.code, tc.muted, tc.closed), [3]int{tc.known, tc.inDoubt, tc.open}, [3]int{s.Base.Known, s.Base.InDoubt, s.Open})
	}
}

func TestAFileOfAnotherFolderThanTheFirstProjectFixesNothing(t *testing.T) {
	for _, tc := range []struct {
		reason   string
		growing  bool
		patterns string // in force when an import created the project
		want     int
	}{
		{"a person created the project", false, "", 1},
		{"imports create projects for folders", true, "", 0},
		{"an import created the project for its folder", false, "services/*", 0},
	} {
		c := newCluster()
		c.patterns = tc.patterns
		c.importsResults(t, "c0", nil, nil)
		im := New(c.serve(t, results("10 eval"), start.Add(-time.Hour)), pr, Options{DryRun: true, Growing: tc.growing})
		s, err := im.Import(t.Context(), &Commit{SHA: "c1", ReviewedAt: start.Add(time.Hour)}, []*importer.Batch{batchOf("ESLint")})
		harness.Must(t, err)
		harness.Same(t, tc.reason+": fixed", tc.want, s.Base.Fixed)
	}
}
