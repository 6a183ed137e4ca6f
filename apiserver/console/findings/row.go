package findings

import (
	"context"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

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

// found is what a row shows of a finding in the full shape.
type found struct {
	decision.Decision
	ID      string `json:"id"`
	Details struct {
		Title       string `json:"title"`
		Description string `json:"description"`
		Severity    string `json:"severity"`
		Code        string `json:"code"`
		Location    struct {
			FilePath   string `json:"file_path"`
			LineNumber int    `json:"line_number"`
		} `json:"location"`
	} `json:"details"`
	Repo struct {
		Name string `json:"name"`
	} `json:"repo"`
	Facts struct {
		Tool         string  `json:"tool"`
		RuleID       string  `json:"rule_id"`
		Score        float32 `json:"score"`
		ToolSeverity string  `json:"tool_severity"`
		Package      struct {
			Version string `json:"version"`
		} `json:"package"`
	} `json:"facts"`
	Status        string `json:"status"`
	DecidedBy     string `json:"decided_by"`
	DecisionStale string `json:"decision_stale"`
	CreatedAt     string `json:"created_at"`
	UpdatedAt     string `json:"updated_at"`
	Verdict       struct {
		UserStatus  *string `json:"user_status"`
		Policy      string  `json:"policy"`
		ReviewIssue string  `json:"review_issue"`
	} `json:"verdict"`
}

// UnmarshalJSONFrom reads a row from a finding in the full shape.
func (r *row) UnmarshalJSONFrom(in *jsontext.Decoder) error {
	var f found
	err := jsonv2.UnmarshalDecode(in, &f)
	*r = row{
		ID: f.ID, Repo: f.Repo.Name, Tool: f.Facts.Tool, Rule: f.Facts.RuleID, Status: f.Status,
		Standing: decision.Standing{Decision: f.Decision, DecidedBy: f.DecidedBy, Facts: decision.Facts{
			Severity: f.Details.Severity, ToolSeverity: f.Facts.ToolSeverity, Score: f.Facts.Score,
			Version: f.Facts.Package.Version, Code: f.Details.Code, Stale: f.DecisionStale,
			Title: f.Details.Title, Description: f.Details.Description,
			Path: f.Details.Location.FilePath, Line: f.Details.Location.LineNumber,
		}},
		CreatedAt: f.CreatedAt, UpdatedAt: f.UpdatedAt,
		Verdict: f.Verdict.UserStatus, Policy: f.Verdict.Policy, Issue: f.Verdict.ReviewIssue,
	}
	return err
}

// rows is a page of the list.
type rows struct {
	Items   []row  `json:"items"`
	HasMore bool   `json:"has_more"`
	Next    string `json:"next_cursor"`
	Total   int    `json:"total"`
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
