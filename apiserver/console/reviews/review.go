package reviews

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/appsec-dev/findings-operator/apiserver/console/decision"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
	"github.com/appsec-dev/findings-operator/client"
)

// shown is the content of a pull request's page.
type shown struct {
	client.ReviewFull
	// open holds the issues that the pull request would introduce, resolved those that it had.
	open, resolved client.ReviewIssueFullList
	view           url.Values
	token          string
	texts          *ui.Texts
	// needsReason reports that the organization requires a reason to mute.
	canDecide, needsReason bool
	// link is the page of the pull request at the provider; empty if unknown.
	link string
	// Conflict explains why the form about the issue Conflicted was not stored; empty if none was sent.
	Conflict, Conflicted string
	// Sent is that form.
	Sent url.Values
}

func show(ctx context.Context, v *page.Visit) (page.Response, error) {
	return showWith(ctx, v, shown{}, http.StatusOK)
}

func showWith(ctx context.Context, v *page.Visit, s shown, status int) (page.Response, error) {
	view, err := viewOf(v)
	if err != nil {
		return page.Response{}, err
	}
	s.token, s.canDecide, s.needsReason = v.Token, v.May("findings:triage"), v.Who.RequiresReason
	s.view, s.texts = view, new(ui.Texts)
	of := v.Resource("/v2/reviews")
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.issues(ctx, v, of, "open", s.view.Get(openCursor), &s.open) })
	group.Go(func() error { return s.issues(ctx, v, of, "resolved", s.view.Get(resolvedCursor), &s.resolved) })
	group.Go(func() error {
		if _, err := v.API.Get(ctx, of, nil, &s.ReviewFull); err != nil {
			return err
		}
		var err error
		s.link, err = readLink(ctx, v, s.ReviewFull)
		return err
	})
	if err := group.Wait(); err != nil {
		return page.Response{}, err
	}
	return page.Response{Status: status, Title: s.title(), Body: reviewPage(s), Styles: styles}, nil
}

// viewOf returns the parameters of the page's address that select the issues to show, and refuses others.
func viewOf(v *page.Visit) (url.Values, error) {
	return v.View("severity", openCursor, resolvedCursor)
}

// openCursor and resolvedCursor are the parameters for the cursors of the page's two lists.
const (
	openCursor     = "open"
	resolvedCursor = "resolved"
)

// issues reads a page of the issues in a state, sorted by severity within the page.
func (s *shown) issues(ctx context.Context, v *page.Visit, of, status, cursor string,
	into *client.ReviewIssueFullList) error {
	query := page.Given(s.view, "severity")
	query.Set("status", status)
	query.Set("size", "200")
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	_, err := v.API.Get(ctx, of+"/full-issues", query, into)
	slices.SortStableFunc(into.Items, func(a, b client.ReviewIssueFull) int {
		return cmp.Or(rank(b.Severity)-rank(a.Severity), strings.Compare(a.FilePath, b.FilePath),
			int(a.LineNumber-b.LineNumber))
	})
	return err
}

func rank(s client.Severity) int {
	return slices.Index([]client.Severity{client.SeverityLow, client.SeverityMedium, client.SeverityHigh}, s)
}

// name returns the repository and the number of the pull request.
func (s shown) name() string { return pullRequest(s.RepoOwner, s.RepoName, s.PrNumber) }

// title returns the title of the pull request, or else its name.
func (s shown) title() string { return cmp.Or(s.PrTitle, s.name()) }

// part is one of the page's two lists of issues.
type part struct {
	id, title, what, none string
	issues                client.ReviewIssueFullList
	// next is the address of the page with the next part of the list.
	next string
}

// parts returns the issues that the pull request would introduce, and those that were fixed in it.
func (s shown) parts() []part {
	open, resolved := "None: all its issues are resolved, or it has none.", "None so far."
	if s.view.Get("severity") != "" {
		open, resolved = "None of this severity.", "None of this severity."
	}
	return []part{
		{"open", "New: open issues", "The pull request has them and its base branch does not.",
			open, s.open, s.after(openCursor, s.open.NextCursor)},
		{"resolved", "Fixed: resolved issues", "An earlier commit of the pull request had them, a later one does not.",
			resolved, s.resolved, s.after(resolvedCursor, s.resolved.NextCursor)},
	}
}

// hasIssues reports whether the review has any issues, whatever the page shows of them. A review whose import was cut
// off has some before its first commit counts as reviewed.
func (s shown) hasIssues() bool { return s.OpenIssueCount+s.ClosedIssueCount > 0 }

// figures returns the counts of all issues. A severity's count links to the page filtered by it.
func (s shown) figures() []ui.Figure {
	return []ui.Figure{
		{Name: "Open", Count: s.OpenIssueCount},
		s.figure("High", "high", s.OpenHighCount),
		s.figure("Medium", "medium", s.OpenMediumCount),
		s.figure("Low", "low", s.OpenLowCount),
		{Name: "Of them muted", Count: s.OpenMutedCount},
		{Name: "Of them confirmed", Count: s.OpenConfirmedCount},
		{Name: "Resolved", Count: s.ClosedIssueCount},
	}
}

// figure returns the number of open issues of a severity, with a link to the page filtered by it.
func (s shown) figure(name, severity string, count int32) ui.Figure {
	return ui.Linked(name, count, page.Address(page.Of(listPath, s.Id), nil, "severity", severity))
}

// after returns the address of this page with the next part of one of its lists.
func (s shown) after(list, cursor string) string {
	return page.Address(page.Of(listPath, s.Id), s.view, list, cursor)
}

// pullRequest returns the name of a pull request.
func pullRequest(owner, repository string, number int32) string {
	if owner != "" {
		repository = owner + "/" + repository
	}
	return repository + " #" + strconv.Itoa(int(number))
}

// commitLink returns the page of a commit at the provider. The API has only the page of the commit that first showed
// the issue; the pages of the other commits have the same prefix.
func commitLink(i client.ReviewIssueFull, commit string) string {
	before, known := strings.CutSuffix(i.CommitLink, i.CommitSha)
	if !known || i.CommitSha == "" {
		return ""
	}
	return before + commit
}

// place returns the location of the issue.
func place(i client.ReviewIssueFull) client.FileLocation {
	return client.FileLocation{FilePath: i.FilePath, LineNumber: i.LineNumber, Url: i.FileLocationLink}
}

// tones are the colours for the pull requests' states.
var tones = map[client.PullRequestStatus]ui.Tone{
	client.PullRequestStatusOpen:   ui.Going,
	client.PullRequestStatusMerged: ui.Good,
}

// decisionWords describes the decision about an issue and who made it; "" without one.
func decisionWords(i client.ReviewIssueFull) string {
	switch {
	case i.UserStatus != client.UserStatusOpen:
		return decision.Words[string(i.UserStatus)] + " by " + i.DecidedBy
	case i.Verdict.UserStatus != nil:
		return decision.Words[string(*i.Verdict.UserStatus)] + " by policy " + i.Verdict.Policy
	}
	return ""
}
