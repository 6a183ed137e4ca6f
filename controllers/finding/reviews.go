package finding

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/index"
	"github.com/appsec-dev/findings-operator/controllers/internal/policies"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
)

// decidedIndex is the cache index, by the key of their result, of the review issues that a person decided about.
const decidedIndex = "decided-result"

func decidedKeyOf(issue *v1alpha1.ReviewIssue) []string {
	key := keyOfIssue(issue)
	if key == "" || issue.Spec.Triage.UserStatus == "" || issue.Spec.Triage.UserStatus == v1alpha1.UserStatusOpen {
		return nil
	}
	return []string{key}
}

func keyOfIssue(issue *v1alpha1.ReviewIssue) string {
	if issue.Spec.Result == nil {
		return ""
	}
	return issue.Spec.Result.Key
}

// keyOfFinding is "" for one that is closed: it is not in the base branch any more.
func keyOfFinding(finding *v1alpha1.Finding) string {
	if finding.Spec.Closed != nil {
		return ""
	}
	return fingerprints.Key(&finding.Spec)
}

// judge says what is decided about findings at one time: by people in pull requests, and by policies where they are
// silent.
type judge struct {
	cache    client.Reader
	policies *policies.Judge
	err      error
}

func (r *Reconciler) judge(ctx context.Context, namespace string, now time.Time) (*judge, error) {
	of, err := r.policies.Judge(ctx, namespace, now)
	return &judge{cache: r.Client, policies: of}, err
}

// Of returns a findingstate.Judge. Where what it needs cannot be read, a finding keeps its verdict, and Err returns
// why.
func (j *judge) Of(ctx context.Context) findingstate.Judge {
	byPolicies := j.policies.Of(ctx)
	return func(finding *v1alpha1.Finding) *v1alpha1.FindingVerdict {
		verdict, err := j.ofReviews(ctx, finding)
		switch {
		case err != nil:
			j.err = err
			return finding.Status.Verdict
		case verdict != nil:
			return verdict
		}
		return byPolicies(finding)
	}
}

// Err returns the last error.
func (j *judge) Err() error { return cmp.Or(j.err, j.policies.Err()) }

// ofReviews is what a person decided about the same result in a pull request. Where several did, one that confirms
// comes before those that mute, and then the name decides.
func (j *judge) ofReviews(ctx context.Context, finding *v1alpha1.Finding) (*v1alpha1.FindingVerdict, error) {
	key := keyOfFinding(finding)
	if key == "" {
		return nil, nil //nolint:nilnil // no verdict is no error
	}
	issues := &v1alpha1.ReviewIssueList{}
	if err := index.List(ctx, j.cache, issues, finding.Namespace, decidedIndex, key); err != nil {
		return nil, err
	}
	var verdicts []*v1alpha1.FindingVerdict
	for i := range issues.Items {
		if verdict := reviewstate.Verdict(&issues.Items[i]); verdict != nil {
			verdicts = append(verdicts, verdict)
		}
	}
	if len(verdicts) == 0 {
		return nil, nil //nolint:nilnil // no verdict is no error
	}
	if alone, err := j.alone(ctx, finding, key); err != nil || !alone {
		return nil, err
	}
	return slices.MinFunc(verdicts, func(a, b *v1alpha1.FindingVerdict) int {
		return cmp.Or(cmp.Compare(a.UserStatus, b.UserStatus), cmp.Compare(a.ReviewIssue, b.ReviewIssue))
	}), nil
}

// alone reports whether no other finding of the project is the same result but for its line: else nobody can tell which
// of them was decided about.
func (j *judge) alone(ctx context.Context, finding *v1alpha1.Finding, key string) (bool, error) {
	alike := &v1alpha1.FindingList{}
	if err := index.List(ctx, j.cache, alike, finding.Namespace, referencesIndex, isResult+key); err != nil {
		return false, fmt.Errorf("look for findings alike: %w", err)
	}
	return !slices.ContainsFunc(alike.Items, func(other v1alpha1.Finding) bool {
		return other.Name != finding.Name && other.Spec.ProjectRef == finding.Spec.ProjectRef
	}), nil
}

// issueDecidesOtherwise passes over what leaves the verdict of findings as it is.
var issueDecidesOtherwise = predicate.And(watch.NewSinceStart,
	watch.Updates(func(before, after *v1alpha1.ReviewIssue) bool {
		return keyOfIssue(before) != keyOfIssue(after) ||
			!findingstate.SameVerdict(reviewstate.Verdict(before), reviewstate.Verdict(after))
	}))

// anotherResult lets through the findings that are a result that they were not before, or no longer: it may be that of
// another finding, which then is not alone with it.
var anotherResult = predicate.And(watch.NewSinceStart, watch.Updates(func(before, after *v1alpha1.Finding) bool {
	return keyOfFinding(before) != keyOfFinding(after)
}))

// rejudgeIssue enqueues the findings of the result that the issue is, and was before, if they are to have another
// verdict.
func (r *Reconciler) rejudgeIssue() handler.EventHandler {
	return r.rejudgeResults(func(_ context.Context, object client.Object) string {
		issue, is := object.(*v1alpha1.ReviewIssue)
		if !is {
			return ""
		}
		return keyOfIssue(issue)
	})
}

// rejudgeAlike does so for a finding that came or went, where a person decided about its result in a pull request.
func (r *Reconciler) rejudgeAlike() handler.EventHandler {
	return r.rejudgeResults(func(ctx context.Context, object client.Object) string {
		finding, is := object.(*v1alpha1.Finding)
		if !is {
			return ""
		}
		key := keyOfFinding(finding)
		if key == "" {
			return ""
		}
		decided, err := index.Any(ctx, r.Client, &v1alpha1.ReviewIssueList{}, finding.Namespace, decidedIndex, key)
		if err == nil && !decided {
			return ""
		}
		return key
	})
}

func (r *Reconciler) rejudgeResults(keyOf func(context.Context, client.Object) string) handler.EventHandler {
	return watch.Changes(func(ctx context.Context, change watch.Change, q watch.Queue) {
		for _, object := range []client.Object{change.Before, change.After} {
			if object == nil {
				continue
			}
			if key := keyOf(ctx, object); key != "" {
				r.rejudgeResult(ctx, object.GetNamespace(), key, q)
			}
		}
	})
}

func (r *Reconciler) rejudgeResult(ctx context.Context, namespace, key string, q watch.Queue) {
	requests, err := r.otherVerdicts(ctx, namespace, []client.ListOption{
		client.MatchingFields{referencesIndex: isResult + key},
	})
	if err != nil {
		// The cache answers, or the manager is about to stop; there is nobody to return an error to.
		ctrl.LoggerFrom(ctx).Error(err, "list the findings of a result that was decided about otherwise")
	}
	watch.AddAfter(q, 0, requests)
}
