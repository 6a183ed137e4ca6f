package finding

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/index"
	"github.com/appsec-dev/findings-operator/controllers/internal/policies"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
)

// decidedIndex is the cache index of review issues with a user's decision, by the key of their result.
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

// resultOf returns what identifies the finding's result for the cache of the judge and for watches; it is no key of the
// index. It returns "" for a closed finding, which is no longer in the base branch.
func resultOf(finding *v1alpha1.Finding) string {
	if finding.Spec.Closed != nil {
		return ""
	}
	return fingerprints.Key(&finding.Spec) + strings.Join(fingerprints.KeysOfOtherMark(&finding.Spec), "")
}

// keysOfFinding returns the keys of the finding's result under all names of its tool and its file, and with both marks
// of its code, the current one first: the scanner of the pull request may use another name than that of the base
// branch.
func keysOfFinding(finding *v1alpha1.Finding) []string {
	spec := &finding.Spec
	if spec.Closed != nil {
		return nil
	}
	return slices.Concat(fingerprints.Keys(spec), fingerprints.EarlierKeys(spec), fingerprints.KeysOfOtherMark(spec))
}

// judge returns verdicts about findings of one namespace at one time: those of users in pull requests, else those of
// policies. It is not safe for concurrent use.
type judge struct {
	cache    client.Reader
	policies *policies.Judge
	// decisions holds users' decisions in pull requests, by resultOf. The first one that confirms a finding, or
	// covers its facts, is the verdict. Thousands of findings may share a key: they show the same (fingerprints.Shown).
	decisions map[string][]decision
}

// decision is a user's decision about the issue of a pull request, with the facts that the issue shows.
type decision struct {
	verdict *v1alpha1.FindingVerdict
	facts   *v1alpha1.FindingSpec
	// findings holds the names of the findings that the decision may apply to, by project.
	findings map[v1alpha1.ProjectReference][]string
}

func (r *Reconciler) judge(ctx context.Context, namespace string, now time.Time) (*judge, error) {
	of, err := policies.NewJudge(ctx, r.Client, namespace, now)
	return &judge{cache: r.Client, policies: of, decisions: map[string][]decision{}}, err
}

// verdict returns the verdict on the finding, without its time; nil if there is none.
func (j *judge) verdict(ctx context.Context, finding *v1alpha1.Finding) (*v1alpha1.FindingVerdict, error) {
	if verdict, err := j.ofReviews(ctx, finding); verdict != nil || err != nil {
		return verdict, err
	}
	return j.policies.Verdict(ctx, finding)
}

// ofReviews returns a user's decision about the same result in a pull request, if no other finding of the project has
// the key under which the decision was found: the current one, that of the path that an earlier version stored, or that
// with the other mark. Results that differ only in their line share a key, and so do results of files that an earlier
// version mapped to one path: it is unknown which of them the decision was about.
func (j *judge) ofReviews(ctx context.Context, finding *v1alpha1.Finding) (*v1alpha1.FindingVerdict, error) {
	key := resultOf(finding)
	if key == "" {
		return nil, nil //nolint:nilnil // no verdict is no error
	}
	decisions, known := j.decisions[key]
	if !known {
		var err error
		if decisions, err = j.decisionsAbout(ctx, finding); err != nil {
			return nil, err
		}
		j.decisions[key] = decisions
	}
	isOther := func(name string) bool { return name != finding.Name }
	for _, d := range decisions {
		if otherCode(d.facts, &finding.Spec) || slices.ContainsFunc(d.findings[finding.Spec.ProjectRef], isOther) {
			continue
		}
		confirms := v1alpha1.UserStatus(d.verdict.UserStatus) == v1alpha1.UserStatusActive
		if confirms || !findingstate.Outgrown(d.facts, &finding.Spec) {
			return d.verdict, nil
		}
	}
	return nil, nil //nolint:nilnil // no verdict is no error
}

// otherCode reports whether the code differs, which the key does not show if the tool masks a secret in it. Code that
// is not stored does not count.
func otherCode(decided, facts *v1alpha1.FindingSpec) bool {
	was, is := fingerprints.ParseEvidence(decided.Evidence).Code, fingerprints.ParseEvidence(facts.Evidence).Code
	return was != "" && is != "" && was != is
}

// decisionsAbout reads the decisions about the finding's result. A confirmation takes precedence over decisions that
// mute; among equals, the lowest name wins.
func (j *judge) decisionsAbout(ctx context.Context, finding *v1alpha1.Finding) ([]decision, error) {
	spec := &finding.Spec
	all, err := j.decisionsUnder(ctx, finding, fingerprints.KeysOfOtherMark(spec))
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(d decision) bool { return !markedOtherwise(d.facts, spec) })
	for _, keys := range [][]string{fingerprints.Keys(spec), fingerprints.EarlierKeys(spec)} {
		decisions, err := j.decisionsUnder(ctx, finding, keys)
		if err != nil {
			return nil, err
		}
		all = append(all, decisions...)
	}
	slices.SortFunc(all, func(a, b decision) int {
		return cmp.Or(cmp.Compare(a.verdict.UserStatus, b.verdict.UserStatus),
			cmp.Compare(a.verdict.ReviewIssue, b.verdict.ReviewIssue))
	})
	return all, nil
}

// markedOtherwise reports whether the decided result has the finding's key with the other mark. Under a key with code,
// masked code elsewhere in the file is found too, which may hide another secret. Issues do not show their repository,
// which sameResult compares.
func markedOtherwise(decided, facts *v1alpha1.FindingSpec) bool {
	here := *decided
	here.RepositoryRef = facts.RepositoryRef
	return slices.Contains(fingerprints.KeysOfOtherMark(&here), fingerprints.Key(facts))
}

// decisionsUnder reads the decisions under the keys of the finding's result, which differ in the name of the tool.
func (j *judge) decisionsUnder(ctx context.Context, finding *v1alpha1.Finding, keys []string) ([]decision, error) {
	var decisions []decision
	for _, key := range keys {
		issues := &v1alpha1.ReviewIssueList{}
		if err := index.List(ctx, j.cache, issues, finding.Namespace, decidedIndex, key); err != nil {
			return nil, err
		}
		for i := range issues.Items {
			issue := &issues.Items[i]
			verdict := reviewstate.Verdict(issue)
			if verdict == nil {
				continue
			}
			same, err := j.sameResult(ctx, issue, finding)
			if err != nil {
				return nil, err
			}
			if same {
				decisions = append(decisions, decision{verdict: verdict, facts: factsOf(issue)})
			}
		}
	}
	if len(decisions) == 0 {
		return nil, nil
	}
	findings, err := j.withKey(ctx, finding, keys[0], decisions)
	if err != nil {
		return nil, err
	}
	for i := range decisions {
		decisions[i].findings = findings
	}
	return decisions, nil
}

// withKey returns the names of the findings with the key, by project. Findings under another name of the tool come from
// another job, and are left out. Closed findings that share an earlier key are included: a decision may be about one of
// them, and must not pass to another file when that one is closed. Findings that have the key only with the other mark
// of their code are left out if none of the decisions can be about them, unless this finding has it so too.
func (j *judge) withKey(ctx context.Context, finding *v1alpha1.Finding, key string,
	decisions []decision) (map[v1alpha1.ProjectReference][]string, error) {
	findings := map[v1alpha1.ProjectReference][]string{}
	asOther := slices.Contains(fingerprints.KeysOfOtherMark(&finding.Spec), key)
	otherwise := func(spec *v1alpha1.FindingSpec) bool {
		return slices.Contains(fingerprints.KeysOfOtherMark(spec), key) &&
			!slices.ContainsFunc(decisions, func(d decision) bool { return markedOtherwise(d.facts, spec) })
	}
	for _, value := range []string{isResult + key, wasResult + key} {
		list := &v1alpha1.FindingList{}
		if err := index.List(ctx, j.cache, list, finding.Namespace, referencesIndex, value); err != nil {
			return nil, fmt.Errorf("look for findings with the same result: %w", err)
		}
		for i := range list.Items {
			if spec := &list.Items[i].Spec; spec.Tool == finding.Spec.Tool && (asOther || !otherwise(spec)) {
				findings[spec.ProjectRef] = append(findings[spec.ProjectRef], list.Items[i].Name)
			}
		}
	}
	return findings, nil
}

// sameResult reports whether the issue, which has the key of the finding's result, shows the same result: a scanner's
// account may write any key into an issue that a user has decided about. If the review does not exist, the repository
// is not compared.
func (j *judge) sameResult(ctx context.Context, issue *v1alpha1.ReviewIssue, finding *v1alpha1.Finding) (bool, error) {
	review := &v1alpha1.Review{}
	exists, err := reconcile.Exists(ctx, j.cache, review, issue.Namespace, issue.Spec.ReviewRef.Name)
	if err != nil {
		return false, err
	}
	repository := finding.Spec.RepositoryRef
	if exists {
		repository = review.Spec.RepositoryRef
	}
	shown, want := fingerprints.ShownBy(factsOf(issue)), fingerprints.ShownBy(&finding.Spec)
	shown.Repository = string(repository.Name)
	shown.Tool, want.Tool = fingerprints.CurrentName(shown.Tool), fingerprints.CurrentName(want.Tool)
	if shown.Path == fingerprints.EarlierPath(want.Path) {
		want.Path = shown.Path
	}
	return shown == want, nil
}

// factsOf returns the facts that the issue shows, which do not include the repository.
func factsOf(issue *v1alpha1.ReviewIssue) *v1alpha1.FindingSpec {
	return &reviewstate.Facts(issue, nil).Spec
}

// issueDecisionChanged ignores changes that do not affect the verdict of findings.
var issueDecisionChanged = predicate.And(watch.NewSinceStart,
	watch.Updates(func(before, after *v1alpha1.ReviewIssue) bool {
		was, is := factsOf(before), factsOf(after)
		return keyOfIssue(before) != keyOfIssue(after) || fingerprints.ShownBy(was) != fingerprints.ShownBy(is) ||
			findingstate.Basis(was) != findingstate.Basis(is) ||
			!findingstate.SameVerdict(reviewstate.Verdict(before), reviewstate.Verdict(after))
	}))

// resultChanged selects findings whose key changes. Another finding may have the old or the new key, and begin or cease
// to be the only one with it.
var resultChanged = predicate.And(watch.NewSinceStart, watch.Updates(func(before, after *v1alpha1.Finding) bool {
	return resultOf(before) != resultOf(after)
}))

// rejudgeIssue enqueues the findings with the issue's old or new result key, under any name of their tool, whose
// verdict differs.
func (r *Reconciler) rejudgeIssue(ctx context.Context) handler.EventHandler {
	return policies.RejudgeFew(ctx, keyOf, func(ctx context.Context, issue client.Object) ([]ctrl.Request, error) {
		return r.outdatedVerdictsOf(ctx, issue.GetNamespace(), keyOf(issue))
	})
}

// rejudgeAlike does the same as rejudgeIssue for a finding that was added or removed, if a user decided about its
// result in a pull request.
func (r *Reconciler) rejudgeAlike(ctx context.Context) handler.EventHandler {
	return policies.RejudgeFew(ctx, keyOf, func(ctx context.Context, finding client.Object) ([]ctrl.Request, error) {
		var out []ctrl.Request
		for _, key := range keysOfFinding(finding.(*v1alpha1.Finding)) {
			decided, err := index.Any(ctx, r.Client, &v1alpha1.ReviewIssueList{}, finding.GetNamespace(), decidedIndex, key)
			if err != nil {
				return nil, err
			}
			if !decided {
				continue
			}
			others, err := r.outdatedVerdictsOf(ctx, finding.GetNamespace(), key)
			if err != nil {
				return nil, err
			}
			out = append(out, others...)
		}
		return out, nil
	})
}

// keyOf is a watch.Subject: it returns the key of the object's result; "" for none.
func keyOf(object client.Object) string {
	switch o := object.(type) {
	case *v1alpha1.ReviewIssue:
		return keyOfIssue(o)
	case *v1alpha1.Finding:
		return resultOf(o)
	}
	return ""
}

// outdatedVerdictsOf returns requests for the findings with that result whose verdict differs.
func (r *Reconciler) outdatedVerdictsOf(ctx context.Context, namespace, key string) ([]ctrl.Request, error) {
	if key == "" {
		return nil, nil
	}
	return r.outdatedVerdicts(ctx, namespace, []client.ListOption{client.MatchingFields{referencesIndex: isResult + key}})
}
