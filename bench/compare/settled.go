package main

import (
	"context"
	"fmt"

	"github.com/appsec-dev/findings-operator/bench/internal/bench"
	"github.com/appsec-dev/findings-operator/bench/internal/report"
)

// settled starts the controllers over the loaded data and counts their writes. If they write
// anything, the data differs from what controllers leave, and no measurement with it is valid.
func settled(ctx context.Context, b *bench.Bench) (*report.Section, error) {
	section := &report.Section{Title: "What was loaded",
		Text: "Findings and reviews are written straight to etcd, with the status that the controllers give them. " +
			"The controllers are started once on each size: if they write nothing, the data is as they would leave it."}
	table := report.Table{Columns: []string{"Findings", "stored bytes per finding", "objects", "stored MB", "loaded in",
		"controllers ready after", "all reconciled after"}}
	for _, size := range b.Sizes {
		f, err := b.Fixture(ctx, size)
		if err != nil {
			return nil, err
		}
		s, err := settle(ctx, f)
		if err != nil {
			return nil, err
		}
		section.Rows = append(section.Rows, report.AtMost(fmt.Sprintf("objects written by the controllers over %d findings",
			size), 0, float64(s.written), "%.0f"))
		table.Rows = append(table.Rows, []string{
			fmt.Sprint(size), fmt.Sprint(f.Loaded.FindingBytes / int64(size)), fmt.Sprint(f.Loaded.Objects),
			fmt.Sprint(f.Loaded.Bytes >> 20), seconds(f.LoadTook), seconds(s.ready), seconds(s.looked),
		})
	}
	section.Tables = append(section.Tables, table)
	return section, nil
}

// kinds are the resources whose objects are loaded.
var kinds = []string{"findings", "repositories", "projects", "reviews", "reviewissues"}
