package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/appsec-dev/findings-operator/bench/internal/bench"
	"github.com/appsec-dev/findings-operator/bench/internal/held"
	"github.com/appsec-dev/findings-operator/bench/internal/load"
	"github.com/appsec-dev/findings-operator/bench/internal/measure"
	"github.com/appsec-dev/findings-operator/bench/internal/report"
	"github.com/appsec-dev/findings-operator/test/harness"
)

const (
	// heldCommand is the command that this program starts itself with to hold what the REST API
	// holds: held.Serve.
	heldCommand = "hold"
	// maxStarts bounds the run time: each start reads everything again.
	maxStarts = 3
	// collections is the number of garbage collections to wait for, collectedTimeout the time limit, and
	// loadTurn how long requests are sent at a time to cause them.
	collections      = 2
	collectedTimeout = 30 * time.Second
	loadTurn         = 500 * time.Millisecond

	bareListSide = "bare list by client-go"
	cacheSide    = "controller-runtime's cache"
)

// starting compares how long the REST API takes to become ready, and how much memory it then holds.
func starting(ctx context.Context, b *bench.Bench) (*report.Section, error) {
	f, err := b.Fixture(ctx, b.Largest())
	if err != nil {
		return nil, err
	}
	b.Say("start: %d findings", f.Size)
	starts, err := startRounds(ctx, b, f)
	if err != nil {
		return nil, err
	}
	most, err := memoryOf(ctx, b, f)
	if err != nil {
		return nil, err
	}
	ready := ratioRow(report.AtMost, fmt.Sprintf("%s findings, time until ready over that of a bare list", thousands(f.Size)), 1.5,
		starts.Ratio(bareListSide, facadeSide)) // of rates, so it is the inverse of the ratio of times
	section := &report.Section{Title: "Start and memory", Text: startText, Rows: []report.Row{ready}}
	table := report.Table{
		Columns: []string{"", "ready after", "heap in use, MB", "resident, MB", "bytes per finding"},
	}
	least, of := memories{}, most.findings
	if b.Smallest() != b.Largest() {
		if f, err = b.Fixture(ctx, b.Smallest()); err != nil {
			return nil, err
		}
		if least, err = memoryOf(ctx, b, f); err != nil {
			return nil, err
		}
		of -= least.findings
	}
	section.Rows = append(section.Rows, report.AtMost("heap in use for a finding over that of the cache (1.0 aimed at)",
		1.5,
		(most.facade.heap-least.facade.heap)/(most.cache.heap-least.cache.heap), "%.2f").InSummary())
	for _, row := range []struct {
		side        string
		most, least memory
	}{{facadeSide, most.facade, least.facade}, {cacheSide, most.cache, least.cache}} {
		table.Rows = append(table.Rows, []string{
			row.side, seconds(took(starts, row.side)), megabytes(row.most.heap), megabytes(row.most.resident),
			fmt.Sprintf("%.0f", (row.most.heap-row.least.heap)/float64(of)),
		})
	}
	table.Rows = append(table.Rows, []string{bareListSide, seconds(took(starts, bareListSide)), "", "", ""})
	section.Tables = []report.Table{table}
	return section, nil
}

const startText = "The REST API's process is started; it is ready when `/readyz` reports that all kinds are read, joined and rendered. " +
	"The bare list is a process that lists the same kinds with client-go at default settings, concurrently, each in one response from kube-apiserver's cache, and decodes them into their types. " +
	"Memory is compared with a process in which controller-runtime's cache, at default settings, holds the same kinds. " +
	"The heap in use is what remains after a garbage collection; for the REST API it is half of the size at which the next collection is due, from its own metric. " +
	"The bytes per finding are the difference between the largest and the smallest number of findings, if there are two sizes: both have the same reviews."

// took returns the median duration of a side.
func took(results measure.Results, side string) time.Duration {
	return time.Duration(results.Median(side, func(s measure.Sample) float64 { return float64(s.Elapsed) }))
}

// startRounds measures the REST API's start and its rivals in turn. The REST API runs afterwards.
func startRounds(ctx context.Context, b *bench.Bench, f *bench.Fixture) (measure.Results, error) {
	results := measure.Results{}
	rounds := min(b.Plan.Rounds, maxStarts)
	if b.Short {
		rounds = 1
	}
	for range rounds {
		if err := f.StopFacade(); err != nil {
			return nil, err
		}
		for _, rival := range []struct {
			side string
			way  held.Way
		}{{bareListSide, held.List}, {cacheSide, held.Cache}} {
			if err := b.Calm(ctx); err != nil {
				return nil, err
			}
			child, err := startHeld(ctx, b, f, rival.way)
			if err != nil {
				return nil, err
			}
			results[rival.side] = append(results[rival.side], measure.Sample{Operations: 1, Elapsed: child.Took})
			if err := child.Close(); err != nil {
				return nil, err
			}
		}
		if err := b.Calm(ctx); err != nil {
			return nil, err
		}
		if err := f.StartFacade(ctx); err != nil {
			return nil, err
		}
		results[facadeSide] = append(results[facadeSide], measure.Sample{Operations: 1, Elapsed: f.Facade.Readied})
	}
	return results, nil
}

// startHeld has a process read what the REST API reads.
func startHeld(ctx context.Context, b *bench.Bench, f *bench.Fixture, way held.Way) (*held.Child, error) {
	config, err := f.Environment.Facade(ctx)
	if err != nil {
		return nil, err
	}
	return held.Start(b.Self(ctx, heldCommand),
		held.Job{Way: way, Host: config.Host, CA: config.CAData, Token: config.BearerToken})
}

// memory holds sizes in bytes.
type memory struct{ heap, resident float64 }

type memories struct {
	facade, cache memory
	findings      int
}

// memoryOf measures what the REST API and its rival hold of the fixture.
func memoryOf(ctx context.Context, b *bench.Bench, f *bench.Fixture) (memories, error) {
	facade, err := facadeMemory(ctx, b, f)
	if err != nil {
		return memories{}, err
	}
	child, err := startHeld(ctx, b, f, held.Cache)
	if err != nil {
		return memories{}, err
	}
	resident, err := measure.MemoryOf(child.PID())
	cache := memory{heap: float64(child.Heap), resident: float64(resident.Resident)}
	return memories{facade: facade, cache: cache, findings: f.Size}, errors.Join(err, child.Close())
}

// facadeMemory sends requests until the garbage of the start has been collected, and returns the
// remaining memory.
func facadeMemory(ctx context.Context, b *bench.Bench, f *bench.Fixture) (memory, error) {
	first, next, err := collected(ctx, f)
	if err != nil {
		return memory{}, err
	}
	now := first
	for began := time.Now(); now < first+collections; {
		if time.Since(began) > collectedTimeout {
			b.Say("start: the REST API collected no garbage in %s; what its start left counts too", collectedTimeout)
			break
		}
		target := f.FacadeTarget("garbage", "/v1/findings?size=100&status=open")
		if _, err := b.Client.Run(load.Job{Target: target, Connections: b.Connections, For: loadTurn}); err != nil {
			return memory{}, err
		}
		if now, next, err = collected(ctx, f); err != nil {
			return memory{}, err
		}
	}
	resident, err := measure.MemoryOf(f.Facade.PID())
	return memory{heap: next / 2, resident: float64(resident.Resident)}, err
}

// collected returns how often the REST API has collected garbage, and the heap size in bytes at which it does so next.
func collected(ctx context.Context, f *bench.Fixture) (times, next float64, err error) {
	metrics, err := f.Facade.Metrics(ctx)
	if err != nil {
		return 0, 0, err
	}
	times, errTimes := harness.Sum(metrics, "go_gc_duration_seconds_count", nil)
	next, errNext := harness.Sum(metrics, "go_memstats_next_gc_bytes", nil)
	return times, next, errors.Join(errTimes, errNext)
}
