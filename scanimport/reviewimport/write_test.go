package reviewimport

import (
	"context"
	"errors"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Somebody decides about the issue after the review has listed it. Only a result that is certainly the issue may get
// the decision.
func TestADecisionDuringAReviewStaysWithItsProblem(t *testing.T) {
	for _, tc := range []struct {
		reason    string
		then, now string
		severity  v1alpha1.Level
		decision  v1alpha1.UserStatus
		patches   int
		seen      int
		skipped   int
	}{
		{"another problem", "10 eval", "200 eval", v1alpha1.LevelHigh, v1alpha1.UserStatusMuted, 1, 0, 1},
		{"the same problem", "10 eval", "10 eval", v1alpha1.LevelHigh, v1alpha1.UserStatusMuted, 2, 1, 0},
		{"the same problem, more severe", "10 eval", "10 eval", v1alpha1.LevelLow, v1alpha1.UserStatusMuted, 1, 0, 1},
		{"no decision", "10 eval", "200 eval", v1alpha1.LevelHigh, "", 2, 1, 0},
	} {
		reviewed := []v1alpha1.ReviewedCommit{{SHA: "c0"}, {SHA: "c1"}}
		first := &plan{commit: "c0", reviewed: reviewed[:1]}
		issue := v1alpha1.ReviewIssue{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ReviewIssue"},
			ObjectMeta: metav1.ObjectMeta{Namespace: pr.Namespace, Name: results(tc.then)[0].Name, ResourceVersion: "1"},
			Spec:       first.next(nil, &results(tc.then)[0]),
		}
		issue.Spec.Severity = tc.severity
		p := &plan{commit: "c1", before: reviewed[:1], reviewed: reviewed}
		p.match(results(tc.now), []v1alpha1.ReviewIssue{*issue.DeepCopy()})

		issue.ResourceVersion, issue.Spec.Triage.UserStatus = "2", tc.decision
		patches := 0
		c := answeredBy(t, func(r *http.Request) (code int, object any) {
			if r.Method == http.MethodPatch {
				if patches++; patches == 1 {
					return harness.Refusal(apierrors.NewConflict(schema.GroupResource{}, issue.Name, errors.New("it has changed")))
				}
			}
			return http.StatusOK, &issue
		})
		s := newSummary(pr, []*importer.Batch{{}})
		err := New(c, pr, Options{}).writeIssues(t.Context(), p, s)
		if err != nil || patches != tc.patches || s.Seen != tc.seen || s.Skipped != tc.skipped || s.SkippedBecause[skipDecided] != tc.skipped {
			t.Errorf("%s: %d patches, want %d; want %d seen and %d skipped: %+v, %v", tc.reason, patches, tc.patches, tc.seen, tc.skipped, s, err)
		}
		if example := "issue " + issue.Name + ": " + skipDecided; slices.Contains(s.SkippedExamples, example) != (tc.skipped > 0) {
			t.Errorf("%s: examples %q", tc.reason, s.SkippedExamples)
		}
	}
}

// A review that has lost its Lease writes nothing more: another one may have begun.
func TestNothingIsWrittenWithoutTheLease(t *testing.T) {
	c := answeredBy(t, func(r *http.Request) (code int, object any) {
		t.Errorf("%s %s", r.Method, r.URL.Path)
		return http.StatusBadRequest, nil
	})
	im, lost := New(c, pr, Options{}), errors.New("the Lease was lost")
	im.sure = func(context.Context) error { return lost }
	for what, err := range map[string]error{
		"create": im.create(t.Context(), &v1alpha1.ReviewIssue{}),
		"patch":  im.patchSpec(t.Context(), &v1alpha1.Review{}, v1alpha1.ReviewSpec{}, v1alpha1.ReviewSpec{PRNumber: 1}),
	} {
		if !errors.Is(err, lost) {
			t.Errorf("%s: error %v, want %v", what, err, lost)
		}
	}
}

// A review that is deleted while it is imported would come back without the issues that are removed with it.
func TestADeletedReviewDoesNotComeBackHalf(t *testing.T) {
	var again *v1alpha1.Review
	c := answeredBy(t, func(r *http.Request) (code int, object any) {
		if r.Method == http.MethodPost {
			t.Errorf("%s is created", r.URL.Path)
		}
		if again != nil && r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, again.Name) {
			return http.StatusOK, again
		}
		return harness.Refusal(apierrors.NewNotFound(schema.GroupResource{}, path.Base(r.URL.Path)))
	})
	im, found := New(c, pr, Options{}), results("10 eval")
	reviewed := []v1alpha1.ReviewedCommit{{SHA: "c0"}, {SHA: "c1"}}
	p := &plan{commit: "c1", before: reviewed[:1], reviewed: reviewed}
	p.match(found, []v1alpha1.ReviewIssue{{ObjectMeta: im.meta(found[0].Name), Spec: (&plan{commit: "c0", reviewed: reviewed[:1]}).next(nil, &found[0])}})
	first := &plan{commit: "c1", before: reviewed[:1], reviewed: reviewed}
	first.match(found, nil)
	im.uid = "1"
	created := &v1alpha1.Review{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Review"},
		ObjectMeta: im.meta(Name(pr.Repository, pr.Number)),
	}
	created.UID = "2"
	going := created.DeepCopy()
	going.UID, going.DeletionTimestamp = "1", &metav1.Time{Time: start}
	for _, again = range []*v1alpha1.Review{nil, created, going} {
		for what, err := range map[string]error{
			"the review": im.writeReview(t.Context(), &v1alpha1.Review{ObjectMeta: im.meta("r-1")}, func(*v1alpha1.ReviewSpec) (v1alpha1.ReviewSpec, error) {
				return v1alpha1.ReviewSpec{PRNumber: 7}, nil
			}),
			"an issue":    im.writeIssues(t.Context(), p, newSummary(pr, []*importer.Batch{{}})),
			"a new issue": im.writeIssues(t.Context(), first, newSummary(pr, []*importer.Batch{{}})),
		} {
			if refused := (*importer.RefusedError)(nil); !errors.As(err, &refused) || !strings.Contains(refused.Reason, "deleted") {
				t.Errorf("%s, the review is %+v: error %v, want a refusal", what, again, err)
			}
		}
	}
	repositoryGone := New(c, pr, Options{})
	_, err := repositoryGone.createReview(t.Context(), v1alpha1.ReviewSpec{})
	harness.ErrorContains(t, "its first results", err, `repository "shop" was deleted`)
	err = repositoryGone.writeReview(t.Context(), nil, func(*v1alpha1.ReviewSpec) (v1alpha1.ReviewSpec, error) {
		return v1alpha1.ReviewSpec{}, nil
	})
	harness.ErrorContains(t, "the pull request alone", err, `repository "shop" was deleted`)
}

// It is that of a proxy. An issue that counted as deleted would be open without the commits that have shown it.
func TestA404OfAnotherServerIsNoDeletion(t *testing.T) {
	var requests []string
	c := answeredBy(t, func(r *http.Request) (code int, object any) {
		requests = append(requests, r.Method)
		return http.StatusNotFound, "404 page not found"
	})
	im, reviewed := New(c, pr, Options{}), []v1alpha1.ReviewedCommit{{SHA: "c0"}, {SHA: "c1"}}
	p := &plan{commit: "c1", before: reviewed[:1], reviewed: reviewed}
	first := &plan{commit: "c0", reviewed: reviewed[:1]}
	known := v1alpha1.ReviewIssue{ObjectMeta: im.meta(results("10 eval")[0].Name), Spec: first.next(nil, &results("10 eval")[0])}
	p.match(results("10 eval"), []v1alpha1.ReviewIssue{known})
	_, newErr := im.review(t.Context())
	im.uid = "1"
	_, knownErr := im.review(t.Context())
	for what, err := range map[string]error{
		"read a new review":   newErr,
		"read a known review": knownErr,
		"write an issue":      im.writeIssues(t.Context(), p, newSummary(pr, []*importer.Batch{{}})),
	} {
		if !kube.IsUnknownKind(err) {
			t.Errorf("%s: error %v, want the server's 404", what, err)
		}
	}
	harness.Same(t, "requests", []string{http.MethodGet, http.MethodGet, http.MethodPatch}, requests)
}

// A cluster's own policy may refuse a single issue: it is named, and the others are imported. An open issue that cannot
// be seen would count as resolved.
func TestAnIssueThatAPolicyOfTheClusterRefuses(t *testing.T) {
	refusal := &apierrors.StatusError{}
	c := answeredBy(t, func(*http.Request) (code int, object any) { return harness.Refusal(refusal) })
	im, reviewed := New(c, pr, Options{}), []v1alpha1.ReviewedCommit{{SHA: "c0"}, {SHA: "c1"}}
	known := v1alpha1.ReviewIssue{
		ObjectMeta: im.meta(results("10 eval")[0].Name),
		Spec:       (&plan{commit: "c0", reviewed: reviewed[:1]}).next(nil, &results("10 eval")[0]),
	}
	known.Spec.SeenInCommits = append(known.Spec.SeenInCommits, "dropped")
	old := *known.DeepCopy()
	old.Spec.SeenInCommits = old.Spec.SeenInCommits[1:]
	for _, tc := range []struct {
		reason  string
		results []found
		there   []v1alpha1.ReviewIssue
		skipped int
		fails   bool
	}{
		{"a new issue", results("10 eval"), nil, 1, false},
		{"a known issue that the commit shows", results("10 eval"), []v1alpha1.ReviewIssue{known}, 0, true},
		{"a known issue of which only an old commit is dropped", nil, []v1alpha1.ReviewIssue{known}, 1, false},
		{"a known issue whose last commit is dropped", nil, []v1alpha1.ReviewIssue{old}, 0, true},
	} {
		p := &plan{commit: "c1", before: reviewed[:1], reviewed: reviewed}
		p.match(tc.results, tc.there)
		for reason, code := range map[metav1.StatusReason]int32{
			metav1.StatusReasonForbidden: http.StatusForbidden,
			metav1.StatusReasonConflict:  http.StatusConflict,            // a webhook may choose any
			metav1.StatusReasonInvalid:   http.StatusUnprocessableEntity, // a ValidatingAdmissionPolicy without reason
		} {
			refusal.ErrStatus = metav1.Status{Status: metav1.StatusFailure, Reason: reason, Code: code,
				Message: `admission webhook "hold.example.com" denied the request: a legal hold`}
			harness.Same(t, "it is a conflict", false, crossed(refusal))
			s := newSummary(pr, []*importer.Batch{{}})
			if err := im.writeIssues(t.Context(), p, s); (err != nil) != tc.fails || s.SkippedBecause[importer.SkipRefused] != tc.skipped {
				t.Errorf("%s, %s: error %v, skipped %v", tc.reason, reason, err, s.SkippedBecause)
			}
		}
	}
}

func TestAReviewThatTheQuotaRefusesSaysWhatHelps(t *testing.T) {
	c := answeredBy(t, func(*http.Request) (code int, object any) {
		return harness.Refusal(apierrors.NewForbidden(schema.GroupResource{}, "i-1", errors.New("exceeded quota: findings")))
	})
	im := New(c, pr, Options{})
	err := im.create(t.Context(), &v1alpha1.ReviewIssue{ObjectMeta: im.meta("i-1")})
	harness.ErrorContains(t, "create an issue", err,
		"quota of objects of kind ReviewIssue: delete what is no longer needed, or raise spec.quotas")
}
