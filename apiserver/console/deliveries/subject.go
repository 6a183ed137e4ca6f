package deliveries

import (
	"cmp"
	"context"
	"net/http"
	"strconv"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/reviews"
	"github.com/appsec-dev/findings-operator/client"
)

// subject is the object of an event, described for users.
type subject struct {
	// Kind in words; Title is the id if there is no better title.
	Kind, Title string
	// Page is its page in the console, or "".
	Page string
}

// kinds are the kinds of subjects: the word for it, its page, its path in the REST API, and the scope needed to read
// its title there. Without a path, the id is a name.
var kinds = map[string]struct{ word, page, api, scope string }{
	"Finding":         {"finding", "/console/findings", "/v2/findings", "findings:read"},
	"Review":          {"pull request", "/console/reviews", "/v2/reviews", "reviews:read"},
	"ReviewIssue":     {"issue of a pull request", "", "/v2/full-issues", "reviews:read"},
	"Scan":            {"scan", "/console/scans", "/v2/scans", "findings:read"},
	"TriageOperation": {"operation", "/console/operations", "", ""},
	"TriagePolicy":    {"policy", "/console/policies", "", ""},
	"WebhookEndpoint": {"endpoint", "", "", ""},
}

// newSubject returns what the delivery alone tells about the subject.
func newSubject(d client.WebhookDelivery) subject {
	kind := kinds[d.SubjectKind]
	s := subject{Kind: cmp.Or(kind.word, d.SubjectKind), Title: d.SubjectId}
	if kind.page != "" {
		s.Page = page.Of(kind.page, d.SubjectId)
	}
	return s
}

// titled holds the fields of a subject in the REST API that may serve as its title.
type titled struct {
	Details struct {
		Title string `json:"title"`
	} `json:"details"`
	Title    string `json:"title"`
	ReviewID string `json:"review_id"`
	PRTitle  string `json:"pr_title"`
	RepoName string `json:"repo_name"`
	PRNumber int    `json:"pr_number"`
	Tool     string `json:"tool"`
	Project  string `json:"project_id"`
}

func (t titled) title() string {
	switch {
	case t.Title != "" || t.Details.Title != "" || t.PRTitle != "":
		return cmp.Or(t.Details.Title, t.Title, t.PRTitle)
	case t.PRNumber != 0:
		return t.RepoName + " #" + strconv.Itoa(t.PRNumber)
	case t.Tool != "":
		return t.Tool + " over " + t.Project
	}
	return ""
}

// subjects are the subjects of deliveries by kind and id: a scan and a review may have the same name.
type subjects map[[2]string]subject

// of returns the subject of the delivery.
func (s subjects) of(d client.WebhookDelivery) subject { return s[keyOf(d)] }

func keyOf(d client.WebhookDelivery) [2]string { return [2]string{d.SubjectKind, d.SubjectId} }

// readSubjects reads the subjects of the deliveries, each once. If the service refuses to return one from old data, the
// others of its kind are not requested, because each would be refused, too, and count as an error of the service.
func readSubjects(ctx context.Context, v *page.Visit, all []client.WebhookDelivery) (subjects, error) {
	found, refused := subjects{}, map[string]bool{}
	for _, d := range all {
		if _, known := found[keyOf(d)]; known {
			continue
		}
		found[keyOf(d)] = newSubject(d)
		if refused[d.SubjectKind] {
			continue
		}
		s, err := readSubject(ctx, v, d)
		switch {
		case api.IsStale(err):
			refused[d.SubjectKind] = true
		case err != nil:
			return nil, err
		default:
			found[keyOf(d)] = s
		}
	}
	return found, nil
}

// readSubject reads the subject of a delivery, if it still exists and the key may read it.
func readSubject(ctx context.Context, v *page.Visit, d client.WebhookDelivery) (subject, error) {
	s, kind := newSubject(d), kinds[d.SubjectKind]
	if kind.api == "" || !v.May(kind.scope) {
		return s, nil
	}
	var found titled
	_, err := v.API.Get(ctx, page.Of(kind.api, d.SubjectId), nil, &found)
	if api.Is(err, http.StatusNotFound) {
		return s, nil
	}
	s.Title = cmp.Or(found.title(), s.Title)
	if d.SubjectKind == "ReviewIssue" && found.ReviewID != "" {
		s.Page = page.Of(kinds["Review"].page, found.ReviewID) + "#" + reviews.Anchor(d.SubjectId)
	}
	return s, err
}
