package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/bench/internal/bench"
	"github.com/appsec-dev/findings-operator/bench/internal/dataset"
	"github.com/appsec-dev/findings-operator/bench/internal/measure"
	"github.com/appsec-dev/findings-operator/bench/internal/report"
)

const (
	// capacityReads is how often each request is sent, and capacityDecisions how long decisions are made.
	capacityReads     = 200
	capacityDecisions = 5 * time.Second
	capacityWriters   = 8
)

const capacityText = "Each size is loaded into a control plane of its own, which is closed before the next. etcd and kube-apiserver are killed and " +
	"started again, then the REST API, then the controllers, which reconcile everything. With all of them running, one client reads, " +
	"%d clients decide through the REST API, and the importer imports a file of new results. Reads are `GET /v1/findings?size=100`, its " +
	"middle and last page, a filter, and the counts of the console's facets. Memory is the most that a process took after the restart. " +
	"Settings of Go's garbage collector, for all processes: %s."

// capacity measures what one control plane of each size does: restarted, read, decided and imported into.
func capacity(ctx context.Context, b *bench.Bench) (*report.Section, error) {
	table := report.Table{Columns: []string{"One control plane"}}
	for _, size := range b.Sizes {
		b.Say("capacity: %d findings", size)
		figures, err := capacityOf(ctx, b, size)
		if err != nil {
			return nil, fmt.Errorf("%d findings: %w", size, err)
		}
		table.Columns = append(table.Columns, thousands(size)+" findings")
		for i, f := range figures {
			if i == len(table.Rows) {
				table.Rows = append(table.Rows, []string{f.name})
			}
			table.Rows[i] = append(table.Rows[i], f.value)
		}
	}
	return &report.Section{
		Title: "What one control plane holds", Tables: []report.Table{table},
		Text: fmt.Sprintf(capacityText, capacityWriters, collectorSettings(os.LookupEnv)),
	}, nil
}

// collectorSettings names the settings that this process, and with it all others, was started with.
func collectorSettings(lookup func(string) (string, bool)) string {
	var set []string
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		if value, ok := lookup(name); ok {
			set = append(set, "`"+name+"="+value+"`")
		}
	}
	if len(set) == 0 {
		return "Go's defaults"
	}
	return strings.Join(set, " and ")
}

// capacityFigure is a row of the table.
type capacityFigure struct{ name, value string }

func capacityOf(ctx context.Context, b *bench.Bench, size int) (figures []capacityFigure, err error) {
	f, err := b.OwnFixture(ctx, dataset.Options{Findings: size, Reviews: b.Reviews})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	figures = append(figures,
		capacityFigure{"stored", megabytes(float64(f.Loaded.Bytes)) + " MB"},
		capacityFigure{"loaded straight into etcd", seconds(f.LoadTook)})
	for _, step := range []func(context.Context, *bench.Bench, *bench.Fixture) ([]capacityFigure, error){
		restartAll, readAll, decideSome, importSome, memoryOfAll,
	} {
		more, err := step(ctx, b, f)
		if err != nil {
			return nil, err
		}
		figures = append(figures, more...)
	}
	return figures, nil
}

// restartAll kills the control plane, and starts everything one after the other.
func restartAll(ctx context.Context, _ *bench.Bench, f *bench.Fixture) ([]capacityFigure, error) {
	if err := f.StopFacade(); err != nil {
		return nil, err
	}
	began := time.Now()
	if err := errors.Join(f.ControlPlane.Etcd.Restart(), f.ControlPlane.APIServer.Restart()); err != nil {
		return nil, err
	}
	if err := f.ControlPlane.AwaitReady(ctx); err != nil {
		return nil, err
	}
	answers := time.Since(began)
	if err := f.StartFacade(ctx); err != nil {
		return nil, err
	}
	began = time.Now()
	if err := f.StartController(ctx); err != nil {
		return nil, err
	}
	if err := waitIdle(ctx, f); err != nil {
		return nil, err
	}
	return []capacityFigure{
		{"restart: etcd and kube-apiserver are ready after", seconds(answers)},
		{"then the REST API after", seconds(f.Facade.Readied)},
		{"then the controllers have reconciled all after", seconds(time.Since(began))},
	}, nil
}

// readAll reads pages, a filtered page and counts with one client.
func readAll(ctx context.Context, _ *bench.Bench, f *bench.Fixture) ([]capacityFigure, error) {
	pages, err := f.Walk(ctx, findingsPage, nil)
	if err != nil {
		return nil, err
	}
	var figures []capacityFigure
	for _, read := range []struct{ name, path string }{
		{firstPage, pages[0]}, {middlePage, pages[len(pages)/2]}, {lastPage, pages[len(pages)-1]},
		{"filter `severity=high`, `status=open`", "/v2/findings?size=100&severity=high&status=open"},
		{"counts by all fields", "/v2/finding-counts"},
	} {
		sample, err := callAll(ctx, 1, capacityReads, func(ctx context.Context, _ int) error {
			_, err := f.Get(ctx, read.path)
			return err
		})
		if err != nil {
			return nil, err
		}
		figures = append(figures, capacityFigure{read.name + ", p50 / p99", p50AndP99(sample)})
	}
	return figures, nil
}

func p50AndP99(s measure.Sample) string { return milliseconds(s.P50) + " / " + milliseconds(s.P99) }

// decideSome makes decisions through the REST API, which the controllers record.
func decideSome(ctx context.Context, b *bench.Bench, f *bench.Fixture) ([]capacityFigure, error) {
	w, err := newWriting(ctx, b, f)
	if err != nil {
		return nil, err
	}
	sample, err := w.facade(capacityWriters).Run(ctx, capacityDecisions)
	if err != nil {
		return nil, err
	}
	if err := waitIdle(ctx, f); err != nil {
		return nil, err
	}
	return []capacityFigure{
		{"decisions, p50 / p99", p50AndP99(sample)},
		{"decisions a second", fmt.Sprintf("%.0f", sample.Rate())},
	}, nil
}

// importSome imports new results while the controllers work, and waits for the last state.
func importSome(ctx context.Context, b *bench.Bench, f *bench.Fixture) ([]capacityFigure, error) {
	im, err := newLearnedImports(ctx, b, f)
	if err != nil {
		return nil, err
	}
	tool, began := im.newTool(), time.Now()
	count, err := im.importFile(ctx, tool)
	if err != nil {
		return nil, err
	}
	imported := time.Since(began)
	if err := eventually(ctx, settleInterval, caughtUp, func(ctx context.Context) error {
		return im.checkObserved(ctx, tool)
	}); err != nil {
		return nil, err
	}
	return []capacityFigure{
		{fmt.Sprintf("import of %s new results", thousands(count)), seconds(imported)},
		{"all states recorded after", seconds(time.Since(began))},
	}, nil
}

func memoryOfAll(_ context.Context, _ *bench.Bench, f *bench.Fixture) ([]capacityFigure, error) {
	memory, err := f.Memory()
	if err != nil {
		return nil, err
	}
	var figures []capacityFigure
	for i, process := range sizedProcesses {
		figures = append(figures, capacityFigure{
			"memory of " + sizedNames[i] + ", at most", megabytes(float64(memory[process].Peak)) + " MB",
		})
	}
	return figures, nil
}
