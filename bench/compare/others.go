package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/appsec-dev/findings-operator/bench/internal/bench"
	"github.com/appsec-dev/findings-operator/bench/internal/measure"
	"github.com/appsec-dev/findings-operator/bench/internal/report"
)

// others compares the other reads with the same rivals, at the largest size.
func others(ctx context.Context, b *bench.Bench) (*report.Section, error) {
	section := &report.Section{Title: "Reviews, repositories and single resources", Text: othersText}
	f, err := b.Fixture(ctx, b.Largest())
	if err != nil {
		return nil, err
	}
	pg, missing, err := startPostgres(ctx, b, f)
	if err != nil {
		return nil, err
	}
	chart := report.Chart{Title: "Reviews, repositories and single resources", Unit: "answers a second"}
	for _, q := range otherQuestions(f) {
		sides, err := sidesOf(ctx, b, f, pg, q)
		if err != nil {
			return nil, err
		}
		b.Say("others: %s", q.what)
		results, err := b.Compare(ctx, sides...)
		if err != nil {
			return nil, err
		}
		section.Rows = append(section.Rows, otherRows(q, results, missing)...)
		section.Tables = append(section.Tables, sideTable(q.what+":", sides, results))
		chart.Groups = append(chart.Groups, chartGroup(q.what, q.what, results))
	}
	section.Charts = []report.Chart{chart}
	return section, nil
}

const othersText = "As for pages of findings, with the same rivals. The API server lists by field selector where it can, and gets one object where the REST API does. " +
	"PostgreSQL counts what a filter matches with an index."

// otherQuestions returns pages of reviews and repositories, and one object of each kind that is
// read singly.
func otherQuestions(f *bench.Fixture) []question {
	finding, issue, project := f.Data.Finding(f.Size/2), f.Data.Issues[0], f.Data.Projects[0]
	repository := string(finding.Spec.RepositoryRef.Name)
	open := func(path string) string { return path + "&status=open" }
	few := func(path string) string { return path + "&custom=merged_with_issues" }
	limit, selected := "limit=100", url.Values{"limit": {"100"}, "fieldSelector": {"spec.prStatus=open"}}.Encode()
	return []question{
		{what: "/v1/reviews", facade: reviewsPage, postgres: reviewsPage, kube: "reviews", kubeQuery: limit},
		{what: "/v1/reviews?status=open", facade: open(reviewsPage), postgres: open(reviewsPage), kube: "reviews",
			kubeQuery: selected},
		{what: "/v1/reviews?custom=merged_with_issues", facade: few(reviewsPage), postgres: few(reviewsPage)},
		{what: "/v2/repos", facade: "/v2/repos", postgres: "/v2/repos", kube: "repositories", kubeQuery: limit},
		{
			what: "a finding", kube: "findings/" + finding.Name, postgres: "/v2/findings/" + finding.Name,
			facade: fmt.Sprintf("/v2/repos/%s/projects/%s/findings/%s", repository, finding.Spec.ProjectRef.Name, finding.Name),
		},
		{what: "an issue of a review", facade: "/v2/issues/" + issue.Name, postgres: "/v2/issues/" + issue.Name,
			kube: "reviewissues/" + issue.Name},
		{
			what: "a project", kube: "projects/" + project.Name, postgres: "/v2/projects/" + project.Name,
			facade: fmt.Sprintf("/v2/repos/%s/projects/%s", project.Spec.RepositoryRef.Name, project.Name),
		},
	}
}

// summarized are the questions whose figures represent the others in the summary.
var summarized = []string{"/v1/reviews", "a finding"}

// otherRows returns the figures. They have no targets, so they are only shown.
func otherRows(q question, results measure.Results, missing string) []report.Row {
	facade := sideName(facadeSide, q.what)
	show := func(other, against string) report.Row {
		rival := sideName(other, q.what)
		ratio := results.Ratio(facade, rival)
		return report.Row{
			Key:      slices.Contains(summarized, q.what),
			Measure:  q.what + ", against " + against,
			Measured: fmt.Sprintf("%.2f", ratio.Median) + spread(ratio, results.CPURatio(facade, rival), "%.2f"),
		}
	}
	rows := []report.Row{show(ceilingSide, "the ceiling")}
	if q.kube != "" {
		rows = append(rows, show(kubeSide, "kube-apiserver"))
	}
	if missing != "" {
		return append(rows, report.Missing(q.what+", against PostgreSQL", "", missing))
	}
	return append(rows, show(postgresSide, "PostgreSQL"))
}
