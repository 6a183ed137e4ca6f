package import_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/reviewimport"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

const commitC = "3333333333333333333333333333333333333333"

// pull is a pull request that belongs to one test.
type pull struct {
	*testing.T
	reviewimport.PullRequest
}

func newPull(t *testing.T) *pull {
	t.Helper()
	h := fnv.New32a()
	_, _ = h.Write([]byte(t.Name()))
	p := &pull{t, reviewimport.PullRequest{Namespace: namespace, Repository: repositoryName, Number: int32(h.Sum32()>>1) | 1}} //nolint:gosec // any number does
	p.Project = fmt.Sprintf("pull-%d", p.Number)                                                                               // in which nothing is found but what the test imports
	env.Create(p, builder.Project(p.Project).In(namespace).Repository(repositoryName).Build())
	return p
}

// base returns the project that the pull request's results are compared with.
func (p *pull) base() *project { return &project{p.T, p.Project} }

// try imports as the scanner, and leaves the error to the caller.
func (p *pull) try(options reviewimport.Options, sha string, documents ...string) (*reviewimport.Summary, error) {
	p.Helper()
	var batches []*importer.Batch
	if len(documents) > 0 {
		batches = collect(p, importer.Choices{Commit: sha, Analysis: new(string)}, documents...)
	}
	return reviewimport.New(newClient(p, scanner), p.PullRequest, options).Import(p.Context(), &reviewimport.Commit{SHA: sha}, batches)
}

// reviews reviews a commit, and expects success.
func (p *pull) reviews(sha string, documents ...string) *reviewimport.Summary {
	p.Helper()
	return p.imports(reviewimport.Options{}, sha, documents...)
}

// imports imports as the scanner, and expects success.
func (p *pull) imports(options reviewimport.Options, sha string, documents ...string) *reviewimport.Summary {
	p.Helper()
	s, err := p.try(options, sha, documents...)
	harness.Must(p, err)
	sum := s.Created + s.Reopened + s.Seen + s.Unchanged + s.Skipped
	if s.Base != nil {
		sum += s.Base.Known
	}
	if sum != s.Results {
		p.Errorf("%d results, but the parts add up to %d: %+v", s.Results, sum, *s)
	}
	return s
}

func (p *pull) review() *v1alpha1.Review {
	p.Helper()
	return testenv.Get(p, NewWithT(p), env, builder.Review(reviewimport.Name(repositoryName, p.Number)).In(namespace).Build())
}

// issues returns the pull request's issues by title.
func (p *pull) issues() map[string]v1alpha1.ReviewIssue {
	p.Helper()
	return p.issuesBy(func(i *v1alpha1.ReviewIssue) string { return i.Spec.Title })
}

func (p *pull) issuesBy(key func(*v1alpha1.ReviewIssue) string) map[string]v1alpha1.ReviewIssue {
	p.Helper()
	list := testenv.List(p, NewWithT(p), env, &v1alpha1.ReviewIssueList{}, client.InNamespace(namespace),
		client.MatchingFields{"spec.reviewRef.name": reviewimport.Name(repositoryName, p.Number)})
	out := map[string]v1alpha1.ReviewIssue{}
	for _, issue := range list.Items {
		out[key(&issue)] = issue
	}
	harness.Same(p, "different names of the issues", len(list.Items), len(out))
	return out
}

// states returns the states according to the rule, by title: "open", or "resolved by" and a commit.
func (p *pull) states() map[string]string {
	p.Helper()
	reviewed := p.review().Spec.ReviewedCommits
	out := map[string]string{}
	for title, issue := range p.issues() {
		observed := reviewstate.Observe(&issue.Spec, reviewed)
		out[title] = strings.TrimSpace(string(observed.State) + " " + observed.ResolvedBy)
	}
	return out
}

// versions returns the resource versions of everything that an import of the pull request could
// write.
func (p *pull) versions() map[string]string {
	p.Helper()
	out := map[string]string{"review": p.review().ResourceVersion}
	for title, issue := range p.issues() {
		out[title] = issue.ResourceVersion
	}
	return out
}

var (
	stays = builder.Result{Rule: "stays", Path: "a.go", Message: "stays", Line: 1}
	goes  = builder.Result{Rule: "goes", Path: "b.go", Message: "goes", Level: "warning", Line: 2}
	comes = builder.Result{Rule: "comes", Path: "c.go", Message: "comes", Level: "note", Line: 3}
)

func TestEachReviewedCommitResolvesAndReopensIssues(t *testing.T) {
	p := newPull(t)
	p.Title, p.Author = "Refund orders\nand more", "jo"
	if s := p.reviews(commitA, document(stays, goes)); s.Created != 2 || s.Open != 2 {
		t.Errorf("first commit: %+v, want 2 created and open", *s)
	}
	first := p.issues()["stays"]
	p.Title, p.Author = "", ""
	moved := stays
	moved.Line = 40
	if s := p.reviews(commitB, document(moved, comes)); s.Created != 1 || s.Seen != 1 || s.Resolved != 1 || s.Open != 2 {
		t.Errorf("second commit: %+v, want 1 created, seen and resolved each, 2 open", *s)
	}
	harness.Same(t, "states", map[string]string{"stays": "open", "goes": "resolved " + commitB, "comes": "open"}, p.states())
	if s := p.reviews(commitC, document(moved, goes)); s.Reopened != 1 || s.Seen != 1 || s.Resolved != 1 || s.Open != 2 {
		t.Errorf("third commit: %+v, want 1 reopened, seen and resolved each, 2 open", *s)
	}
	harness.Same(t, "states", map[string]string{"stays": "open", "goes": "open", "comes": "resolved " + commitC}, p.states())

	spec := p.review().Spec
	var shas []string
	for _, c := range spec.ReviewedCommits {
		shas = append(shas, c.SHA)
	}
	harness.Same(t, "commits in the order of their review", []string{commitA, commitB, commitC}, shas)
	harness.Same(t, "pull request", []string{"Refund orders", "jo", "github", "open"},
		[]string{spec.PRTitle, spec.PRAuthor, spec.Provider, string(spec.PRStatus)})

	issue := p.issues()["stays"]
	want := v1alpha1.ReviewIssueSpec{
		ReviewRef: v1alpha1.ReviewReference{Name: v1alpha1.ResourceName(p.review().Name)},
		Title:     "stays", Description: "stays", Severity: v1alpha1.LevelHigh,
		File: "a.go", Line: 40, CommitSHA: commitA,
		Links: v1alpha1.ReviewIssueLinks{
			Commit:       "https://github.com/acme/shop/commit/" + commitA,
			FileLocation: "https://github.com/acme/shop/blob/" + commitC + "/a.go#L40",
		},
		SeenInCommits: []v1alpha1.CommitSHA{commitA, commitB, commitC},
		Result: &v1alpha1.ReviewIssueResult{
			Key: issue.Spec.Result.Key, Evidence: issue.Spec.Result.Evidence, Project: v1alpha1.ResourceName(p.Project), Tool: "lint", Category: v1alpha1.CategoryCode,
			RuleID: "stays", Class: "stays", ToolSeverity: "error",
		},
		Triage: v1alpha1.ReviewIssueTriage{UserStatus: v1alpha1.UserStatusOpen},
	}
	harness.Same(t, "the issue that stays", want, issue.Spec)
	if issue.Name != first.Name || !strings.HasPrefix(issue.Name, "i-") || !strings.HasPrefix(p.review().Name, "r-") {
		t.Errorf("issue %s was %s; review %s", issue.Name, first.Name, p.review().Name)
	}

	before := p.versions()
	for sha, file := range map[string]string{commitC: document(moved, goes), commitA: document(stays, goes)} {
		if s := p.reviews(sha, file); s.Unchanged != s.Results || s.Resolved != 0 {
			t.Errorf("commit %s again: %+v, want all unchanged", sha, *s)
		}
	}
	harness.Same(t, "what the same files at the same commits wrote", before, p.versions())
}

// An issue describes the last commit: a late file for an earlier commit does not change it.
func TestAFileForAnEarlierCommitMovesNothing(t *testing.T) {
	p := newPull(t)
	p.reviews(commitA, document(goes))
	moved := stays
	moved.Line = 40
	p.reviews(commitB, document(moved, goes))
	p.reviews(commitA, builder.SARIF("lint", stays, goes))
	got := p.issues()["stays"].Spec
	if got.Line != 40 || len(got.SeenInCommits) != 2 || !strings.HasSuffix(got.Links.FileLocation, commitB+"/a.go#L40") {
		t.Errorf("the issue is at line %d (%s), seen in %v; want line 40 as in the last commit, and both commits", got.Line, got.Links.FileLocation, got.SeenInCommits)
	}
}

// A commit does not count until all its results are written.
func TestTheCommitIsTheLastThingWritten(t *testing.T) {
	p := newPull(t)
	for n, sha := range []string{commitA, commitB} {
		early := 0
		options := reviewimport.Options{OnProgress: func(int, int) { early = max(early, len(p.review().Spec.ReviewedCommits)-n) }}
		p.imports(options, sha, document(numbered(5)...))
		if early != 0 || len(p.review().Spec.ReviewedCommits) != n+1 {
			t.Errorf("commit %d was recorded while its issues were written, or never", n+1)
		}
	}
}

// stopped is a pull request whose imports are stopped while the API server answers a write: what is stored must not be
// reported as failed.
type stopped struct {
	*pull
	client *importer.Client
	// The write has the member in its body and is of an object at the path; its answer is lost.
	path, member string
	lost         bool
	stop         context.CancelFunc
}

func newStopped(t *testing.T) *stopped {
	t.Helper()
	s := &stopped{pull: newPull(t)}
	s.client = through(t, scanner, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodPatch || !strings.Contains(r.URL.Path, s.path) {
			return next.RoundTrip(r)
		}
		sent, err := bodyOf(r)
		if err != nil {
			return nil, err
		}
		response, err := next.RoundTrip(r)
		if bytes.Contains(sent, []byte(s.member)) {
			s.stop()
			if s.lost {
				s.lost = false
				return nil, errors.New("the answer is lost")
			}
			if r.Context().Err() != nil { // the answer is under way
				return nil, r.Context().Err()
			}
		}
		return response, err
	})
	return s
}

// during returns a context that ends during the write.
func (s *stopped) during(path, member string, lost bool) context.Context {
	ctx, stop := context.WithCancel(s.Context())
	s.Cleanup(stop)
	s.path, s.member, s.lost, s.stop = path, member, lost, stop
	return ctx
}

func (s *stopped) imports(ctx context.Context, options importer.Options,
	results ...builder.Result) ([]*importer.Summary, error) {
	batches := collect(s, importer.Choices{}, document(results...))
	return importer.New(s.client, s.base().target(), options).Import(ctx, batches)
}

// reviews reviews a commit that shows nothing, and records its Scan.
func (s *stopped) reviews(ctx context.Context, sha string) error {
	record := &reviewimport.Record{Upload: v1alpha1.ScanUpload{ID: "u-" + s.Project, Scans: 1}, Project: s.Project}
	_, err := reviewimport.New(s.client, s.PullRequest, reviewimport.Options{Record: record}).
		Import(ctx, &reviewimport.Commit{SHA: sha}, collect(s, importer.Choices{Commit: sha, Analysis: new(string)}, document()))
	return err
}

func TestAReviewThatIsStoppedDuringItsLastWriteCounts(t *testing.T) {
	s := newStopped(t)
	s.pull.reviews(commitA, document(goes))
	harness.NoError(t, "the review", s.reviews(s.during("/reviews/", "reviewedCommits", false), commitB))
	harness.Same(t, "the issue", "resolved "+commitB, s.states()["goes"])
	scans := s.base().scans()
	harness.Same(t, "scans", 1, len(scans))
	harness.Same(t, "the outcome of scan "+scans[0].Name, v1alpha1.ScanSucceeded, scans[0].Spec.Outcome)
	_, err := reviewimport.New(s.client, s.PullRequest, reviewimport.Options{}).
		Import(s.during("/reviews/", "reviewedCommits", true), &reviewimport.Commit{SHA: commitC}, nil)
	harness.ErrorContains(t, "a review whose last answer is lost", err,
		"it is not known whether its commit was recorded: review again")
}

func TestAnImportThatIsStoppedDuringAWriteCountsIt(t *testing.T) {
	s := newStopped(t)
	for _, lost := range []bool{false, true} {
		_, err := s.imports(s.during("/scans/", "completedAt", lost), importer.Options{})
		harness.NoError(t, fmt.Sprintf("the import, whose last answer is lost: %t", lost), err)
	}
	scans := s.base().scans()
	harness.Same(t, "scans", 2, len(scans))
	for _, scan := range scans {
		harness.Same(t, "the outcome of scan "+scan.Name, v1alpha1.ScanSucceeded, scan.Spec.Outcome)
	}
	ctx := s.during("/findings/", "ruleID", false)
	summaries, err := s.imports(ctx, importer.Options{Concurrency: 1}, numbered(3)...)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("an import that is stopped during its first finding: error %v", err)
	}
	harness.Same(t, "its findings, and how many it counted", []int{1, 1}, []int{len(s.base().findings()), summaries[0].Created})
}

func TestAScanThatIsCreatedWhileItsImportIsStoppedGetsAnEnd(t *testing.T) {
	s := newStopped(t)
	for reason, imports := range map[string]func(context.Context) error{
		"an import": func(ctx context.Context) error {
			_, err := s.imports(ctx, importer.Options{})
			return err
		},
		"a review": func(ctx context.Context) error { return s.reviews(ctx, commitC) },
	} {
		before := len(s.base().scans())
		if err := imports(s.during("/scans/", "startedAt", false)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s that is stopped while its Scan is created: error %v", reason, err)
		}
		scans := s.base().scans()
		running := slices.DeleteFunc(slices.Clone(scans), func(s v1alpha1.Scan) bool { return s.Spec.Outcome != "" })
		harness.Same(t, reason+": its Scans, and how many of all stay without an end", []int{1, 0}, []int{len(scans) - before, len(running)})
	}
}

func TestAMergedPullRequestIsNotOpenedAgain(t *testing.T) {
	p := newPull(t)
	p.reviews(commitA, document(stays))
	issue := p.issues()["stays"].ResourceVersion
	p.Status = v1alpha1.PullRequestMerged
	_, err := reviewimport.New(newClient(p, scanner), p.PullRequest, reviewimport.Options{}).Import(t.Context(), nil, nil)
	harness.Must(t, err)
	if got := p.review().Spec; got.PRStatus != v1alpha1.PullRequestMerged || len(got.ReviewedCommits) != 1 {
		t.Errorf("the pull request is %s with %d commits", got.PRStatus, len(got.ReviewedCommits))
	}
	harness.Same(t, "version of the issue", issue, p.issues()["stays"].ResourceVersion)
	p.Status = v1alpha1.PullRequestOpen
	before := p.versions()
	_, err = p.try(reviewimport.Options{}, commitB, document(goes))
	p.base().wantRefused(err, "is merged, and a merged pull request stays merged")
	harness.Same(t, "a refused import wrote", before, p.versions())
	p.Status = ""
	p.reviews(commitB, document(stays))
	if got := p.review().Spec; got.PRStatus != v1alpha1.PullRequestMerged || len(got.ReviewedCommits) != 2 {
		t.Errorf("a commit reviewed late: the pull request is %s with %d commits", got.PRStatus, len(got.ReviewedCommits))
	}
}

func TestADryRunOfAReviewWritesNothing(t *testing.T) {
	p := newPull(t)
	p.imports(reviewimport.Options{DryRun: true}, commitA, document(stays))
	harness.Same(t, "issues after a dry run without a review", 0, len(p.issues()))
	p.reviews(commitA, document(stays, goes))
	before := p.versions()
	s := p.imports(reviewimport.Options{DryRun: true}, commitB, document(stays, comes))
	got := map[string]reviewimport.Action{}
	for _, c := range s.Changes {
		got[c.Title] = c.Action
	}
	harness.Same(t, "changes", map[string]reviewimport.Action{
		"stays": reviewimport.ActionSee, "goes": reviewimport.ActionResolve, "comes": reviewimport.ActionCreate,
	}, got)
	harness.Same(t, "a dry run wrote", before, p.versions())
	p.reviews(commitB, document(stays, comes))
	if s.Open != 2 || len(p.issues()) != 3 {
		t.Errorf("the dry run foretold %d open issues, and there are %d in all", s.Open, len(p.issues()))
	}
}

// Two pushes in quick succession are reviewed concurrently: neither may be lost, and their results
// must not be mixed.
func TestReviewsOfOnePullRequestDoNotCross(t *testing.T) {
	t.Parallel() // it mostly waits
	p := newPull(t)
	const commits = 6
	var group errgroup.Group
	for i := range commits {
		sha := fmt.Sprintf("%040d", i)
		group.Go(func() error {
			_, err := p.try(reviewimport.Options{}, sha, document(numbered(10+i)...))
			return err
		})
	}
	harness.Must(p, group.Wait())
	reviewed := p.review().Spec.ReviewedCommits
	if len(reviewed) != commits {
		t.Fatalf("%d commits are recorded, want %d", len(reviewed), commits)
	}
	for title, issue := range p.issues() {
		var n int
		_, err := fmt.Sscanf(title, "problem %d", &n)
		harness.Must(t, err)
		want := commits - max(0, n-9)
		harness.Same(t, "commits in which "+title+" is seen", want, len(issue.Spec.SeenInCommits))
	}
}

// Changes that somebody else makes to the Review during an import are kept.
func TestAForeignChangeOfTheReviewStays(t *testing.T) {
	p := newPull(t)
	p.reviews(commitA, document(numbered(30)...))
	renamed := false
	options := reviewimport.Options{OnProgress: func(int, int) {
		if renamed {
			return
		}
		renamed = true
		review := p.review()
		review.Spec.PRTitle = "Renamed"
		review.Spec.ReviewedCommits = append(review.Spec.ReviewedCommits, v1alpha1.ReviewedCommit{SHA: commitC, ReviewedAt: review.Spec.ReviewedCommits[0].ReviewedAt})
		harness.NoError(t, "update the review", env.Client.Update(p.Context(), review))
	}}
	p.imports(options, commitB, document(numbered(30)...))
	spec := p.review().Spec
	got := []string{spec.PRTitle}
	for _, c := range spec.ReviewedCommits {
		got = append(got, c.SHA)
	}
	harness.Same(t, "title and commits", []string{"Renamed", commitA, commitC, commitB}, got)
}

func TestAReviewHoldsItsLeaseAndFreesIt(t *testing.T) {
	p := newPull(t)
	held := 0
	options := reviewimport.Options{OnProgress: func(int, int) { held = max(held, len(p.heldLeases())) }}
	p.imports(options, commitA, document(stays))
	if after := len(p.heldLeases()); held != 1 || after != 0 {
		t.Errorf("%d Leases were held at work and %d after it, want 1 and none", held, after)
	}
}

// heldLeases returns the names of the Leases of reviews that are held.
func (p *pull) heldLeases() (names []string) {
	p.Helper()
	list := testenv.List(p, NewWithT(p), env, &coordinationv1.LeaseList{}, client.InNamespace(namespace))
	for _, lease := range list.Items {
		if strings.HasPrefix(lease.Name, "review-") && lease.Spec.HolderIdentity != nil {
			names = append(names, lease.Name)
		}
	}
	return names
}

// kubectl returns the command `kubectl findings review` for the pull request.
func (p *pull) kubectl(arguments ...string) *exec.Cmd {
	p.Helper()
	return kubectl(p, "review", append([]string{"--repository", repositoryName, "--project", p.Project, "--pr", strconv.Itoa(int(p.Number))}, arguments...)...)
}

func TestThePluginRecordsReviews(t *testing.T) {
	p := newPull(t)
	both := sarifFile(p, document(stays, goes))
	one, other := sarifFile(p, document(stays)), sarifFile(p, builder.SARIF("other", comes))
	for _, step := range []struct {
		reason    string
		arguments []string
		want      string
	}{
		{"the state of an unknown one", []string{"--status", "open", "--pr", "999"}, "open: new review r-"},
		{"the end of an unknown one", []string{"--status", "merged", "--pr", "998"},
			"\n  warning: pull request 998 has no review: check its number, unless retention has removed its review; if it is wrong, have a cluster administrator delete the review at the API server "},
		{"the last commit of an unknown one", []string{both, "--commit", commitA, "--status", "closed", "--pr", "997"},
			p.Namespace + "; that also deletes its issues and people's decisions about them"},
		{"a dry run", []string{both, "--commit", commitA, "--dry-run"}, "2 new"},
		{"a commit", []string{both, "--commit", commitA, "--title", "Refund orders", "--author", "jo"},
			"open: 2 results = 2 new + 0 back + 0 seen before + 0 unchanged + 0 of the base + 0 skipped; 0 resolved, 2 open"},
		{"the same again", []string{both, "--commit", commitA}, "2 unchanged"},
		{"two files", []string{one, other, "--commit", strings.ToUpper(commitB)}, "2 results = 1 new + 0 back + 1 seen before + 0 unchanged + 0 of the base + 0 skipped; 1 resolved, 2 open"},
		{"a comment, with its warning beside it", []string{both, "--commit", commitA, "--format", "markdown"}, "warning: commit " + commitA + " was reviewed before"},
		{"nothing found", []string{"--clean", "--commit", commitC, "-o", "json"}, `"resolved": 2`},
		{"the pull request alone", []string{"--status", "merged"}, "merged: review r-"},
	} {
		command := p.kubectl(step.arguments...)
		command.Args = lastOfEach(command.Args, "--pr")
		t.Log(step.reason)
		harness.Run(t, command).Wants(step.want)
	}
	if spec := p.review().Spec; len(spec.ReviewedCommits) != 3 || spec.PRTitle != "Refund orders" || spec.PRStatus != v1alpha1.PullRequestMerged {
		t.Errorf("the review is %+v", spec)
	}
	quiet := harness.Run(t, p.kubectl(one, "--commit", commitC, "--quiet")).Wants()
	harness.Same(t, "a quiet review says", "", quiet.Stdout+quiet.Stderr)
	// A role in one namespace is none in another.
	harness.Run(t, p.kubectl(one, "--commit", commitC, "--namespace", "org-other")).Fails("forbidden")
}

// A scanner of secrets that is not known by its name may quote the secret in its message.
func TestThePluginReviewsWithTheCategoryOfTheBase(t *testing.T) {
	const secret, warning = "AKIAABCDEFGHIJKLMNOP", "was scanned with category Secret: no finding counts as fixed"
	leaks := func(paths ...string) string {
		var results []builder.Result
		for _, path := range paths {
			results = append(results, builder.Result{Rule: path, Path: path, Message: secret + " found", Line: 1})
		}
		return builder.SARIF("AcmeLeaks", results...)
	}
	p := newPull(t)
	p.base().importsAll(importer.Options{}, collect(t, importer.Choices{Category: v1alpha1.CategorySecret}, leaks("stays.yaml", "goes.yaml")))
	review := []string{sarifFile(p, leaks("stays.yaml", "comes.yaml")), "--commit", commitA}
	harness.Run(t, p.kubectl(append(review, "--dry-run")...)).Wants("findings fixed: 0", warning)
	said := harness.Run(t, p.kubectl(append(review, "--category", "secret")...)).Wants("= 1 new", "known: 1", "findings fixed: 1")
	harness.Lacks(t, "the review", said.Stdout, warning)
	for _, issue := range p.issues() {
		if strings.Contains(issue.Spec.Title+issue.Spec.Description, secret) {
			t.Errorf("the issue shows the secret: %q, %q", issue.Spec.Title, issue.Spec.Description)
		}
	}
}

func TestThePluginRecognisesTheIssuesOfAToolsFormerName(t *testing.T) {
	p := newPull(t)
	p.reviews(commitA, builder.SARIF("Lint", stays))
	renamed := sarifFile(p, builder.SARIF("Lint Pro", stays))
	harness.Run(t, p.kubectl(renamed, "--commit", commitB, "--formerly", "Lint")).Wants("= 0 new + 0 back + 1 seen before", "0 resolved, 1 open")
}

// A review that is killed in the middle resolves nothing, and the next review converges.
func TestAReviewThatIsKilledResolvesNothing(t *testing.T) {
	const reported = 150
	p := newPull(t)
	p.reviews(commitA, document(append(numbered(reported), goes)...))
	file := sarifFile(p, document(numbered(reported)...))
	cmd := direct(p, p.kubectl(file, "--commit", commitB, "--concurrency", "1"))
	harness.Must(p, cmd.Start())
	written := func() (n int) {
		for _, issue := range p.issues() {
			if len(issue.Spec.SeenInCommits) == 2 {
				n++
			}
		}
		return n
	}
	NewWithT(t).Eventually(written, time.Minute, 40*time.Millisecond).Should(BeNumerically(">=", 10))
	harness.Must(p, cmd.Process.Kill())
	_ = cmd.Wait()
	if n := written(); n == reported {
		t.Fatal("the review came to its end before it was killed: this test shows nothing")
	}
	for title, state := range p.states() {
		harness.Same(t, title, "open", state)
	}
	for _, name := range p.heldLeases() {
		endSoon(t, name)
	}
	s := p.reviews(commitB, document(numbered(reported)...))
	if s.Resolved != 1 || s.Open != reported || p.states()["goes"] != "resolved "+commitB {
		t.Errorf("after the next: %+v, want 1 resolved and %d open", *s, reported)
	}
}

func TestAReviewKeepsWhatPeopleDecidedAboutAnIssue(t *testing.T) {
	p := newPull(t)
	first := stays
	first.Snippet = "stays()"
	p.reviews(commitA, document(first, goes))
	issue := p.issues()["stays"]
	env.Patch(t, &issue, `{"spec":{"triage":{"userStatus":"muted","reason":"duplicate","comments":"seen"}}}`)
	declared := issue.Spec.Triage
	moved := first
	moved.Line, moved.Level = 70, "warning"
	p.reviews(commitB, document(moved))
	p.reviews(commitC, document(goes))
	kept := p.issues()["stays"]
	harness.Same(t, "the decision", declared, kept.Spec.Triage)
	if kept.Spec.Line != 70 || kept.Spec.Severity != v1alpha1.LevelHigh {
		t.Errorf("the issue has not moved, or lost the severity that was muted: %+v", kept.Spec)
	}
}

// The key of its result identifies an issue in the base branch.
func TestAnIssueHasTheKeyOfTheFindingThatItBecomes(t *testing.T) {
	p := newPull(t)
	once := builder.Result{Rule: "once", Path: "a.go", Message: "once", Line: 3, Snippet: "md5.New()"}
	twice := builder.Result{Rule: "twice", Path: "a.go", Message: "twice", Line: 5, Snippet: "sha1.New()"}
	again := twice
	again.Line = 50
	p.reviews(commitA, document(once, twice, again))
	once.Line = 30 // other pull requests were merged before it
	p.base().imports(document(once), commitB)
	finding := p.base().titled("once")
	key := fingerprints.Key(&finding.Spec)
	for _, issue := range p.issuesBy(func(i *v1alpha1.ReviewIssue) string { return i.Name }) {
		want := ""
		if issue.Spec.Title == "once" {
			want = key
		}
		if r := issue.Spec.Result; r == nil || r.Key != want || string(r.Project) != p.Project || r.Tool != "lint" || r.RuleID != issue.Spec.Title {
			t.Errorf("%s: result %+v, want the key %q", issue.Spec.Title, r, want)
		}
		if got := fingerprints.ShownBy(&reviewstate.Facts(&issue, &p.review().Spec).Spec); want != "" && got != fingerprints.ShownBy(&finding.Spec) {
			t.Errorf("the issue shows another result than the finding: %+v", got)
		}
	}
	if key == "" {
		t.Error("the finding has no key")
	}
}

// refusesOnce returns a client to which the API server refuses the first outcome of a Scan.
func (p *pull) refusesOnce() *importer.Client {
	p.Helper()
	var refused atomic.Bool
	return through(p, scanner, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if !strings.Contains(r.URL.Path, "/scans/") {
			return next.RoundTrip(r)
		}
		sent, err := bodyOf(r)
		if err != nil {
			return nil, err
		}
		if bytes.Contains(sent, []byte(v1alpha1.ScanSucceeded)) && !refused.Swap(true) {
			answer := httptest.NewRecorder()
			answer.Header().Set("Content-Type", "application/json")
			answer.WriteHeader(http.StatusForbidden)
			_, _ = answer.WriteString(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
			return answer.Result(), nil
		}
		return next.RoundTrip(r)
	})
}

func TestAnOutcomeThatCannotBeWrittenChangesNoOther(t *testing.T) {
	p := newPull(t)
	batches := collect(p, importer.Choices{Commit: commitC, Analysis: new(string)}, builder.SARIF("first", stays), builder.SARIF("second", goes))
	record := &reviewimport.Record{Upload: v1alpha1.ScanUpload{ID: "u-" + p.Project, Scans: 2}, Project: p.Project}
	_, err := reviewimport.New(p.refusesOnce(), p.PullRequest, reviewimport.Options{Record: record}).
		Import(t.Context(), &reviewimport.Commit{SHA: commitC}, batches)
	harness.ErrorContains(t, "the import", err, "record the end of scan")
	list := testenv.List(t, NewWithT(t), env, &v1alpha1.ScanList{}, client.InNamespace(namespace), client.MatchingFields{"spec.projectRef.name": p.Project})
	outcomes := map[v1alpha1.ScanOutcome]int{}
	for _, scan := range list.Items {
		outcomes[scan.Spec.Outcome]++
	}
	harness.Same(t, "outcomes of what was stored", map[v1alpha1.ScanOutcome]int{"": 1, v1alpha1.ScanSucceeded: 1}, outcomes)
}

// Nothing would remove a Review or a Scan that is written later.
func TestNothingIsRecordedInARepositoryOrProjectThatIsDeletedMeanwhile(t *testing.T) {
	const waits, recorded, writing = "it waits", "its scans are recorded", "its issues are being written"
	for name, c := range map[string]struct {
		when, deleted string
		anew          bool
		reviews       int // each with its commit
	}{
		"the repository, while the review waits": {waits, "repository", true, 0},
		"the repository, before the comparison":  {recorded, "repository", false, 0},
		"the project, while the review waits":    {waits, "project", true, 0},
		"the project, before the comparison":     {recorded, "project", false, 0},
		"the project, while issues are written":  {writing, "project", false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it mostly waits
			p := newPull(t)
			p.Repository, p.Project = "of-"+p.Project, p.Project+"-of-its-own"
			p.declare()
			remove := sync.OnceFunc(func() { p.remove(c.deleted == "repository", c.anew) })
			removeWhen := func(when string) {
				if when == c.when {
					remove()
				}
			}
			if c.when == waits {
				p.lease()
			}
			_, err := p.try(reviewimport.Options{
				OnWaiting:  func(string) { removeWhen(waits) },
				OnProgress: func(int, int) { removeWhen(writing) },
				Record: &reviewimport.Record{Upload: v1alpha1.ScanUpload{ID: "u-" + p.Project, Scans: 2}, Project: p.Project,
					OnRecorded: func() { removeWhen(recorded) }},
			}, commitA, builder.SARIF("first", stays), builder.SARIF("second", goes))
			p.base().wantRefused(err, c.deleted+` "`, "was deleted during the import")
			harness.Same(t, "refusals", 1, strings.Count(err.Error(), "was deleted"))
			reviews, commits := p.reviewsOfRepository()
			harness.Same(t, "scans, reviews and reviewed commits that are left", []int{0, c.reviews, c.reviews}, []int{len(p.base().scans()), reviews, commits})
		})
	}
}

// A busy project has very many of them.
func TestImportsAndReviewsReadNoScansOfPullRequestsAndRefusedUploads(t *testing.T) {
	p := newPull(t)
	record := &reviewimport.Record{Upload: v1alpha1.ScanUpload{ID: "u-" + p.Project, Scans: 1}, Project: p.Project}
	p.imports(reviewimport.Options{Record: record}, commitA, document(stays))
	refusing := importer.New(newClient(t, scanner), p.base().target(), importer.Options{Upload: &record.Upload})
	harness.Must(t, refusing.Refuse(t.Context(), collect(t, importer.Choices{}, document(stays))[0], errors.New("no")))
	var read []string
	counting := through(t, scanner, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err != nil || !strings.HasSuffix(r.URL.Path, "/scans") {
			return response, err
		}
		body, err := io.ReadAll(response.Body)
		list := v1alpha1.ScanList{}
		if err = cmp.Or(err, json.Unmarshal(body, &list)); err != nil {
			return nil, err
		}
		for _, scan := range list.Items {
			read = append(read, scan.Name)
		}
		response.Body = io.NopCloser(bytes.NewReader(body))
		return response, nil
	})
	summaries, err := importer.New(counting, p.base().target(), importer.Options{}).
		Import(t.Context(), collect(t, importer.Choices{}, document(goes)))
	harness.Must(t, err)
	batches := collect(t, importer.Choices{Commit: commitB, Analysis: new(string)}, document(stays))
	_, err = reviewimport.New(counting, p.PullRequest, reviewimport.Options{}).
		Import(t.Context(), &reviewimport.Commit{SHA: commitB}, batches)
	harness.Must(t, err)
	harness.Same(t, "scans", 3, len(p.base().scans()))
	harness.Same(t, "those that were read", []string{summaries[0].Scan}, read)
}

// One that somebody deletes by itself is recorded again.
func TestAScanThatIsDeletedDuringItsReviewStillGetsAnEnd(t *testing.T) {
	p := newPull(t)
	record := &reviewimport.Record{Upload: v1alpha1.ScanUpload{ID: "u-" + p.Project, Scans: 1}, OnRecorded: func() {
		harness.Must(t, env.Client.Delete(t.Context(), &p.base().scans()[0]))
	}}
	p.imports(reviewimport.Options{Record: record}, commitA, document(stays))
	scans := p.base().scans()
	harness.Same(t, "scans", 1, len(scans))
	harness.Same(t, "its outcome", v1alpha1.ScanSucceeded, scans[0].Spec.Outcome)
}

// declare creates the repository and the project, unless they exist.
func (p *pull) declare() {
	p.Helper()
	for _, object := range []client.Object{
		builder.Repository(p.Repository).In(namespace).URL("https://github.com/acme/" + p.Repository).Build(),
		builder.Project(p.Project).In(namespace).Repository(p.Repository).Build(),
	} {
		harness.Must(p, client.IgnoreAlreadyExists(env.Client.Create(p.Context(), object)))
	}
}

// remove deletes the project, or the repository with its projects and reviews, as the controllers do. anew creates
// others of their names.
func (p *pull) remove(repository, anew bool) {
	p.Helper()
	p.base().remove(false)
	if repository {
		harness.Must(p, env.Client.Delete(p.Context(), builder.Repository(p.Repository).In(namespace).Build()))
		harness.Must(p, env.Client.DeleteAllOf(p.Context(), &v1alpha1.Review{}, client.InNamespace(namespace),
			client.MatchingFields{"spec.repositoryRef.name": p.Repository}))
	}
	if anew {
		p.declare()
	}
}

// lease makes the next review of the pull request wait for about two seconds.
func (p *pull) lease() {
	p.Helper()
	lease := &coordinationv1.Lease{}
	lease.Namespace, lease.Name = namespace, "review-"+fingerprints.Hash(p.Repository, fmt.Sprint(p.Number))
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = new("another"), new(int32(1))
	env.Create(p, lease)
}

func (p *pull) reviewsOfRepository() (reviews, commits int) {
	p.Helper()
	list := testenv.List(p, NewWithT(p), env, &v1alpha1.ReviewList{}, client.InNamespace(namespace),
		client.MatchingFields{"spec.repositoryRef.name": p.Repository})
	for i := range list.Items {
		commits += len(list.Items[i].Spec.ReviewedCommits)
	}
	return len(list.Items), commits
}
