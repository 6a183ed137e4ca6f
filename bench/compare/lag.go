package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/appsec-dev/findings-operator/bench/internal/bench"
	"github.com/appsec-dev/findings-operator/bench/internal/report"
	"github.com/appsec-dev/findings-operator/test/harness"
)

const (
	// lagWanted is the highest allowed 99th percentile of the lag.
	lagWanted = 100 * time.Millisecond
	// probes is the number of changes to wait for under each load, and probedFor the time limit for all of
	// them.
	probes    = 300
	probedFor = 30 * time.Second
	// probeEvery is the pause between two changes: the measurement itself must not be a load.
	probeEvery = 50 * time.Millisecond
	// probeTimeout is longer than any acceptable lag.
	probeTimeout = 30 * time.Second
	// probePause is the pause between two polls.
	probePause = time.Millisecond
	// triager is a service account that makes decisions as people do.
	triager     = "bench-triager"
	busyWriters = 8
	lagMetric   = "findings_read_model_catch_up_seconds"
)

// lagLoad is the write load while changes are awaited.
type lagLoad struct {
	name string
	// writers is the number of concurrent writers, and pause the pause of each between its writes.
	writers int
	pause   time.Duration
}

// Twenty decisions per second correspond to many people; a hundred to a bulk change; unlimited writes do
// not occur in production.
var lagLoads = []lagLoad{
	{name: "nothing else is written"},
	pacedLoad(20),
	pacedLoad(100),
	{name: fmt.Sprintf("%d writers without a pause", busyWriters), writers: busyWriters},
}

func pacedLoad(writes int) lagLoad {
	return lagLoad{
		name:    fmt.Sprintf("about %d writes a second", writes),
		writers: busyWriters, pause: busyWriters * time.Second / time.Duration(writes),
	}
}

// lag measures how far the REST API lags behind changes that are written directly to the API
// server.
func lag(ctx context.Context, b *bench.Bench, f *bench.Fixture) (*report.Section, error) {
	p, err := newProbing(ctx, f)
	if err != nil {
		return nil, err
	}
	defer p.watcher.stop()
	section := &report.Section{Title: "From a change to the REST API's answer", Text: lagText}
	table := report.Table{Title: fmt.Sprintf("%s findings, while", thousands(f.Size)),
		Columns: []string{"", "others' writes/s", "answer behind, p50", "p99", "most", "bare watch behind, p50", "p99",
			"read model behind, p50", "p99"}}
	for _, load := range lagLoads {
		b.Say("lag: %s", load.name)
		found, err := p.under(ctx, load, b.Short)
		if err != nil {
			return nil, err
		}
		if load.writers > 0 {
			row := report.AtMost(fmt.Sprintf("p99 in ms from a patch's answer to the REST API showing it, %s", load.name),
				float64(lagWanted.Milliseconds()), float64(found.answer.p99)/float64(time.Millisecond), "%.0f")
			row.Measured += fmt.Sprintf(" (of %d; a bare watch %.0f)", found.count,
				float64(found.watch.p99)/float64(time.Millisecond))
			section.Rows = append(section.Rows, row.InSummary())
		}
		table.Rows = append(table.Rows, []string{load.name, fmt.Sprintf("%.0f", found.writes),
			milliseconds(found.answer.p50), milliseconds(found.answer.p99), milliseconds(found.answer.most),
			milliseconds(found.watch.p50), milliseconds(found.watch.p99), found.model.at(0.5), found.model.at(0.99)})
	}
	section.Tables = []report.Table{table}
	return section, nil
}

const lagText = "A service account with the triager's role patches `spec.triage` with client-go, as `kubectl patch` does. Once the patch is answered, " +
	"`GET` of the finding is repeated until its answer shows the change. The time from the patch's answer to the end of that `GET` counts, so the minimum is the duration of one `GET`. A pause follows, then the next patch. " +
	"The controllers run, and write the status of each changed finding. " +
	"For comparison, the patching process also runs a bare client-go watch of the same findings that only decodes events: what kube-apiserver sends late reaches both late. " +
	"How far the read model is behind is its own metric `" + lagMetric +
	"`: the time from the first change received until readers see all received changes, as exact as the histogram's buckets."

// probing changes findings and waits until the REST API shows the change.
type probing struct {
	*bench.Fixture
	decider        *decider
	watcher        *bareWatch
	probed, others []string
	number         int
}

func newProbing(ctx context.Context, f *bench.Fixture) (*probing, error) {
	names, err := findingNames(f, decidedFindings)
	if err != nil {
		return nil, err
	}
	half := len(names) / 2
	p := &probing{Fixture: f, probed: names[:half], others: names[half:]}
	if p.decider, err = newTriager(ctx, f.Plane, f.Organization.Namespace, "kubectl-patch"); err != nil {
		return nil, err
	}
	p.watcher, err = watchBare(ctx, p.decider, asWritten, probeTimeout)
	return p, err
}

// lagFound holds the results under one load.
type lagFound struct {
	count int
	// answer is the lag of the REST API, and watch that of the bare watch.
	answer, watch quantiles
	// writes is the other writers' rate per second.
	writes float64
	model  histogram
}

func (p *probing) under(ctx context.Context, load lagLoad, short bool) (lagFound, error) {
	before, err := p.modelLag(ctx)
	if err != nil {
		return lagFound{}, err
	}
	began := time.Now()
	written, stop := p.writeOthers(ctx, load)
	taken, err := p.probe(ctx, short)
	rate := float64(written.Load()) / time.Since(began).Seconds()
	if err := errors.Join(err, stop()); err != nil {
		return lagFound{}, err
	}
	after, err := p.modelLag(ctx)
	if err != nil {
		return lagFound{}, err
	}
	return lagFound{count: len(taken.answers), answer: quantilesOf(taken.answers), watch: quantilesOf(taken.watches), writes: rate, model: after.less(before)}, nil
}

// writeOthers writes to other findings until stop is called.
func (p *probing) writeOthers(ctx context.Context, load lagLoad) (written *atomic.Int64, stop func() error) {
	written = &atomic.Int64{}
	writing, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	series := "others, " + load.name
	go func() {
		ended <- each(writing, load.writers, func(ctx context.Context, i int) error {
			for number := i; ctx.Err() == nil; number += load.writers {
				if err := p.decider.write(ctx, newDecision(p.others, series, number)); err != nil {
					return err
				}
				written.Add(1)
				harness.Pause(ctx, load.pause)
			}
			return nil
		})
	}()
	return written, func() error {
		stopped := writing.Err() == nil
		cancel()
		if err := <-ended; err != nil && !(stopped && errors.Is(err, context.Canceled)) {
			return err
		}
		return nil
	}
}

// lagTaken holds how long each change took to become visible.
type lagTaken struct{ answers, watches []time.Duration }

// probe changes one finding after the other, and returns how long each change took to become
// visible.
func (p *probing) probe(ctx context.Context, short bool) (lagTaken, error) {
	count := probes
	if short {
		count = probes / 10
	}
	var taken lagTaken
	for began := time.Now(); len(taken.answers) < count && time.Since(began) < probedFor; p.number++ {
		d := newDecision(p.probed, "probe", p.number)
		path := p.pathOf(p.number % len(p.probed))
		seen := p.watcher.expect(d)
		if err := p.decider.write(ctx, d); err != nil {
			return taken, err
		}
		after := time.Now()
		if err := awaitShown(ctx, p.Fixture, path, []byte(d.comments)); err != nil {
			return taken, err
		}
		taken.answers = append(taken.answers, time.Since(after))
		watched, err := seen(ctx)
		if err != nil {
			return taken, err
		}
		// The watch may receive the change before the patch is answered.
		taken.watches = append(taken.watches, max(0, watched.Sub(after)))
		if err := sleep(ctx, probeEvery); err != nil {
			return taken, err
		}
	}
	return taken, nil
}

// pathOf returns the path of the i-th probed finding, which is also the fixture's i-th.
func (p *probing) pathOf(i int) string {
	spec := &p.Data.Finding(i).Spec
	return fmt.Sprintf("/v2/repos/%s/projects/%s/findings/%s", spec.RepositoryRef.Name, spec.ProjectRef.Name, p.probed[i])
}

// awaitShown repeats a GET of the path until its answer contains the text.
func awaitShown(ctx context.Context, f *bench.Fixture, path string, shown []byte) error {
	err := wait.PollUntilContextTimeout(ctx, probePause, probeTimeout, true, func(ctx context.Context) (bool, error) {
		content, err := f.Get(ctx, path)
		return bytes.Contains(content, shown), err
	})
	if err != nil {
		return fmt.Errorf("%s does not show the change: %w", path, err)
	}
	return nil
}

func (p *probing) modelLag(ctx context.Context) (histogram, error) {
	metrics, err := p.Facade.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	samples, err := harness.Samples(metrics, lagMetric+"_bucket")
	if err != nil {
		return nil, err
	}
	out := make(histogram, len(samples))
	for i, sample := range samples {
		if out[i].bound, err = strconv.ParseFloat(sample.Labels["le"], 64); err != nil {
			return nil, err
		}
		out[i].count = sample.Value
	}
	return out, nil
}
