package reviewimport

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
)

const (
	// fieldManager writes all objects of a review. It is not that of a tool, because the tools of a review may change.
	fieldManager = v1alpha1.ScannerFieldManagerPrefix + "review"
	// maxConflicts is how often a write is decided again after a conflict.
	maxConflicts = 5
	// strict makes the API server refuse fields that its CRDs do not have. Otherwise it drops them, such as what later
	// reviews recognise an issue by.
	strict = client.FieldValidation(metav1.FieldValidationStrict)
)

// issues returns the issues of the review, and the names of unreadable ones. It lists them even if the review does not
// exist, because issues may briefly outlive their review.
func (im *Importer) issues(ctx context.Context) (issues []v1alpha1.ReviewIssue, unreadable []string, err error) {
	name := Name(im.pr.Repository, im.pr.Number)
	issues, unreadable, err = importer.List[v1alpha1.ReviewIssue](ctx, im.client, im.pr.Namespace,
		fields.OneTermEqualSelector("spec.reviewRef.name", name))
	if err != nil {
		return nil, nil, fmt.Errorf("list the issues of review %s: %w", name, err)
	}
	return issues, unreadable, nil
}

// patchSpec updates object's spec from before to after, if they differ, by a merge patch with the object's resource
// version. An apply would not remove list entries of other managers.
func (im *Importer) patchSpec(ctx context.Context, object client.Object, before, after any) error {
	spec, err := kube.Difference(before, after)
	if err != nil || spec == nil {
		return err
	}
	body, err := kube.MergePatch(object.GetResourceVersion(), "spec", spec)
	if err == nil {
		err = im.sure(ctx)
	}
	if err != nil {
		return err
	}
	patch := client.RawPatch(types.MergePatchType, body)
	err = importer.Retry(ctx, func(ctx context.Context) error {
		return im.client.Patch(ctx, object, patch, client.FieldOwner(fieldManager), strict)
	})
	if unknown := kube.UnknownFields(err); unknown != "" { // the API server's own error quotes the whole object
		return apierrors.NewBadRequest("strict decoding error: " + unknown)
	}
	return err
}

func (im *Importer) create(ctx context.Context, object client.Object) error {
	if err := im.sure(ctx); err != nil {
		return err
	}
	err := importer.Retry(ctx, func(ctx context.Context) error {
		return im.client.Create(ctx, object, client.FieldOwner(fieldManager), strict)
	})
	kind, _ := kube.KindOf(object)
	return importer.ExplainQuota(err, kind.Name)
}

// crossed reports whether the object has changed since it was read, so that it must be read and decided about again.
// The change may also be our own write whose response was lost.
func crossed(err error) bool {
	return kube.IsConflict(err) || kube.IsAlreadyExists(err) || kube.IsNotFound(err)
}

func (im *Importer) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: im.pr.Namespace, Name: name}
}

// createReview creates the review, or returns the existing one.
func (im *Importer) createReview(ctx context.Context, spec v1alpha1.ReviewSpec) (*v1alpha1.Review, error) {
	review, err := im.newReview(ctx, spec)
	if kube.IsAlreadyExists(err) {
		if review, err = im.review(ctx); err == nil && review == nil {
			err = errDeleted
		}
		return review, err
	}
	if err != nil {
		return nil, fmt.Errorf("create review %s: %w", Name(im.pr.Repository, im.pr.Number), err)
	}
	im.uid = review.UID
	return review, nil
}

// newReview creates the review, unless the repository was deleted.
func (im *Importer) newReview(ctx context.Context, spec v1alpha1.ReviewSpec) (*v1alpha1.Review, error) {
	if err := im.checkRepository(ctx); err != nil {
		return nil, err
	}
	review := &v1alpha1.Review{ObjectMeta: im.meta(Name(im.pr.Repository, im.pr.Number)), Spec: spec}
	return review, im.create(ctx, review)
}

// writeReview updates the review to the result of next. It is the last write of an import.
func (im *Importer) writeReview(ctx context.Context, review *v1alpha1.Review,
	next func(*v1alpha1.ReviewSpec) (v1alpha1.ReviewSpec, error)) error {
	for conflicts := 0; ; conflicts++ {
		spec, err := next(specOf(review))
		if err != nil {
			return err
		}
		if review == nil {
			_, err = im.newReview(ctx, spec)
		} else {
			err = im.patchSpec(ctx, review, review.Spec, spec)
		}
		switch {
		case err == nil:
			return nil
		case !crossed(err) || conflicts == maxConflicts:
			return fmt.Errorf("write the review: %w", err)
		}
		if review, err = im.review(ctx); err != nil {
			return err
		}
	}
}

// writeIssues carries out a plan. It stops at the first error that affects more than one issue; the summary counts what
// was done so far.
func (im *Importer) writeIssues(ctx context.Context, p *plan, s *Summary) error {
	w := &writer{im: im, plan: p, summary: s}
	im.progress.Begin(len(p.changes))
	im.options.OnProgress(0, len(p.changes))
	return importer.Each(ctx, im.options.Concurrency, p.changes, w.one)
}

type writer struct {
	im   *Importer
	plan *plan

	mu      sync.Mutex
	summary *Summary
}

// one applies the planned change to one issue. If the API server refuses it, the import goes on with other issues,
// unless a known issue would be left in a wrong state: one that does not get this commit would count as resolved, and
// one that keeps dropped commits would be open again.
func (w *writer) one(ctx context.Context, ch *change) error {
	current := ch.before
	for conflicts := 0; ; conflicts++ {
		if current == nil && ch.found == nil {
			return nil // deleted meanwhile, and not reported
		}
		if ch.found != nil && (isDecided(current) && !ch.found.certain || w.plan.outgrown(current, ch.found)) {
			// The decision may be about another problem than the result, or about other facts. The next review gives the result
			// a name of its own.
			w.count(func(s *Summary) { s.leave(ch, skipDecided, fmt.Sprintf("issue %s: %s", ch.name, skipDecided)) })
			return nil
		}
		next, err := w.write(ctx, ch, current)
		switch {
		case err == nil:
			action := w.plan.action(ch, &next)
			w.count(func(s *Summary) { s.add(action, ch) })
			return nil
		case importer.RefusesObject(err) && (current == nil || ch.found == nil && len(next.SeenInCommits) > 0):
			w.count(func(s *Summary) { s.refused(ch, err) })
			return nil
		case !crossed(err) || conflicts == maxConflicts:
			return fmt.Errorf("write issue %s: %w", ch.name, err)
		}
		if current, err = w.im.issue(ctx, ch.name); err == nil && current == nil {
			_, err = w.im.review(ctx) // the issue may have been deleted with its review
		}
		if err != nil {
			return err
		}
	}
}

func (w *writer) write(ctx context.Context, ch *change,
	current *v1alpha1.ReviewIssue) (v1alpha1.ReviewIssueSpec, error) {
	spec := w.plan.next(current, ch.found)
	if current == nil {
		// The controllers release a deleted review once it has no issues, and remove none that is written later.
		if _, err := w.im.review(ctx); err != nil {
			return spec, err
		}
		return spec, w.im.create(ctx, &v1alpha1.ReviewIssue{ObjectMeta: w.im.meta(ch.name), Spec: spec})
	}
	return spec, w.im.patchSpec(ctx, current.DeepCopy(), current.Spec, spec)
}

// issue returns the issue of that name, or nil.
func (im *Importer) issue(ctx context.Context, name string) (*v1alpha1.ReviewIssue, error) {
	issue, unreadable, err := importer.Read[v1alpha1.ReviewIssue](ctx, im.client, im.pr.Namespace, name)
	if unreadable {
		err = errors.New(importer.PassedOver("issue", name))
	}
	if err != nil {
		return nil, fmt.Errorf("read issue %s: %w", name, err)
	}
	return issue, nil
}

func (w *writer) count(add func(*Summary)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	add(w.summary)
	w.im.options.OnProgress(w.im.progress.Add())
}
