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

// decidedIndex is the cache index of the review issues that a user decided about, by the key of their result.
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

// keyOfFinding returns the key of the finding's result; "" for a closed finding, which is no longer
// in the base branch.
func keyOfFinding(finding *v1alpha1.Finding) string {
	if finding.Spec.Closed != nil {
		return ""
	}
	return fingerprints.Key(&finding.Spec)
}

// judge returns verdicts about findings at one time: of users in pull requests, otherwise of policies.
type judge struct {
	cache    client.Reader
	policies *policies.Judge
	err      error
}

func (r *Reconciler) judge(ctx context.Context, namespace string, now time.Time) (*judge, error) {
	of, err := r.policies.Judge(ctx, namespace, now)
	return &judge{cache: r.Client, policies: of}, err
}

// Of returns a findingstate.Judge. If its inputs cannot be read, a finding keeps its verdict, and Err returns the
// error.
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

// ofReviews returns a user's decision about the same result in a pull request. If there are several, a
// confirmation takes precedence over decisions that mute, then the lowest name wins.
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

// alone reports whether no other finding of the project has the same key. Results that differ only in their line share
// a key, so it is unknown which of them the decision was about.
func (j *judge) alone(ctx context.Context, finding *v1alpha1.Finding, key string) (bool, error) {
	alike := &v1alpha1.FindingList{}
	if err := index.List(ctx, j.cache, alike, finding.Namespace, referencesIndex, isResult+key); err != nil {
		return false, fmt.Errorf("look for findings alike: %w", err)
	}
	return !slices.ContainsFunc(alike.Items, func(other v1alpha1.Finding) bool {
		return other.Name != finding.Name && other.Spec.ProjectRef == finding.Spec.ProjectRef
	}), nil
}

// issueDecidesOtherwise passes over changes that do not affect the verdict of findings.
var issueDecidesOtherwise = predicate.And(watch.NewSinceStart,
	watch.Updates(func(before, after *v1alpha1.ReviewIssue) bool {
		return keyOfIssue(before) != keyOfIssue(after) ||
			!findingstate.SameVerdict(reviewstate.Verdict(before), reviewstate.Verdict(after))
	}))

// anotherResult lets through findings whose key changes. Another finding may share the old or the new key, which
// changes whether it is alone.
var anotherResult = predicate.And(watch.NewSinceStart, watch.Updates(func(before, after *v1alpha1.Finding) bool {
	return keyOfFinding(before) != keyOfFinding(after)
}))

// rejudgeIssue enqueues the findings with the issue's old or new result key whose verdict differs.
func (r *Reconciler) rejudgeIssue() handler.EventHandler {
	return r.rejudgeResults(func(_ context.Context, object client.Object) string {
		issue, is := object.(*v1alpha1.ReviewIssue)
		if !is {
			return ""
		}
		return keyOfIssue(issue)
	})
}

// rejudgeAlike does the same for a finding that was added or removed, if a user decided about its result in a pull
// request.
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
		// A cached list fails only while the manager stops, and a handler cannot return an error.
		ctrl.LoggerFrom(ctx).Error(err, "list the findings of a result that was decided about otherwise")
	}
	watch.AddAfter(q, 0, requests)
}
