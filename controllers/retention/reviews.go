package retention

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/index"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
)

const (
	reviewKind = "Review"
	issueKind  = "ReviewIssue"
	// issuePage is how many issues of a review are read at once.
	issuePage = 500
	// maxInterrupted is how long an interrupted removal of a review is tried before other objects get their turn.
	maxInterrupted = 2 * time.Minute
)

// reviewHeld reports whether an issue keeps the review.
func (r *Reconciler) reviewHeld(ctx context.Context, review *v1alpha1.Review, cutoff time.Time) (bool, error) {
	issues := &v1alpha1.ReviewIssueList{}
	// The controller of Reviews adds this index.
	err := index.List(ctx, r.Client, issues, review.Namespace, index.Review, review.Name)
	return slices.ContainsFunc(issues.Items, func(i v1alpha1.ReviewIssue) bool { return keeps(&i, cutoff) }), err
}

// keeps reports whether the issue keeps its review: a person decided about it, which may decide about a finding of the
// base branch too, or commented on it; it has changed since the cutoff, for example because an import has just written
// it, or because a decision was withdrawn, which can be undone; it is being deleted; or its controller has yet to
// record or emit its transitions.
func keeps(issue *v1alpha1.ReviewIssue, cutoff time.Time) bool {
	status := &issue.Status
	return reviewstate.IsTriaged(issue) || !issue.DeletionTimestamp.IsZero() ||
		status.ObservedGeneration != issue.Generation || owes(issue) ||
		status.UpdatedAt != nil && status.UpdatedAt.After(cutoff)
}

// removeReview removes the review. After an interruption the next turn tries again, for maxInterrupted in all; then
// other objects get their turn.
func (r *Reconciler) removeReview(ctx context.Context, organization *v1alpha1.Organization, p *pass,
	review *v1alpha1.Review, cutoff time.Time) (fate, error) {
	outcome, err := r.tryToRemove(ctx, organization, p, review, cutoff)
	if !isInterruption(err) {
		return outcome, err
	}
	now := r.Clock.Now()
	if p.interrupted.IsZero() || now.Before(p.interrupted) {
		p.interrupted = now
	}
	if now.Sub(p.interrupted) < maxInterrupted {
		return fateUnfinished, err
	}
	return fateGaveUp, err
}

// isInterruption reports whether a request got no response, or a temporary error of the API server. That of a webhook
// may last.
func isInterruption(err error) bool {
	return err != nil && !kube.IsDeniedByWebhook(err) &&
		(kube.StatusOf(err).Code == 0 || kube.IsOutcomeUnknown(err) || apierrors.IsTooManyRequests(err))
}

// tryToRemove removes the issues of the review, each only if it is unchanged, and then the review. A review whose
// issue is decided about or imported meanwhile stays. So the review cannot be deleted first: its finalizer would then
// remove whatever issues it has. It removes no more issues than the turn may.
func (r *Reconciler) tryToRemove(ctx context.Context, organization *v1alpha1.Organization, p *pass,
	review *v1alpha1.Review, cutoff time.Time) (fate, error) {
	// A cluster's own admission policy may protect the review, but not its issues.
	if err := r.Client.Delete(ctx, review, client.DryRunAll, patch.AsSeen(review)); err != nil {
		return fateOf(reviewKind, fmt.Errorf("try to remove review %s: %w", review.Name, err))
	}
	if !r.emptying.Has(review) {
		switch lacks, err := r.cacheLacksIssue(ctx, review); {
		case err != nil:
			return fateOf(issueKind, err)
		case lacks:
			return fateHeld, nil
		}
	}
	r.emptying.Begin(review)
	for p.left > 0 {
		issues, held, err := r.unchangedIssues(ctx, review, cutoff, min(issuePage, p.left))
		switch {
		case err != nil:
			return fateOf(issueKind, err)
		case held:
			return fateHeld, nil
		case len(issues) == 0:
			return r.removeEmpty(ctx, review)
		}
		for _, issue := range issues {
			if outdated, err := r.await(ctx, organization, issueKind, issue.Name); outdated || err != nil {
				return fateOutdated, err
			}
			switch outcome, err := r.remove(ctx, issue, issueKind); {
			case outcome == fateRetired:
				p.interrupted = time.Time{}
				p.issues++
				p.left--
			case outcome != fateGone || err != nil:
				return outcome, err
			}
		}
	}
	return fateUnfinished, nil
}

// cacheLacksIssue reports whether the API server has an issue of the review that is not in the cache. One that cannot
// be read may hold a decision, and would be noticed only after the issues before it by name are removed.
func (r *Reconciler) cacheLacksIssue(ctx context.Context, review *v1alpha1.Review) (lacks bool, err error) {
	err = kube.Pages(func(token string) (next string, err error) {
		current, err := r.listIssues(ctx, review, issuePage, token)
		if err != nil {
			return "", err
		}
		for i := range current.Items {
			key, issue := client.ObjectKeyFromObject(&current.Items[i]), &v1alpha1.ReviewIssue{}
			if err := r.Client.Get(ctx, key, issue, client.UnsafeDisableDeepCopy); err != nil {
				lacks = kube.IsNotFound(err)
				return "", kube.IgnoreNotFound(err)
			}
		}
		return current.Continue, nil
	})
	return lacks, err
}

// listIssues returns a page of the issues that the API server has of the review.
func (r *Reconciler) listIssues(ctx context.Context, review *v1alpha1.Review, limit int, token string) (
	*metav1.PartialObjectMetadataList, error) {
	page := &metav1.PartialObjectMetadataList{}
	page.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(issueKind))
	if err := r.Live.List(ctx, page, client.InNamespace(review.Namespace), client.Limit(int64(limit)),
		client.Continue(token), client.MatchingFieldsSelector{
			Selector: fields.OneTermEqualSelector(index.Review, review.Name),
		}); err != nil {
		return nil, fmt.Errorf("list the issues of review %s: %w", review.Name, err)
	}
	return page, nil
}

// unchangedIssues returns issues that the API server has of the review, at most limit. held means that one of them
// keeps the review, or is not the one in the cache.
func (r *Reconciler) unchangedIssues(ctx context.Context, review *v1alpha1.Review, cutoff time.Time, limit int) (
	issues []*v1alpha1.ReviewIssue, held bool, err error) {
	current, err := r.listIssues(ctx, review, limit, "")
	if err != nil {
		return nil, false, err
	}
	for i := range current.Items {
		issue := &v1alpha1.ReviewIssue{}
		err := r.Client.Get(ctx, client.ObjectKeyFromObject(&current.Items[i]), issue, client.UnsafeDisableDeepCopy)
		if kube.IgnoreNotFound(err) != nil {
			return nil, false, fmt.Errorf("get issue %s of review %s: %w", current.Items[i].Name, review.Name, err)
		}
		if err != nil || issue.ResourceVersion != current.Items[i].ResourceVersion || keeps(issue, cutoff) {
			return nil, true, nil
		}
		issues = append(issues, issue)
	}
	return issues, false, nil
}

// removeEmpty removes the review, whose issues are gone, unless its spec has changed. Its status may have: its
// controller counts the issues.
func (r *Reconciler) removeEmpty(ctx context.Context, review *v1alpha1.Review) (fate, error) {
	current := kube.MetadataOf(v1alpha1.GroupVersion.WithKind(reviewKind))
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(review), current); err != nil {
		return fateOf(reviewKind, fmt.Errorf("get review %s: %w", review.Name, err))
	}
	if current.UID != review.UID || current.Generation != review.Generation {
		return fateChanged, nil
	}
	return r.remove(ctx, current, reviewKind)
}
