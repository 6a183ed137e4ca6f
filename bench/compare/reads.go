package main

import (
	"context"
	"fmt"
	"net/url"

	"github.com/appsec-dev/findings-operator/bench/internal/bench"
	"github.com/appsec-dev/findings-operator/bench/internal/measure"
	"github.com/appsec-dev/findings-operator/bench/internal/report"
)

const findingsPage = "/v1/findings?size=100"

// The pages that are read.
const (
	firstPage  = "first page"
	middlePage = "middle page"
	lastPage   = "last page"
)

// reads compares pages of findings at each size. The smallest fixture's first page takes part at
// every other size, to show the cost of the number of findings.
func reads(ctx context.Context, b *bench.Bench) (*report.Section, error) {
	section := &report.Section{Title: "Pages of findings", Text: readsText}
	chart := report.Chart{Title: "First page of 100 findings", Unit: "answers a second"}
	for _, size := range b.Sizes {
		f, err := b.Fixture(ctx, size)
		if err != nil {
			return nil, err
		}
		pg, missing, err := startPostgres(ctx, b, f)
		if err != nil {
			return nil, err
		}
		questions, err := findingPages(ctx, f, pg)
		if err != nil {
			return nil, err
		}
		var sides []measure.Side
		for _, q := range questions {
			more, err := sidesOf(ctx, b, f, pg, q)
			if err != nil {
				return nil, err
			}
			sides = append(sides, more...)
		}
		if size != b.Smallest() {
			least, err := b.Fixture(ctx, b.Smallest())
			if err != nil {
				return nil, err
			}
			sides = append(sides, b.Side(least.FacadeTarget(leastName(b), findingsPage), least.Facade.PID()))
		}
		b.Say("reads: %d findings, %d sides", size, len(sides))
		results, err := b.Compare(ctx, sides...)
		if err != nil {
			return nil, err
		}
		section.Rows = append(section.Rows, readRows(b, size, questions, results, missing)...)
		section.Tables = append(section.Tables, sideTable(fmt.Sprintf("%s findings:", thousands(size)), sides, results))
		chart.Groups = append(chart.Groups, chartGroup(fmt.Sprintf("%s findings", thousands(size)), firstPage, results))
	}
	section.Charts = []report.Chart{chart}
	return section, nil
}

const readsText = "`GET /v1/findings?size=100` with an API key whose rate limit is counted in memory, compared with three others. " +
	"The ceiling is a Gin handler that writes the same bytes from memory and does nothing else. " +
	"kube-apiserver answers `LIST ?limit=100` of the same resources from its watch cache, as JSON over TLS, to a service account. " +
	"PostgreSQL stands behind a Gin handler with pgx, prepared statements and a Unix socket: a keyset query on a matching index, 100 rendered items copied from the connection to the answer, " +
	"the total from a table of totals, everything in shared buffers, tables in index order, no key and no limit. Its items are checked to be the REST API's byte for byte. " +
	"One client in a process of its own asks them all; it reads headers and counts bodies. " +
	"`CPU` is the processor time of all server processes of a side per answer. The client's time is not in it, but the client competes for the same cores, which moves ratios of throughput closer to 1 than ratios of work."

func leastName(b *bench.Bench) string {
	return sideName(facadeSide, fmt.Sprintf("%s with %s findings", firstPage, thousands(b.Smallest())))
}

// findingPages returns the questions for the first, middle and last page. It walks through the
// lists to find these pages.
func findingPages(ctx context.Context, f *bench.Fixture, pg *bench.Postgres) ([]question, error) {
	facade, err := f.Walk(ctx, findingsPage, nil)
	if err != nil {
		return nil, err
	}
	kube, err := f.KubePages(ctx, 100)
	if err != nil {
		return nil, err
	}
	postgres := make([]string, len(facade))
	if pg != nil {
		if postgres, err = pg.Pages(ctx, findingsPage); err != nil {
			return nil, err
		}
	}
	if len(kube) != len(facade) || len(postgres) != len(facade) {
		return nil, fmt.Errorf("there are %d, %d and %d pages", len(facade), len(kube), len(postgres))
	}
	var out []question
	for _, page := range []struct {
		what string
		at   int
	}{{firstPage, 0}, {middlePage, len(facade) / 2}, {lastPage, len(facade) - 1}} {
		query := url.Values{"limit": {"100"}}
		if kube[page.at] != "" {
			query.Set("continue", kube[page.at])
		}
		out = append(out, question{what: page.what, facade: facade[page.at], postgres: postgres[page.at], kube: "findings",
			kubeQuery: query.Encode()})
	}
	return out, nil
}

// readRows returns the figures with targets. The targets apply to the largest size.
func readRows(b *bench.Bench, size int, questions []question, results measure.Results, missing string) []report.Row {
	if size != b.Largest() {
		return nil
	}
	at := thousands(size) + " findings"
	var rows []report.Row
	for _, q := range questions {
		what := at + ", " + q.what
		page := []report.Row{
			against(results, q, ceilingSide, 0.5, what+", against the ceiling (0.7 aimed at)", "%.2f"),
			against(results, q, kubeSide, 30, what+", against kube-apiserver's LIST", "%.0f"),
		}
		if name := what + ", against PostgreSQL"; missing != "" {
			page = append(page, report.Missing(name, "at least 3.0", missing))
		} else {
			page = append(page, against(results, q, postgresSide, 3, name, "%.1f"))
		}
		for _, row := range page {
			row.Key = q.what == firstPage
			rows = append(rows, row)
		}
	}
	rows = append(rows, slower(results, at+", time of the last page over the first's", 1.2,
		sideName(facadeSide, lastPage), sideName(facadeSide, firstPage)))
	if size != b.Smallest() {
		rows = append(rows, slower(results, fmt.Sprintf("first page, time with %s over that with %s", at,
			thousands(b.Smallest())), 1.2,
			sideName(facadeSide, firstPage), leastName(b)))
	}
	return rows
}
