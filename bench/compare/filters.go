package main

import (
	"context"
	"fmt"
	"time"

	"github.com/appsec-dev/findings-operator/bench/internal/bench"
	"github.com/appsec-dev/findings-operator/bench/internal/dataset"
	"github.com/appsec-dev/findings-operator/bench/internal/measure"
	"github.com/appsec-dev/findings-operator/bench/internal/report"
)

const (
	reviewsPage = "/v1/reviews?size=100"
	// unfiltered names a list without a filter.
	unfiltered = "no filter"
	// maxSlower bounds the time of an answer with a filter, as a multiple of the time without one.
	maxSlower = 5
)

// filters compares each filter of a list with the same list without a filter: finding few rows
// among many must not cost more than showing them.
func filters(ctx context.Context, b *bench.Bench) (*report.Section, error) {
	section := &report.Section{Title: "Filters", Text: filtersText}
	f, err := b.Fixture(ctx, b.Largest())
	if err != nil {
		return nil, err
	}
	for _, list := range []struct {
		name, path string
		filters    []filter
	}{
		{thousands(b.Reviews) + " reviews", reviewsPage, reviewFilters(f)},
		{thousands(b.Largest()) + " findings", findingsPage, findingFilters(f)},
	} {
		var sides []measure.Side
		for _, filter := range list.filters {
			path := list.path
			if filter.query != "" {
				path += "&" + filter.query
			}
			if _, err := f.Get(ctx, path); err != nil {
				return nil, err
			}
			sides = append(sides, b.Side(f.FacadeTarget(filter.name, path), f.Facade.PID()))
		}
		b.Say("filters: %s, %d filters", list.name, len(sides)-1)
		results, err := b.Compare(ctx, sides...)
		if err != nil {
			return nil, err
		}
		for _, filter := range list.filters[1:] {
			section.Rows = append(section.Rows, slower(results, list.name+", time by "+filter.name+" over that without",
				maxSlower, filter.name, unfiltered))
		}
		section.Tables = append(section.Tables, sideTable(list.name+", a page of 100:", sides, results))
	}
	return section, nil
}

const filtersText = "The first page of each list through the REST API with each of its filters, compared with the same list without a filter. " +
	"Where few rows match or none, the answer is small and the time is that of the search."

// filter is a filter of a list, as its query.
type filter struct{ name, query string }

// reviewFilters returns no filter, each filter, and some combinations, including filters that few
// reviews match.
func reviewFilters(f *bench.Fixture) []filter {
	newest := f.Data.Reviews[0].Status.UpdatedAt.Time
	for _, review := range f.Data.Reviews {
		if review.Status.UpdatedAt.After(newest) {
			newest = review.Status.UpdatedAt.Time
		}
	}
	at := func(back time.Duration) string { return newest.Add(-back).UTC().Format(time.RFC3339) }
	few := fmt.Sprintf(" (1 in %d matches)", dataset.FewEvery)
	return []filter{
		{name: unfiltered},
		{"status=open", "status=open"},
		{"status=closed", "status=closed"},
		{"status=merged", "status=merged"},
		{"custom=open_with_issues", "custom=open_with_issues"},
		{"custom=merged_with_issues" + few, "custom=merged_with_issues"},
		{"custom=not_reviewed", "custom=not_reviewed"},
		{"custom=reviewed", "custom=reviewed"},
		{"start_time, an hour ago", "start_time=" + at(time.Hour)},
		{"end_time, half way", "end_time=" + at(dataset.Span/2)},
		{"start_time and end_time, an hour half way",
			"start_time=" + at(dataset.Span/2) + "&end_time=" + at(dataset.Span/2-time.Hour)},
		{"status=closed and start_time, a day ago", "status=closed&start_time=" + at(24*time.Hour)},
		{"custom=merged_with_issues and end_time, half way", "custom=merged_with_issues&end_time=" + at(dataset.Span/2)},
		{"status=closed and custom=open_with_issues (none matches)", "status=closed&custom=open_with_issues"},
	}
}

func findingFilters(f *bench.Fixture) []filter {
	project := f.Data.Projects[len(f.Data.Projects)/2]
	repository := string(project.Spec.RepositoryRef.Name)
	few := fmt.Sprintf(" (1 in %d matches)", dataset.RareEvery)
	return []filter{
		{name: unfiltered},
		{"status=closed", "status=closed"},
		{"user_status=active", "user_status=active"},
		{"severity=low", "severity=low"},
		{"class=CWE-89", "class=CWE-89"},
		{"a rare class" + few, "class=" + dataset.Rare},
		{"repo_id", "repo_id=" + repository},
		{"project_id", "project_id=" + project.Name},
		{"a rare class in a repository", "class=" + dataset.Rare + "&repo_id=" + repository},
		{"severity, status and user_status", "severity=high&status=closed&user_status=active"},
		{"a class that nothing has (none matches)", "class=CWE-0"},
		{"a rare class and severity=high (none matches)", "class=" + dataset.Rare + "&severity=high"},
	}
}
