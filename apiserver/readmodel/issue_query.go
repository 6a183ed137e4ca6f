package readmodel

import (
	"errors"
	"unique"

	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// ErrNoReview is returned for a review that does not exist.
var ErrNoReview = errors.New("there is no such review")

// reviewField indexes issues by their review, with facets of status, severity and user status.
const reviewField = index.Everything + 1

// issueLayout defines how review issues are indexed.
var issueLayout = &index.Layout[*Issue]{
	Sorts:  []index.Sort{SortCreatedAt, SortUpdatedAt},
	Values: func(i *Issue) []string { return []string{i.createdAt, i.updatedAt} },
	Keys: func(i *Issue) []index.Key {
		facet := unique.Make(index.Facet{i.status, i.severity, i.userStatus})
		return []index.Key{{Field: reviewField, Value: i.review, Facet: facet}}
	},
}

// IssueQuery asks for a page of a review's issues, sorted by created_at or updated_at; empty means created_at.
type IssueQuery struct {
	index.Request
	// Review is the id of the review.
	Review string
	// Status is open or resolved, Severity high, medium or low, UserStatus open, active or muted; nil matches all.
	Status, Severity, UserStatus *string
	// Shape is the shape of the items.
	Shape render.Shape
}

// ListReviewIssues answers a query from the organization's snapshot, at a cost proportional to the page; an
// item is the issue's JSON, ready to be sent. It takes no lock. The error is ErrNoOrganization or ErrNoReview.
func (m *Model) ListReviewIssues(organization string, q IssueQuery) (index.Page[content.Part], error) {
	snapshot, err := m.snapshot(organization)
	if err != nil {
		return index.Page[content.Part]{}, err
	}
	if _, there := snapshot.reviews.Get(q.Review); !there {
		return index.Page[content.Part]{}, ErrNoReview
	}
	x := snapshot.issues
	selected := x.Pick(reviewField, q.Review, func(has index.Facet) bool {
		return matches(q.Status, has[0]) && matches(q.Severity, has[1]) && matches(q.UserStatus, has[2])
	})
	return listJSON(x, issueLayout.Query(q.Request), selected,
		func(i *Issue) content.Part { return i.In(q.Shape) }), nil
}
