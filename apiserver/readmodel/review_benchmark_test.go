package readmodel

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
)

const benchReviews = 10_000

// benchReviewModel is shared by the benchmarks: 10,000 reviews of 100 repositories, updated one per minute, ten
// of them merged with an open issue.
var benchReviewModel = sync.OnceValue(func() *Model {
	lists := map[kind][]metav1.Object{organizations: {organization(acme, acmeNamespace, 1)}}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range benchReviews {
		r := review(fmt.Sprintf("r-%05d", i), 10+i)
		at := v1alpha1.NewTime(epoch.Add(time.Duration(i) * time.Minute))
		r.Status.ObservedGeneration, r.Status.UpdatedAt = 1, &at
		r.Spec.RepositoryRef.Name = v1alpha1.ResourceName(fmt.Sprintf("repo-%d", random.IntN(100)))
		r.Spec.PRNumber, r.Spec.PRTitle = int32(i+1), fmt.Sprintf("Change number %d", random.IntN(1_000_000)) //nolint:gosec // small
		if i%1000 == 0 {
			r.Spec.PRStatus = v1alpha1.PullRequestMerged
			flaw := issue(r.Name, 10+i)
			flaw.Spec.ReviewRef.Name = v1alpha1.ResourceName(r.Name)
			lists[reviewIssues] = append(lists[reviewIssues], flaw)
		}
		lists[reviews] = append(lists[reviews], r)
	}
	return benched(lists)
})

func BenchmarkListReviews(b *testing.B) {
	status := "merged"
	after := func(minutes int) *time.Time {
		at := epoch.Add(time.Duration(minutes) * time.Minute)
		return &at
	}
	cases := []struct {
		name   string
		sort   index.Sort
		filter ReviewFilter
	}{
		{"unfiltered", SortUpdatedAt, ReviewFilter{}},
		{"unfiltered by title", SortPRTitle, ReviewFilter{}},
		{"ten merged with issues", SortUpdatedAt, ReviewFilter{Custom: CustomMergedWithIssues}},
		{"ten merged by title", SortPRTitle, ReviewFilter{Status: &status}},
		{"none", SortUpdatedAt, ReviewFilter{Custom: CustomNotReviewed}},
		{"ten at the start", SortUpdatedAt, ReviewFilter{EndTime: after(10)}},
		{"ten in the middle by title", SortPRTitle, ReviewFilter{StartTime: after(5000), EndTime: after(5010)}},
		{"300 in the middle by title", SortPRTitle, ReviewFilter{StartTime: after(5000), EndTime: after(5300)}},
		{"half by title", SortPRTitle, ReviewFilter{StartTime: after(5000)}},
		{"half, at the far end, by number", SortPRNumber, ReviewFilter{EndTime: after(5000)}},
		{"ten of the merged in half by title", SortPRTitle, ReviewFilter{Status: &status, StartTime: after(5000)}},
	}
	m := benchReviewModel()
	for _, size := range []int{10, 100, 1000} {
		for _, c := range cases {
			b.Run(fmt.Sprintf("%d/%s", size, c.name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := m.ListReviews(acme, ReviewQuery{Limit: index.Limit{Size: size}, Sort: c.sort, Filter: c.filter}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
