package findings

import (
	"context"
	"net/http"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/decision"
	"github.com/appsec-dev/findings-operator/client"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// rowOf returns the expected row of a finding.
func rowOf(f client.FindingFull) row {
	return row{
		ID:   f.Id,
		Repo: f.Repo.Name, Tool: f.Facts.Tool, Rule: f.Facts.RuleId, Status: string(f.Status),
		Standing: decision.Standing{Decision: decision.Decision{
			UserStatus: string(f.UserStatus), Reason: (*string)(f.Reason), ExpiresAt: f.ExpiresAt, Comments: f.Comments,
		}, DecidedBy: f.DecidedBy, Facts: shown{FindingFull: f}.now().Facts}, // as beside the list
		CreatedAt: f.CreatedAt.Format(time.RFC3339), UpdatedAt: f.UpdatedAt.Format(time.RFC3339),
		Verdict: (*string)(f.Verdict.UserStatus), Policy: f.Verdict.Policy, Issue: f.Verdict.ReviewIssue,
	}
}

type tester interface {
	rapid.TB
	Context() context.Context
}

// answered reads a response of the REST API.
func answered(t tester, body []byte, into any) {
	t.Helper()
	answer := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }
	if _, err := api.New(http.HandlerFunc(answer), "", "").Get(t.Context(), "/", nil, into); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
}

// anyFinding generates findings with unusual strings in all string fields, and missing optional fields.
var anyFinding = rapid.MakeCustom[client.FindingFull](rapid.MakeConfig{Types: map[reflect.Type]*rapid.Generator[any]{
	reflect.TypeFor[time.Time](): rapid.Map(rapid.Int64Range(0, 4e9), func(n int64) any { return time.Unix(n, 0).UTC() }),
}, Kinds: map[reflect.Kind]*rapid.Generator[any]{
	reflect.String: rapid.OneOf(rapid.String(), rapid.StringMatching(`([\\"{}\[\],:<&]|é|\n|\x00|😀){0,8}`)).AsAny(),
}})

func TestARowShowsWhatTheFindingIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := client.FindingFullList{
			Items: rapid.SliceOfN(anyFinding, 0, 3).Draw(t, "items"), HasMore: rapid.Bool().Draw(t, "more"),
			NextCursor: rapid.String().Draw(t, "next"), Total: rapid.Int64().Draw(t, "total"),
		}
		body := harness.JSON(t, want)
		answered(t, body, &want)
		var got rows
		answered(t, body, &got)
		shown := rows{Items: []row{}, HasMore: want.HasMore, Next: want.NextCursor, Total: int(want.Total)}
		for i := range want.Items {
			shown.Items = append(shown.Items, rowOf(want.Items[i]))
		}
		harness.Same(t, string(body), shown, got)
	})
}

// The examples have the documented shape, so undocumented fields are missing.
func TestARowOfAnExampleShowsIt(t *testing.T) {
	examples, err := filepath.Glob("../../render/testdata/findingv2.*.json")
	if err != nil || len(examples) == 0 {
		t.Fatal("no examples: ", err)
	}
	for _, example := range examples {
		body := []byte(harness.File(t, example))
		var want client.FindingFull
		var got row
		answered(t, body, &want)
		answered(t, body, &got)
		harness.Same(t, example, rowOf(want), got)
	}
}

// TestARowShowsWhatTheFindingIs compares the facts of a row with these.
func TestThePageOfAFindingHasEveryFactOfADecision(t *testing.T) {
	answer := harness.RepositoryFile(t, "apiserver", "render", "testdata", "findingfull.full.json")
	whole := harness.Decoded[client.FindingFull](t, []byte(answer))
	harness.Filled(t, "apiserver/console/findings/finding.go", shown{FindingFull: whole}.now().Facts)
}
