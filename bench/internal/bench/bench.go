// Package bench provides the parts of measurements: control planes loaded with findings, rivals, a
// client, and rounds that compare sides. See bench/compare for the measurements.
package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/appsec-dev/findings-operator/bench/internal/dataset"
	"github.com/appsec-dev/findings-operator/bench/internal/load"
	"github.com/appsec-dev/findings-operator/bench/internal/measure"
	"github.com/appsec-dev/findings-operator/bench/internal/plane"
	"github.com/appsec-dev/findings-operator/bench/internal/report"
	"github.com/appsec-dev/findings-operator/bench/internal/rivals"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Measurement is one of the measurements of a run.
type Measurement struct {
	// Name is the name for --only and of the section.
	Name string
	// About describes in one line what is measured.
	About string
	// Run measures. It must end everything that it starts, except for what it gets from the bench.
	Run func(context.Context, *Bench) (*report.Section, error)
}

// Options configures a run.
type Options struct {
	// Sizes are numbers of findings, in ascending order; Reviews is a number of reviews.
	Sizes   []int
	Reviews int
	// Plan is the plan for comparisons in rounds; Connections is the number of connections of each
	// side.
	Plan        measure.Plan
	Connections int
	// Binary is the path of the operator; empty builds it from the working tree.
	Binary string
	// Against is the commit to build and compare with.
	Against string
	// Profiles is the folder for profiles of kube-apiserver; if empty, no profiles are taken.
	Profiles string
	// Results and ResultsAgain are the numbers of results in the uploaded files: Results in the file that is
	// compared with the plugin's import, ResultsAgain in the file that is uploaded twice.
	Results, ResultsAgain int
	// Triaged is the number of findings that a policy decides about.
	Triaged int
	// Imported is the number of findings of the imports during which a person decides.
	Imported int
	// Short makes the run a check, within seconds, that everything works.
	Short bool
	// Self starts this program again with other arguments: see the commands below.
	Self func(ctx context.Context, arguments ...string) *exec.Cmd
	// Say reports the progress of the run.
	Say func(format string, arguments ...any)
}

// The arguments of Options.Self, with the function that the program must call for each.
const (
	// ClientCommand: load.Serve.
	ClientCommand = "load"
	// CeilingCommand: rivals.Serve of rivals.Ceiling.
	CeilingCommand = "serve-ceiling"
	// PostgresCommand, before the database's DSN and the organization's name: rivals.Serve of
	// postgres.Handler.
	PostgresCommand = "serve-postgres"
)

// Bench is one run. Everything that it starts lives until Close.
type Bench struct {
	Options
	// Client sends requests from a separate process.
	Client *load.Client
	// Ceiling is the handler that writes from memory, in a separate process.
	Ceiling *rivals.Child

	folder   string
	fixtures map[int]*Fixture
	made     int
	// measurement is the name of the current measurement.
	measurement atomic.Value
}

// New builds the operator and starts the processes that all measurements need.
func New(ctx context.Context, options Options) (*Bench, error) {
	slices.Sort(options.Sizes)
	b := &Bench{Options: options, fixtures: map[int]*Fixture{}}
	b.measurement.Store("")
	if err := b.start(ctx); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *Bench) start(ctx context.Context) error {
	var err error
	if b.folder, err = os.MkdirTemp("", "findings-bench-"); err != nil {
		return err
	}
	if b.Binary == "" {
		b.Say("building the operator")
		programs, err := harness.Build(ctx)
		if err != nil {
			return err
		}
		b.Binary = filepath.Join(programs, "findings-operator")
	}
	if b.Client, err = load.Start(b.Self(ctx, ClientCommand)); err != nil {
		return err
	}
	b.Ceiling, err = rivals.Start(b.Self(ctx, CeilingCommand))
	return err
}

// Measure runs one measurement.
func (b *Bench) Measure(ctx context.Context, m Measurement) (*report.Section, error) {
	b.Say("%s: %s", m.Name, m.About)
	b.measurement.Store(m.Name)
	section, err := m.Run(ctx, b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	section.Name = m.Name
	return section, nil
}

// Smallest returns the smallest of the sizes.
func (b *Bench) Smallest() int { return b.Sizes[0] }

// Largest returns the largest of the sizes.
func (b *Bench) Largest() int { return b.Sizes[len(b.Sizes)-1] }

// Fixture returns a control plane with that many findings and the REST API, but without running
// controllers. It is shared: a measurement that changes it must restore it.
func (b *Bench) Fixture(ctx context.Context, findings int) (*Fixture, error) {
	if f := b.fixtures[findings]; f != nil {
		return f, nil
	}
	f, err := b.OwnFixture(ctx, dataset.Options{Findings: findings, Reviews: b.Reviews})
	if err != nil {
		return nil, err
	}
	b.fixtures[findings] = f
	return f, nil
}

// OwnFixture is Fixture for one measurement alone, which closes it. Namespace and Now of the options need not be set.
func (b *Bench) OwnFixture(ctx context.Context, options dataset.Options) (*Fixture, error) {
	b.made++
	folder := filepath.Join(b.folder, fmt.Sprintf("plane-%d", b.made))
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	began := time.Now()
	p, err := plane.Start(harness.Root(), folder, b.Binary)
	if err != nil {
		return nil, err
	}
	f := &Fixture{Plane: p, Size: options.Findings}
	if err := f.fill(ctx, options); err != nil {
		return nil, errors.Join(fmt.Errorf("a control plane with %d findings: %w", f.Size, err), f.Close())
	}
	if f.endProfiles, err = b.Profiled(ctx, f.Config, f.Size); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	b.Say("a control plane with %d findings of %d bytes and %d reviews is up after %s; they were loaded in %s, and the REST API was ready in %s",
		f.Size, f.Loaded.FindingBytes/int64(max(1, f.Size)), options.Reviews,
		seconds(time.Since(began)), seconds(f.LoadTook), seconds(f.Facade.Readied))
	return f, nil
}

func seconds(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }

// Folder returns a folder for a measurement's files; it is removed when the run ends.
func (b *Bench) Folder() string { return b.folder }

// Side returns a side that sends requests to a target over the client's connections. The processor
// time of the given processes is counted.
func (b *Bench) Side(target load.Target, pids ...int) measure.Side {
	return measure.Side{Name: target.Name, PIDs: pids,
		Run: func(_ context.Context, duration time.Duration) (measure.Sample, error) {
			return b.Client.Run(load.Job{Target: target, Connections: b.Connections, For: duration})
		}}
}

// CeilingSide returns a side that answers with the content from memory. The side's name must be
// unique.
func (b *Bench) CeilingSide(ctx context.Context, name string, content []byte) (measure.Side, error) {
	b.made++
	page := fmt.Sprintf("page-%d", b.made)
	if err := b.Ceiling.Put(ctx, page, content); err != nil {
		return measure.Side{}, err
	}
	target := load.Target{Name: name, Address: b.Ceiling.Address, Requests: [][]byte{load.Get(b.Ceiling.Address,
		"/"+page)}}
	return b.Side(target, b.Ceiling.PID()), nil
}

// Close ends everything and removes all files.
func (b *Bench) Close() error {
	var errs []error
	for _, f := range b.fixtures {
		errs = append(errs, f.Close())
	}
	if b.Client != nil {
		errs = append(errs, b.Client.Close())
	}
	if b.Ceiling != nil {
		errs = append(errs, b.Ceiling.Close())
	}
	if b.folder != "" {
		errs = append(errs, os.RemoveAll(b.folder))
	}
	return errors.Join(errs...)
}
