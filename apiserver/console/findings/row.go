package findings

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/decision"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
)

// row is a finding's row of the list. Times are as the REST API writes them.
type row struct {
	ID               string
	Repo, Tool, Rule string
	Status           string
	// Standing also holds the facts, of which a row shows the severity, the title and the place.
	decision.Standing
	CreatedAt, UpdatedAt string
	// Verdict is the decision of a policy or of a pull request's issue; nil without one.
	Verdict       *string
	Policy, Issue string
}

// TakeFrom reads the fields of a row from a finding in the full shape.
func (r *row) TakeFrom(in *api.Reader) {
	for name := range in.Members() {
		switch string(name) {
		case "id":
			r.ID = in.Text()
		case "details":
			r.takeDetails(in)
		case "repo":
			for name := range in.Members() {
				if string(name) == "name" {
					r.Repo = in.Text()
				}
			}
		case "facts":
			r.takeFacts(in)
		case "status":
			r.Status = in.Text()
		case "user_status":
			r.UserStatus = in.Text()
		case "reason":
			r.Reason = in.Optional()
		case "expires_at":
			r.ExpiresAt = in.Moment()
		case "comments":
			r.Comments = in.Text()
		case "decided_by":
			r.DecidedBy = in.Text()
		case "decision_stale":
			r.Stale = in.Text()
		case "created_at":
			r.CreatedAt = in.Text()
		case "updated_at":
			r.UpdatedAt = in.Text()
		case "verdict":
			r.takeVerdict(in)
		}
	}
}

func (r *row) takeDetails(in *api.Reader) {
	for name := range in.Members() {
		switch string(name) {
		case "title":
			r.Title = in.Text()
		case "description":
			r.Description = in.Text()
		case "severity":
			r.Severity = in.Text()
		case "code":
			r.Code = in.Text()
		case "location":
			for name := range in.Members() {
				switch string(name) {
				case "file_path":
					r.Path = in.Text()
				case "line_number":
					r.Line = in.Int()
				}
			}
		}
	}
}

func (r *row) takeFacts(in *api.Reader) {
	for name := range in.Members() {
		switch string(name) {
		case "tool":
			r.Tool = in.Text()
		case "rule_id":
			r.Rule = in.Text()
		case "score":
			r.Score = in.Float()
		case "tool_severity":
			r.ToolSeverity = in.Text()
		case "package":
			for name := range in.Members() {
				if string(name) == "version" {
					r.Version = in.Text()
				}
			}
		}
	}
}

func (r *row) takeVerdict(in *api.Reader) {
	for name := range in.Members() {
		switch string(name) {
		case "user_status":
			r.Verdict = in.Optional()
		case "policy":
			r.Policy = in.Text()
		case "review_issue":
			r.Issue = in.Text()
		}
	}
}

// rows is a page of the list.
type rows struct {
	Items   []row
	HasMore bool
	Next    string
	Total   int
}

// TakeFrom reads a page of findings in the full shape.
func (p *rows) TakeFrom(in *api.Reader) {
	for name := range in.Members() {
		switch string(name) {
		case "items":
			for range in.Items() {
				if p.Items == nil {
					p.Items = make([]row, 0, pageRows)
				}
				p.Items = append(p.Items, row{})
				p.Items[len(p.Items)-1].TakeFrom(in)
			}
		case "has_more":
			p.HasMore = in.Bool()
		case "next_cursor":
			p.Next = in.Text()
		case "total":
			p.Total = in.Int()
		}
	}
}

// showRow returns to a module the updated row of a finding, whether or not the list would still show it.
func showRow(ctx context.Context, v *page.Visit) (page.Response, error) {
	if !v.Scripted {
		return page.SeeOther(v.Resource(listPath)), nil
	}
	var now row
	if _, err := v.API.Get(ctx, v.Resource(apiPath), nil, &now); err != nil {
		return page.Response{}, err
	}
	shown, err := page.Text(ctx, item(&now, v.May("findings:triage")))
	return page.Response{JSON: struct {
		Row string `json:"row"`
	}{shown}}, err
}
