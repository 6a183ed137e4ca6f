package reviews

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
	"github.com/appsec-dev/findings-operator/client"
)

// shown is what the page of a pull request shows.
type shown struct {
	id string
	// review is nil where it was not found, see find.
	review *client.Review
	// open are the issues that the pull request would bring, resolved those that it had.
	open, resolved client.ReviewIssueList
	view           url.Values
}

func show(ctx context.Context, v *page.Visit) (page.Response, error) {
	s := shown{id: v.Path("id"), view: page.Given(v.Query, "severity", openCursor, resolvedCursor)}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.issues(ctx, v, "open", s.view.Get(openCursor), &s.open) })
	group.Go(func() error { return s.issues(ctx, v, "resolved", s.view.Get(resolvedCursor), &s.resolved) })
	group.Go(func() (err error) {
		s.review, err = find(ctx, v, s.id)
		return err
	})
	if err := group.Wait(); err != nil {
		return page.Response{}, err
	}
	return page.Response{Title: s.title(), Body: reviewPage(s), Styles: styles}, nil
}

// openCursor and resolvedCursor say how far the lists of the page are, each on its own.
const (
	openCursor     = "open"
	resolvedCursor = "resolved"
)

// issues reads a page of the issues in a state, the most severe of the page first.
func (s *shown) issues(ctx context.Context, v *page.Visit, status, cursor string, into *client.ReviewIssueList) error {
	query := page.Given(s.view, "severity")
	query.Set("status", status)
	query.Set("size", "200")
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	_, err := v.API.Get(ctx, "/v2/reviews/"+url.PathEscape(s.id)+"/issues", query, into)
	slices.SortStableFunc(into.Items, func(a, b client.ReviewIssue) int {
		return cmp.Or(rank(b.Severity)-rank(a.Severity), strings.Compare(a.FilePath, b.FilePath),
			int(a.LineNumber-b.LineNumber))
	})
	return err
}

func rank(s client.Severity) int {
	return slices.Index([]client.Severity{client.SeverityLow, client.SeverityMedium, client.SeverityHigh}, s)
}

// mostPages bounds how far the list of reviews is read to find one: the REST API returns none by its id.
const mostPages = 3

// find returns a review, or nil if it is not among those that changed last. Then its issues tell what they can.
func find(ctx context.Context, v *page.Visit, id string) (*client.Review, error) {
	query := url.Values{"size": {"1000"}}
	for range mostPages {
		var reviews client.ReviewList
		if _, err := v.API.Get(ctx, apiPath, query, &reviews); err != nil {
			return nil, err
		}
		for i := range reviews.Items {
			if reviews.Items[i].Id == id {
				return &reviews.Items[i], nil
			}
		}
		if !reviews.HasMore {
			break
		}
		query.Set("cursor", reviews.NextCursor)
	}
	return nil, nil //nolint:nilnil // not to be found is no error
}

// name is the repository and the number of the pull request, as far as they are known.
func (s shown) name() string {
	if s.review != nil {
		return name(*s.review)
	}
	for _, i := range slices.Concat(s.open.Items, s.resolved.Items) {
		return pullRequest(i.RepoOwner, i.RepoName, i.PrNumber)
	}
	return s.id
}

// title is that of the pull request; without one, its name.
func (s shown) title() string {
	if s.review != nil && s.review.PrTitle != "" {
		return s.review.PrTitle
	}
	return s.name()
}

// part is one of the page's two lists of issues.
type part struct {
	id, title, what, none string
	issues                client.ReviewIssueList
	// next is the address of the page with the list further on.
	next string
}

// parts are what the pull request would bring, and what was mended in it.
func (s shown) parts() []part {
	return []part{
		{"open", "New: open issues", "The pull request has them and its base branch does not.",
			"None: what it brings is resolved, or it brings nothing.", s.open, s.after(openCursor, s.open.NextCursor)},
		{"resolved", "Fixed: resolved issues", "An earlier commit of the pull request had them, a later one does not.",
			"None so far.", s.resolved, s.after(resolvedCursor, s.resolved.NextCursor)},
	}
}

// figures count all issues. Those of a severity lead to the page with no others.
func (s shown) figures() []ui.Figure {
	if s.review == nil {
		return []ui.Figure{
			{Name: "Open", Count: int32(s.open.Total)},         //nolint:gosec // bounded by what a review can hold
			{Name: "Resolved", Count: int32(s.resolved.Total)}, //nolint:gosec // as above
		}
	}
	return []ui.Figure{
		{Name: "Open", Count: s.review.OpenIssueCount},
		s.figure("High", "high", s.review.OpenHighCount),
		s.figure("Medium", "medium", s.review.OpenMediumCount),
		s.figure("Low", "low", s.review.OpenLowCount),
		{Name: "Resolved", Count: s.review.ClosedIssueCount},
	}
}

// figure counts the open issues of a severity, and leads to the page with no others.
func (s shown) figure(name, severity string, count int32) ui.Figure {
	f := ui.Figure{Name: name, Count: count}
	if count > 0 {
		f.Link = page.Address(address(s.id), nil, "severity", severity)
	}
	return f
}

// after is the address of this page with one of its lists further on.
func (s shown) after(list, cursor string) string {
	return page.Address(address(s.id), s.view, list, cursor)
}

// address is where the console has a review.
func address(id string) string { return listPath + "/" + url.PathEscape(id) }

// pullRequest is what a pull request is called.
func pullRequest(owner, repository string, number int32) string {
	if owner != "" {
		repository = owner + "/" + repository
	}
	return repository + " #" + strconv.Itoa(int(number))
}

// commitLink is the page of a commit at the provider. The API has that of the commit that first showed the issue; the
// others are beside it.
func commitLink(i client.ReviewIssue, commit string) string {
	before, known := strings.CutSuffix(i.CommitLink, i.CommitSha)
	if !known || i.CommitSha == "" {
		return ""
	}
	return before + commit
}

// place is where the issue is.
func place(i client.ReviewIssue) client.FileLocation {
	return client.FileLocation{FilePath: i.FilePath, LineNumber: i.LineNumber, Url: i.FileLocationLink}
}

// tone is the colour of a pull request's state.
func tone(status client.PullRequestStatus) ui.Tone {
	switch status {
	case client.PullRequestStatusOpen:
		return ui.Going
	case client.PullRequestStatusMerged:
		return ui.Good
	}
	return ui.Plain
}
