package readmodel

import (
	"fmt"
	"time"
	"unique"

	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// Review is a review as it is shown. It never changes.
type Review struct {
	record
	updatedAt, repoName         string
	prTitle, prAuthor, prStatus string
	prNumber, openIssueCount    int32
	reviewed                    bool
}

// The second and third value of a review's facet, or "".
const (
	withIssues = "open issues"
	reviewed   = "reviewed"
)

// reviewLayout defines how reviews are indexed.
var reviewLayout = &index.Layout[*Review]{
	Sorts: []index.Sort{
		SortUpdatedAt, SortPRTitle, SortPRNumber, SortPRStatus, SortPRAuthor, SortRepoName, SortOpenIssueCount,
	},
	Values: func(i *Review) []string {
		return []string{
			i.updatedAt, i.prTitle, number(i.prNumber), i.prStatus, i.prAuthor, i.repoName, number(i.openIssueCount),
		}
	},
	Keys: func(i *Review) []index.Key {
		facet := index.Facet{i.prStatus}
		if i.openIssueCount > 0 {
			facet[1] = withIssues
		}
		if i.reviewed {
			facet[2] = reviewed
		}
		return []index.Key{{Field: index.Everything}, {Field: anyValue, Facet: unique.Make(facet)}}
	},
}

// reviewUpdatedAt is the index in reviewLayout of the field that start and end times refer to.
const reviewUpdatedAt = 0

// number returns a non-negative number with leading zeros, so that the order of the bytes is that of the
// numbers.
func number(n int32) string { return fmt.Sprintf("%010d", n) }

// Custom is the name of a predefined list of reviews.
type Custom string

// The predefined lists.
const (
	// CustomOpenWithIssues are open pull requests with open issues.
	CustomOpenWithIssues Custom = "open_with_issues"
	// CustomMergedWithIssues are merged pull requests with open issues.
	CustomMergedWithIssues Custom = "merged_with_issues"
	// CustomNotReviewed are pull requests without a reviewed commit.
	CustomNotReviewed Custom = "not_reviewed"
	// CustomReviewed are pull requests with a reviewed commit.
	CustomReviewed Custom = "reviewed"
)

// ReviewQuery asks for a page of an organization's reviews, sorted by pr_title, pr_number, pr_status, pr_author,
// repo_name, open_issue_count or updated_at; empty means updated_at. Numbers are sorted numerically, other fields by
// the bytes of the shown value.
type ReviewQuery struct {
	index.Request
	// Filter leaves out reviews that do not match.
	Filter ReviewFilter
	// Shape is the shape of the items.
	Shape render.Shape
}

// ReviewFilter matches reviews that meet all its conditions. The zero value matches all.
type ReviewFilter struct {
	// StartTime and EndTime bound updated_at: StartTime is inclusive, EndTime exclusive. nil is no bound; an
	// EndTime that is not after StartTime matches nothing.
	StartTime, EndTime *time.Time
	// Status of the pull request: open, closed or merged; nil matches all.
	Status *string
	// Custom is a predefined list; empty matches all reviews, an unknown name none.
	Custom Custom
}

// ListReviews answers a query from the organization's snapshot; an item is the review's JSON,
// ready to be sent. It takes no lock. The error is ErrNoOrganization.
//
// Its cost is proportional to the page, except for StartTime or EndTime with another sort than updated_at: then
// it examines at most every review.
func (m *Model) ListReviews(organization string, q ReviewQuery) (index.Page[content.Part], error) {
	snapshot, err := m.snapshot(organization)
	if err != nil {
		return index.Page[content.Part]{}, err
	}
	x := snapshot.reviews
	return listJSON(x, reviewLayout.Query(q.Request), q.Filter.choose(x),
		func(i *Review) content.Part { return i.In(q.Shape) }), nil
}

func (f ReviewFilter) matchesFacet(has index.Facet) bool {
	if !matches(f.Status, has[0]) {
		return false
	}
	switch f.Custom {
	case "":
		return true
	case CustomOpenWithIssues:
		return has[0] == "open" && has[1] == withIssues
	case CustomMergedWithIssues:
		return has[0] == "merged" && has[1] == withIssues
	case CustomNotReviewed:
		return has[2] == ""
	case CustomReviewed:
		return has[2] == reviewed
	default:
		return false
	}
}

// choose picks the buckets and the span that contain the matches of a filter.
func (f ReviewFilter) choose(x *index.Index[*Review]) index.Selection[*Review] {
	var s index.Selection[*Review]
	if f.Status == nil && f.Custom == "" {
		s = x.Pick(index.Everything, "", index.AnyFacet)
	} else {
		s = x.Pick(anyValue, "", f.matchesFacet)
	}
	x.Within(&s, reviewUpdatedAt, spanOf(f.StartTime, f.EndTime))
	return s
}
