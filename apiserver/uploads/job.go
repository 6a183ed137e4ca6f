package uploads

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/safely"
	"github.com/appsec-dev/findings-operator/internal/version"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/provision"
	"github.com/appsec-dev/findings-operator/scanimport/reviewimport"
	"github.com/appsec-dev/findings-operator/scanimport/routing"
)

// Why an import is stopped.
var (
	errTooSlow  = fmt.Errorf("its scans were not recorded within %s", recordTimeout)
	errStopping = errors.New("the service is stopping")
	errTooLong  = fmt.Errorf("it took longer than %s", longest)
)

// job is a running import.
type job struct {
	Request
	id      string
	batches []*importer.Batch
	// commit of the pull request; nil for an upload of the scan branch.
	commit *reviewimport.Commit
	// recordedIn is the project in the Scans of a pull request that is reviewed without a project.
	recordedIn string
	// found is the import's target if the organization lets imports create it; nil if the target is that of the
	// request.
	found *importer.Found
	// recorded is closed once all its Scans are recorded, done when the job ends.
	recorded, done chan struct{}
	// The result, once done is closed: summaries of an import, reviewed of a pull request.
	summaries []*importer.Summary
	reviewed  *reviewimport.Summary
	err       error
}

// start runs the import in the background and calls release when it ends. It returns false once the service is
// closed.
func (s *Service) start(j *job, release func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	end := s.metrics.begin()
	s.jobs.Go(func() {
		defer close(j.done)
		defer release() // before done, because a client that was answered with the outcome may send the next upload
		defer end(j)
		j.err = safely.Func(func() error { return s.run(j) })()
		if stack := safely.Stack(j.err); stack != "" {
			s.log.Error("An import panicked", "upload", j.id, "error", j.err, "stack", stack)
		}
		s.logEnd(j)
	})
	return true
}

// logEnd logs the outcome, as an error if it is not the client's fault.
func (s *Service) logEnd(j *job) {
	level := slog.LevelInfo
	if outcomeOf(j) == outcomeFailed {
		level = slog.LevelError
	}
	s.log.Log(s.running, level, "An upload ended", "upload", j.id, "requestID", j.RequestID,
		"organization", j.Organization, "key", j.KeyName, "repository", j.Repository, "project", j.Project,
		"pullRequest", j.PullRequest.Number, "dryRun", j.DryRun, "error", j.err)
}

// run performs the import within its time limit.
func (s *Service) run(j *job) error {
	ctx, cancel := context.WithCancelCause(s.running)
	defer cancel(nil)
	defer time.AfterFunc(longest, func() { cancel(errTooLong) }).Stop()
	err := s.perform(ctx, cancel, j)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = errors.Join(cause, err)
	}
	return err
}

// perform executes the job. It cancels the context if it takes too long until its Scans are recorded.
func (s *Service) perform(ctx context.Context, cancel context.CancelCauseFunc, j *job) error {
	// The service account may only write facts.
	c, err := importer.NewClient(kube.As(s.config, j.Namespace, v1alpha1.UploadsServiceAccount))
	if err != nil {
		return err
	}
	c.WaitForTurn = s.waitForTurn(j)
	if err := findRepository(ctx, c, j); err != nil {
		return err
	}
	if err := provide(ctx, c, j); err != nil {
		return err
	}
	tooSlow := time.AfterFunc(recordTimeout, func() { cancel(errTooSlow) })
	defer tooSlow.Stop()
	if j.DryRun { // a dry run takes no Lease and records nothing
		tooSlow.Stop()
	}
	recorded := func() {
		tooSlow.Stop()
		close(j.recorded)
	}
	refused, err := j.check(ctx, c)
	switch {
	case err != nil:
		return err
	case refused != nil:
		return j.refuse(ctx, c, refused, recorded)
	case j.commit != nil:
		j.reviewed, err = j.review(ctx, c, recorded)
	default:
		j.summaries, err = j.scan(ctx, c, recorded)
	}
	return err
}

// check finds the projects of an upload that names no project, and refuses a ref whose results are not imported.
// refused is a reason to record in one Scan: then j.batches is not empty, and j.Project is the project to record it in.
func (j *job) check(ctx context.Context, c *importer.Client) (refused, err error) {
	switch {
	case j.Project == "":
		return assignProjects(ctx, c, j)
	case j.commit == nil && j.found.Assumed() == nil: // a created repository takes the ref as its branch
		return nil, checkRef(ctx, c, &j.Request)
	}
	return nil, nil
}

// growing reports that imports create projects for folders of the repository.
func (j *job) growing() bool { return j.Imports != nil && len(j.Imports.Projects) > 0 }

// assignProjects finds the projects of an upload's batches. A pull request is not split by project. refused is that of
// check.
func assignProjects(ctx context.Context, c *importer.Client, j *job) (refused, err error) {
	repository := &v1alpha1.Repository{}
	key := client.ObjectKey{Namespace: j.Namespace, Name: j.Repository}
	if err := importer.Require(ctx, c, "repository", key, repository); err != nil {
		return nil, err
	}
	table, err := routing.Read(ctx, c, key, j.growing())
	if err != nil {
		return nil, err
	}
	projects := table.Projects()
	if len(projects) == 0 {
		return nil, &importer.RefusedError{Reason: fmt.Sprintf("the repository %s has no project: create one", j.Repository)}
	}
	only, _ := table.Only()
	if j.commit != nil { // A pull request is not split: it is compared with the projects that it scanned.
		j.Project, j.recordedIn = only, projects[len(projects)-1].Name
		return nil, nil
	}
	j.Project = projects[len(projects)-1].Name
	if reason := refusedRef(repository, j.Ref); reason != "" {
		return &importer.RefusedError{Reason: reason}, nil
	}
	parts, err := table.Split(j.batches)
	switch {
	case err != nil:
		return &importer.RefusedError{Reason: err.Error()}, nil
	case len(parts) > maxScans:
		return &importer.RefusedError{Reason: tooManyScans(len(parts), "tool, category, analysis and project")}, nil
	}
	j.batches = parts
	return nil, nil
}

// importedWith returns the name and version of this program as the importer in a Scan.
func importedWith() string { return "findings-operator/" + version.String() }

// refuse records in one Scan why the upload is not imported, and returns the reason.
func (j *job) refuse(ctx context.Context, c *importer.Client, refused error, recorded func()) error {
	j.batches = j.batches[:1] // the importer counts them
	if err := j.importer(c, recorded).Refuse(ctx, j.batches[0], refused); err != nil {
		return err
	}
	return refused
}

// scan imports scans of the scan branch into the projects.
func (j *job) scan(ctx context.Context, c *importer.Client, recorded func()) ([]*importer.Summary, error) {
	summaries, err := j.importer(c, recorded).Import(ctx, j.batches)
	if _, is := errors.AsType[*importer.RefusedError](err); is && j.DryRun && len(summaries) > 0 {
		err = nil // the changes help to decide about force; the warnings report that it would be refused
	}
	return summaries, err
}

// importer returns the importer of the job's batches. It calls recorded once all their Scans are recorded.
func (j *job) importer(c *importer.Client, recorded func()) *importer.Importer {
	var scans atomic.Int32
	target := importer.Target{Namespace: j.Namespace, Repository: j.Repository, Project: j.Project}
	return importer.New(c, target, importer.Options{
		DryRun: j.DryRun, Found: j.found, Force: j.Force,
		Upload:     &v1alpha1.ScanUpload{ID: j.id, Scans: int32(len(j.batches))}, //nolint:gosec // bounded by maxScans
		ImportedBy: j.Author(),
		Importer:   importedWith(),
		OnRecorded: func(*importer.Batch, string) {
			if int(scans.Add(1)) == len(j.batches) {
				recorded()
			}
		},
	})
}

// Close refuses new uploads and waits for the running ones. When ctx ends, it stops them as Failed.
func (s *Service) Close(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.jobs.Wait()
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	s.stop(errStopping)
	<-ended
}

// checkRef refuses a ref that is not the repository's scan branch: importing its results would close findings
// that the scan branch still has.
func checkRef(ctx context.Context, c client.Client, request *Request) error {
	if request.Ref == "" {
		return nil
	}
	repository := &v1alpha1.Repository{}
	key := client.ObjectKey{Namespace: request.Namespace, Name: request.Repository}
	if err := importer.Require(ctx, c, "repository", key, repository); err != nil {
		return err
	}
	if reason := refusedRef(repository, request.Ref); reason != "" {
		return problem.InvalidQuery(reason).In("ref")
	}
	return nil
}

// refusedRef returns why results of the ref are not imported; empty if they are.
func refusedRef(repository *v1alpha1.Repository, ref string) string {
	const pull = "a pull request is uploaded with pull_request, or with a ref as refs/pull/412/head"
	branch, ownIsBranch := provision.BranchOf(repository)
	_, isBranch := provision.Branch(ref)
	switch {
	case branch == "":
		return "the repository names neither spec.scanBranch nor spec.defaultBranch: set one of them"
	case !ownIsBranch:
		return fmt.Sprintf("the repository's spec.scanBranch (or without one spec.defaultBranch) is %s, which is not "+
			"a branch: set spec.scanBranch to the branch that is scanned, and send that one as ref, such as "+
			"refs/heads/main", branch)
	case !isBranch:
		return fmt.Sprintf("%s is not a branch, and the project has the findings of the branch %s: upload results of "+
			"that branch only, with ref refs/heads/%s; %s", ref, branch, branch, pull)
	case provision.TakesRef(repository, ref):
		return ""
	}
	return fmt.Sprintf("%s is not the branch %s, whose findings the project has: %s", ref, branch, pull)
}

// problem returns the error of a finished job, with the objects that the job created before it, which stay.
func (j *job) problem() error {
	failure := *problem.Of(explain(j.err))
	if j.DryRun || j.found == nil || len(j.found.Provisioned) == 0 {
		return &failure
	}
	created := importer.KeptWarnings(importer.Warnings(j.found.Provisioned, false))
	failure.Detail += "; before that, " + strings.Join(created, "; ")
	return &failure
}

// kept ends the detail of a problem that came after something may have been written.
const kept = "; what is already written is kept"

// explain translates the error of an import into a problem.
func explain(err error) error {
	var refused *importer.RefusedError
	var tooLong *importer.TooLongError
	var known *problem.Problem
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &tooLong):
		return problem.InvalidBody("nothing was imported: " + tooLong.Error()).Coded(problem.CodeTooLong)
	case errors.Is(err, errTooSlow) && errors.Is(err, importer.ErrWaiting):
		return problem.Busy("another import of the same scans is under way", busyRetryAfter)
	case errors.Is(err, errStopping):
		return problem.TryAgain("the service is stopping"+kept, err)
	case errors.As(err, &refused), kube.IsQuotaExceeded(err):
		return problem.Refused(err)
	case kube.LacksField(err):
		p := problem.OutdatedCRDs(err)
		p.Detail += kept
		return p
	default:
		return problem.TryAgain("the import ended early"+kept, err)
	}
}
