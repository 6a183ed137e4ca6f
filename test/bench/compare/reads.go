package main

import (
	"context"

	"github.com/appsec-dev/findings-operator/test/bench/internal/bench"
	"github.com/appsec-dev/findings-operator/test/bench/internal/report"
)

func reads(ctx context.Context, b *bench.Bench) (*report.Section, error) {
	return &report.Section{Title: "Pages of findings"}, nil
}
