package reviewimport

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/apitime"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/routing"
)

// Options of an Importer.
type Options struct {
	// DryRun computes the difference and writes nothing.
	DryRun bool
	// Found is the result of importer.Provision; nil if it was not called. With DryRun, a repository that would be created
	// counts as existing.
	Found *importer.Found
	// Growing means that imports create projects for folders of the repository; see routing.NewTable.
	Growing bool
	// Concurrency is how many issues are written at the same time; 0: importer.DefaultConcurrency.
	Concurrency int
	// OnWaiting is called once if another import holds the pull request's Lease.
	OnWaiting func(holder string)
	// OnProgress is called with the number of written issues, from several goroutines but one at a time.
	OnProgress func(done, total int)
	// Record creates Scans for the review; nil: none.
	Record *Record
}

func (o *Options) setDefaults() {
	o.Concurrency = cmp.Or(max(o.Concurrency, 0), importer.DefaultConcurrency)
	if o.OnWaiting == nil {
		o.OnWaiting = func(string) {}
	}
	if o.OnProgress == nil {
		o.OnProgress = func(int, int) {}
	}
	if o.Record != nil && o.Record.OnRecorded == nil {
		o.Record.OnRecorded = func() {}
	}
}

// Importer records a review of one pull request.
type Importer struct {
	client   *importer.Client
	pr       PullRequest
	options  Options
	progress importer.Progress
	// repositoryUID and projectUID are the UIDs of the repository and of project() when the import began.
	repositoryUID, projectUID types.UID
	// uid is that of the review, once it was read or created.
	uid types.UID
	// sure returns an error if the Lease is no longer held.
	sure func(ctx context.Context) error
	// ending means that the last write has begun: the API server may carry it out even if it seems to fail.
	ending bool
}

// New returns an Importer; the client comes from importer.NewClient.
func New(c *importer.Client, pr PullRequest, options Options) *Importer {
	options.setDefaults()
	return &Importer{client: c, pr: pr, options: options, sure: func(context.Context) error { return nil }}
}

// Import records the pull request and, given a commit, that it was reviewed and that the batches hold everything found
// in it. With an error the summary holds what was done so far. The same results can safely be imported again, in whole
// or in part.
func (im *Importer) Import(ctx context.Context, commit *Commit, batches []*importer.Batch) (*Summary, error) {
	s := newSummary(im.pr, batches)
	repository, err := im.parents(ctx)
	if err != nil {
		return s, err
	}
	if im.options.DryRun {
		return s, im.run(ctx, repository, commit, batches, s)
	}
	lease := im.key("review-" + fingerprints.Hash(im.pr.Repository, fmt.Sprint(im.pr.Number)))
	return s, importer.WithLease(ctx, im.client, lease, im.options.OnWaiting,
		func(ctx context.Context, held importer.Held) error {
			im.sure = held.Sure
			// The parents may have been deleted while this import waited for its Lease.
			if err := im.checkParents(ctx); err != nil {
				return err
			}
			return im.recorder(commit, batches, held.ScanLease).during(ctx, s, func() error {
				err := im.run(ctx, repository, commit, batches, s)
				if err == nil || ctx.Err() == nil {
					return err
				}
				effect := "no issue was resolved by it"
				if im.ending {
					effect = "it is not known whether its commit was recorded"
				}
				return fmt.Errorf(importer.StoppedEarly+" (%w), %s: review again, what is already written is kept",
					context.Cause(ctx), effect)
			})
		})
}

// parents returns the repository, after checking that repository and project exist and belong together. It remembers
// their UIDs.
func (im *Importer) parents(ctx context.Context) (*v1alpha1.Repository, error) {
	repository, err := im.repository(ctx)
	if err != nil {
		return nil, err
	}
	im.repositoryUID = repository.UID
	if project := im.project(); project != "" {
		im.projectUID, err = importer.RequireProjectOfReview(ctx, im.client, im.key(project), im.pr.Repository,
			im.pr.Repository)
	}
	return repository, err
}

func (im *Importer) repository(ctx context.Context) (*v1alpha1.Repository, error) {
	if assumed := im.options.Found.Assumed(); im.options.DryRun && assumed != nil {
		return assumed, nil
	}
	repository := &v1alpha1.Repository{}
	return repository, importer.Require(ctx, im.client, "repository", im.key(im.pr.Repository), repository)
}

// project returns the project that the pull request is compared with, or else the one that its Scans name; empty if
// neither.
func (im *Importer) project() string {
	if im.pr.Project == "" && im.options.Record != nil && !im.options.DryRun {
		return im.options.Record.Project
	}
	return im.pr.Project
}

// checkParents returns a RefusedError if the repository or the project was deleted during the import, or is being
// deleted. Once it is gone, the controllers remove nothing that is written later.
func (im *Importer) checkParents(ctx context.Context) error {
	project := im.project()
	if err := im.checkRepository(ctx); err != nil || project == "" {
		return err
	}
	return importer.RequireSame(ctx, im.client, "project", im.key(project), im.projectUID)
}

func (im *Importer) checkRepository(ctx context.Context) error {
	if im.options.DryRun && im.options.Found.Assumed() != nil {
		return nil
	}
	return importer.RequireSame(ctx, im.client, "repository", im.key(im.pr.Repository), im.repositoryUID)
}

// complete refuses incomplete results of a tool, because what is missing would count as resolved.
func complete(batches []*importer.Batch) error {
	for _, b := range batches {
		if len(b.Incomplete) > 0 {
			return &importer.RefusedError{Reason: fmt.Sprintf("nothing was recorded, because %s did not cover "+
				"everything (%s): issues that are missing would count as resolved. Have it run to its end, or, if a result "+
				"cannot be read, fix its output or have it report less about that result; then review again",
				b.Tool, b.Incomplete[0])}
		}
	}
	return nil
}

// run performs the import while the Lease is held.
func (im *Importer) run(ctx context.Context, repository *v1alpha1.Repository, commit *Commit,
	batches []*importer.Batch, s *Summary) error {
	if err := complete(batches); err != nil {
		return err
	}
	review, err := im.review(ctx)
	if err != nil {
		return err
	}
	if commit != nil {
		s.Commit = commit.SHA
		if commit, err = commit.recordedAs(reviewedBy(review)); err != nil {
			return err
		}
	}
	now := apitime.Now()
	if err := refuseTime("the pull request cannot have been opened", im.pr.OpenedAt, now); err != nil {
		return err
	}
	if err := im.pr.refuseAnother(review, repository, commit); err != nil {
		return err
	}
	next, err := nextReview(specOf(review), im.pr, repository, commit, now)
	if err != nil {
		return err
	}
	s.PRStatus, s.NewReview = next.PRStatus, review == nil
	if s.NewReview && next.PRStatus != v1alpha1.PullRequestOpen {
		s.warnOfNumber(im.pr, commit != nil, im.options.DryRun)
	}
	if commit != nil {
		if review, err = im.recordIssues(ctx, repository, review, &next, commit, batches, s); err != nil {
			return err
		}
	}
	if im.options.DryRun {
		return nil
	}
	return importer.FinishWrite(ctx, func(ctx context.Context) error {
		im.ending = true
		return im.writeReview(ctx, review, func(current *v1alpha1.ReviewSpec) (v1alpha1.ReviewSpec, error) {
			return nextReview(current, im.pr, repository, commit, now)
		})
	})
}

// recordIssues writes the issues. It fails if the repository was deleted meanwhile, or the project before the end of
// the comparison with it. It first creates the review, without the commit, if it does not exist.
func (im *Importer) recordIssues(ctx context.Context, repository *v1alpha1.Repository, review *v1alpha1.Review,
	next *v1alpha1.ReviewSpec, commit *Commit, batches []*importer.Batch, s *Summary) (*v1alpha1.Review, error) {
	all, err := describe(repository, commit.SHA, im.pr.Project, batches, s)
	if err != nil {
		return review, err
	}
	base, err := im.base(ctx, im.pr.began(review, next))
	if err != nil {
		return review, err
	}
	p := &plan{
		review: s.Review, commit: commit.SHA, page: importer.CommitPage(&repository.Spec, commit.SHA),
		reviewed: next.ReviewedCommits, before: reviewedBy(review), renamed: renamed(batches),
	}
	if err := im.compare(ctx, p, repository, base, all, batches, s); err != nil || im.options.DryRun {
		return review, err
	}
	if review == nil {
		bare := *next.DeepCopy()
		bare.ReviewedCommits = nil
		if review, err = im.createReview(ctx, bare); err != nil {
			return nil, err
		}
	}
	if err := im.writeIssues(ctx, p, s); err != nil {
		return review, err
	}
	return review, im.checkRepository(ctx) // the issues belong to the repository, and no longer need the project
}

// base returns the base of the pull request, which began then.
func (im *Importer) base(ctx context.Context, began time.Time) (importer.Base, error) {
	base := importer.Base{Namespace: im.pr.Namespace, Project: im.pr.Project, Since: began}
	if im.pr.Project != "" {
		return base, nil
	}
	projects, err := routing.Read(ctx, im.client, im.key(im.pr.Repository), im.options.Growing)
	if err != nil {
		return base, err
	}
	base.Scanned, base.Holding = projects.Scanned, projects.Holding
	return base, nil
}

// compare compares all results with the issues and the base, adds the changes to the plan, and counts them; those of a
// dry run it lists. Each comparison needs the issues, which are listed anew with each turn.
func (im *Importer) compare(ctx context.Context, p *plan, repository *v1alpha1.Repository, base importer.Base,
	all []found, batches []*importer.Batch, s *Summary) error {
	turn := &turns{im: im, plan: p}
	defer turn.end()
	if err := turn.next(ctx); err != nil {
		return err
	}
	base.Between = turn.next
	base.Own = func(tool string) func(known importer.ResultSet) importer.Distances {
		return p.own(all, turn.issues, tool)
	}
	compared, err := base.Compare(ctx, im.client, repository, batches)
	if err == nil {
		err = im.checkParents(ctx) // a deleted project loses its findings first, which would make all results new
	}
	if err != nil {
		return err
	}
	results, known := s.divide(all, compared)
	p.match(results, turn.issues)
	p.markKnownInBase(known)
	s.passOver(p)
	s.count(p)
	s.warnOfOthers(p, im.pr.Project)
	s.compare(compared, batches)
	if im.options.DryRun {
		s.list(p)
	}
	return nil
}

// renamed returns the tools by the former names that the user gave.
func renamed(batches []*importer.Batch) map[string]string {
	out := map[string]string{}
	for _, b := range batches {
		if b.GivenFormer != "" {
			out[b.GivenFormer] = b.Tool
		}
	}
	return out
}

// divide returns the results that the base does not have, and those that it has, and counts the latter.
func (s *Summary) divide(all []found, base *importer.Compared) (out, known []found) {
	for _, f := range all {
		if base.Known[f.at()] {
			s.know(f.batch)
			known = append(known, f)
		} else {
			out = append(out, f)
		}
	}
	return out, known
}

// review returns the existing review, or nil. It fails if the review was deleted during the import: its issues are
// removed with it, and a new review would lack them.
func (im *Importer) review(ctx context.Context) (*v1alpha1.Review, error) {
	key, review := im.key(Name(im.pr.Repository, im.pr.Number)), &v1alpha1.Review{}
	err := importer.Retry(ctx, func(ctx context.Context) error { return im.client.Get(ctx, key, review) })
	switch {
	case kube.IsNotFound(err) && im.uid == "":
		return nil, nil //nolint:nilnil // no review is no error
	case kube.IsNotFound(err), err == nil && im.uid != "" && im.uid != review.UID:
		return nil, errDeleted
	case err != nil:
		return nil, fmt.Errorf("read review %s: %w", key, err)
	case review.DeletionTimestamp != nil:
		return nil, &importer.RefusedError{Reason: fmt.Sprintf("review %q is being deleted: wait until it is gone, and review the commit again", key.Name)}
	}
	if im.uid == "" {
		im.uid = review.UID
	}
	return review, nil
}

var errDeleted = &importer.RefusedError{Reason: "the review was deleted meanwhile: review again"}

func specOf(review *v1alpha1.Review) *v1alpha1.ReviewSpec {
	if review == nil {
		return nil
	}
	return &review.Spec
}

// reviewedBy returns the commits that the review holds; review may be nil.
func reviewedBy(review *v1alpha1.Review) []v1alpha1.ReviewedCommit {
	if review == nil {
		return nil
	}
	return review.Spec.ReviewedCommits
}

func (im *Importer) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: im.pr.Namespace, Name: name}
}
