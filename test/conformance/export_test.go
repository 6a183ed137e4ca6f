package conformance

import (
	"bytes"
	"encoding/csv"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/test/apiclient"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// The export of findings is an addition to the contract.

const exportPath = "/v2/finding-export"

// exportColumns are the columns of a CSV, in order.
var exportColumns = strings.Fields(`id title severity score status user_status reason comments decided_by expires_at verdict_policy repository project
	owner tool rule class category vulnerability package version fixed_version file line url created_at updated_at
	verdict_review_issue verdict_by verdict_reason verdict_comment`)

// csvRows returns the rows of an export, and checks its header.
func (a answer) csvRows() (rows []map[string]string) {
	a.t.Helper()
	all, err := csv.NewReader(bytes.NewReader(a.wants(200, "an export").Body)).ReadAll()
	harness.Must(a.t, err)
	if diff := cmp.Diff(exportColumns, all[0]); diff != "" {
		a.t.Fatalf("the columns (-want +got):\n%s", diff)
	}
	for _, cells := range all[1:] {
		row := map[string]string{}
		for i, name := range exportColumns {
			row[name] = cells[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// sarifResults returns the results of an export, by the tool of their run.
func (a answer) sarifResults() map[string][]record {
	a.t.Helper()
	results := map[string][]record{}
	for _, run := range a.wants(200, "an export").object().records("runs") {
		results[run.object("tool").object("driver").text("name")] = run.records("results")
	}
	return results
}

func TestExport_HasAllThatTheListHasInItsOrder(t *testing.T) {
	o := askedOrganization(t)
	for _, query := range []url.Values{
		{}, {"order": {"asc"}}, {"sort": {"updated_at"}, "order": {"asc"}}, {"sort": {"severity"}}, {"severity": {"low"}}, {"tool": {"trivy"}, "min_score": {"5"}}, {"owner": {"team-a"}, "text": {"openssl"}},
		{"created_since": {"2026-03-02T00:00:00Z"}, "category": {"Package"}}, {"rule": {"none"}}, {"status": {"open"}, "tool": {"gosec"}}, {"suppressed": {"true"}},
	} {
		want := o.get(with("/v1/findings", query.Encode())).page().ids()
		rows, results := []string{}, []string{}
		for _, row := range o.get(with(exportPath, query.Encode())).csvRows() {
			rows = append(rows, row["id"])
		}
		harness.Same(t, query.Encode()+": the CSV, compared with the list", want, rows)
		for _, ofTool := range o.get(with(with(exportPath, query.Encode()), "format=sarif")).sarifResults() {
			var ids []string
			for _, result := range ofTool {
				ids = append(ids, result.object("properties").text("findingId"))
			}
			inOrder := slices.DeleteFunc(slices.Clone(want), func(id string) bool { return !slices.Contains(ids, id) })
			harness.Same(t, query.Encode()+": a run, compared with the list", inOrder, ids)
			results = append(results, ids...)
		}
		slices.Sort(results)
		slices.Sort(want)
		harness.Same(t, query.Encode()+": the log, compared with the list", want, results)
	}
}

func TestExport_SaysWhatWasDecidedAndNoCellIsAFormula(t *testing.T) {
	o := newOrganization(t)
	o.create(builder.Finding("f-1").In(o.namespace).Title(`=HYPERLINK("https://evil.example")`).Tool("gosec", v1alpha1.CategoryCode).
		Mutate(func(f *v1alpha1.Finding) {
			f.Spec.RuleID, f.Spec.Details.Location = "G304", &v1alpha1.FileLocation{FilePath: "api/a b.go", LineNumber: 7}
			f.Spec.Suppression = &v1alpha1.FindingSuppression{Kind: v1alpha1.SuppressionInSource, Justification: "generated"}
		}).Build())
	o.settled(1)
	o.patch("/v2/findings/f-1", `{"user_status":"muted","reason":"false-positive","comments":"@all: seen"}`).wants(200, "a decision")
	by := o.get("/v2/findings/f-1").object().text("decided_by")
	csvs := o.get(exportPath)
	row := csvs.csvRows()[0]
	for column, want := range map[string]string{
		"title": `'=HYPERLINK("https://evil.example")`, "comments": "'@all: seen", "user_status": "muted", "status": "open_muted", "reason": "false-positive",
		"decided_by": by, "file": "api/a b.go", "line": "7", "tool": "gosec", "rule": "G304",
	} {
		harness.Same(t, column, want, row[column])
	}
	harness.Same(t, "content-disposition", "attachment; filename=findings.csv", csvs.Header.Get("Content-Disposition"))
	result := o.get(exportPath + "?format=sarif").sarifResults()["gosec"][0]
	want := []any{
		map[string]any{"kind": "inSource", "status": "accepted", "justification": "generated"},
		map[string]any{"kind": "external", "status": "accepted", "justification": "false-positive: @all: seen (" + by + ")"},
	}
	harness.Same(t, "the suppressions", want, result.list("suppressions"))
	place := map[string]any{"physicalLocation": map[string]any{"artifactLocation": map[string]any{"uri": "api/a%20b.go"}, "region": map[string]any{"startLine": 7.}}}
	harness.Same(t, "the place", []any{place}, result.list("locations"))
}

func TestExport_IsOfItsMediaTypeAndCompressedIfAccepted(t *testing.T) {
	o := sampleOrganization(t)
	for query, want := range map[string]string{"": "text/csv; charset=utf-8; header=present", "format=sarif": openapi.SARIFMediaType} {
		plain := o.get(with(exportPath, query), apiclient.Header("Accept-Encoding", "identity"))
		if got := plain.Header.Get("Content-Type"); got != want || plain.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: got %s, %s", query, got, plain.Header.Get("Content-Encoding"))
		}
		folded := o.get(with(exportPath, query))
		if !folded.Uncompressed || !bytes.Equal(folded.Body, plain.Body) {
			t.Errorf("%s: compressed (%t) it is another", query, folded.Uncompressed)
		}
	}
}

func TestExport_ATypoIsRefused(t *testing.T) {
	c := anyKey(t)
	for query, name := range map[string]string{
		"severty=high": "severty", "format=xlsx": "format", "cursor=x": "cursor", "size=1": "size", "sort=title": "sort", "created_since=now": "created_since",
		"text=+": "text", "updated_since=0001-01-01T00:00:00Z": "updated_since",
	} {
		c.get(with(exportPath, query)).wants(400, query).wantsDetail(name)
	}
}
