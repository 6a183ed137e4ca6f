package handlers

import (
	"context"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
	"github.com/appsec-dev/findings-operator/internal/findingtrend"
)

const (
	// usualTrend is the default number of days between the first and the last day, maxTrend the maximum,
	// which is more than are kept.
	usualTrend = 89
	maxTrend   = 800
)

// GetTrends is an operation of the contract.
func (b *Backend) GetTrends(ctx context.Context, request Request) (Response, error) {
	from, to, err := trendSpan(request.Query, time.Now())
	if err != nil {
		return Response{}, err
	}
	trends, err := tracing.Do(ctx, "read model: trends", func() (readmodel.Trends, error) {
		return b.Model.Trends(ctx, request.Organization, readmodel.TrendQuery{
			RepoID: optional(request.Query, "repo_id"), ProjectID: optional(request.Query, "project_id"),
			Owner: optional(request.Query, "owner"), From: from, To: to,
			Group: request.Query.Get("group"), Groups: request.Query.Int("values"),
		})
	})
	if err != nil {
		return Response{}, Unavailable(err)
	}
	shown, err := render.JSON(shownTrends(&trends))
	return rendered(shown), err
}

// trendSpan returns the first and the last day that are requested.
func trendSpan(query openapi.Parameters, now time.Time) (from, to v1alpha1.Day, err error) {
	today := findingtrend.Of(now)
	to = today
	if asked := v1alpha1.Day(query.Get("to")); asked != "" {
		if !findingtrend.Valid(asked) {
			return "", "", problem.InvalidQuery("to must be a day, such as 2026-11-23").In("to")
		}
		to = min(today, asked)
	}
	from = v1alpha1.Day(query.Get("from"))
	switch {
	case from == "":
		from = findingtrend.Plus(to, -usualTrend)
	case !findingtrend.Valid(from):
		return "", "", problem.InvalidQuery("from must be a day, such as 2026-09-01").In("from")
	case from > today:
		return "", "", problem.InvalidQuery("from must not be after today, in UTC").In("from")
	case query.Get("to") != "" && from > v1alpha1.Day(query.Get("to")):
		return "", "", problem.InvalidQuery("to must not be before from").In("to")
	case findingtrend.Days(from, to) > maxTrend:
		return "", "", problem.InvalidQuery("from must be at most 800 days before to").In("from")
	}
	return from, to, nil
}

func shownTrends(trends *readmodel.Trends) *openapi.Trends {
	out := &openapi.Trends{
		Days: make([]openapi.TrendDay, len(trends.Days)), Groups: make([]openapi.TrendGroup, len(trends.Groups)),
		TimeToClose: trendSpread(trends.TimeToClose),
	}
	for i := range trends.Days {
		out.Days[i] = trendDay(&trends.Days[i])
	}
	for i := range trends.Groups {
		group := &trends.Groups[i]
		out.Groups[i] = openapi.TrendGroup{
			Value: group.Value, Since: string(group.First.Day), Before: trendOpen(&group.First), After: trendOpen(&group.Last),
		}
	}
	return out
}

func trendDay(row *v1alpha1.FindingTrendDay) openapi.TrendDay {
	return openapi.TrendDay{
		Day: string(row.Day), Open: trendOpen(row),
		OpenMuted: row.OpenMuted, Opened: row.Opened, Closed: row.Closed, Muted: row.Muted,
		Age: trendSpread(row.Age), TimeToClose: trendSpread(row.TimeToClose),
	}
}

func trendOpen(row *v1alpha1.FindingTrendDay) openapi.TrendOpen {
	return openapi.TrendOpen{
		Total: findingtrend.Open(row), Critical: row.Open.Critical, High: row.Open.High, Medium: row.Open.Medium,
		Low: row.Open.Low,
	}
}

func trendSpread(spread *v1alpha1.FindingTrendSpread) *openapi.TrendSpread {
	if spread == nil {
		return nil
	}
	return &openapi.TrendSpread{Median: spread.Median, P90: spread.P90}
}
