// Package bench is what measurements are made with: control planes with findings in them, rivals,
// a client, and rounds in which sides are compared. See bench/compare for the measurements.
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

	"github.com/appsec-dev/findings-operator/bench/internal/load"
	"github.com/appsec-dev/findings-operator/bench/internal/measure"
	"github.com/appsec-dev/findings-operator/bench/internal/report"
	"github.com/appsec-dev/findings-operator/bench/internal/rivals"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Measurement is one of those that a run goes through.
type Measurement struct {
	// Name for --only; the section's name too.
	Name string
	// About says in a line what is measured.
	About string
	// Run measures. What it starts it ends, but for what it gets from the bench.
	Run func(context.Context, *Bench) (*report.Section, error)
}

// Options of a run.
type Options struct {
	// Sizes are numbers of findings, in ascending order, and Reviews a number of reviews.
	Sizes   []int
	Reviews int
	// Plan of what is compared in rounds, and Connections of each side.
	Plan        measure.Plan
	Connections int
	// Binary is the operator's; empty: it is built as it is in the working tree.
	Binary string
	// Against is the commit that a build is made of to compare with.
	Against string
	// Profiles is the folder that profiles of kube-apiserver are saved in; empty: none are taken.
	Profiles string
	// Results and ResultsAgain are how many the files of uploads have: the one that is compared with the plugin's
	// import, and the one that is uploaded twice.
	Results, ResultsAgain int
	// Triaged is how many findings a policy decides about.
	Triaged int
	// Short says that a run is to show in seconds that everything works.
	Short bool
	// Self starts this program anew with other arguments: see Children.
	Self func(ctx context.Context, arguments ...string) *exec.Cmd
	// Say tells how far the run is.
	Say func(format string, arguments ...any)
}

// The arguments of Options.Self, and what the program must do for each.
const (
	// ClientCommand: load.Serve.
	ClientCommand = "load"
	// CeilingCommand: rivals.Serve of rivals.Ceiling.
	CeilingCommand = "serve-ceiling"
	// PostgresCommand, before the database's DSN and the organization's name: rivals.Serve of
	// postgres.Handler.
	PostgresCommand = "serve-postgres"
)

// Bench is one run. What it starts lives until Close.
type Bench struct {
	Options
	// Client sends requests, in a process of its own.
	Client *load.Client
	// Ceiling is the handler that writes from memory, in a process of its own.
	Ceiling *rivals.Child

	folder   string
	fixtures map[fixtureKind]*Fixture
	made     int
	// measurement is the name of the one under way.
	measurement atomic.Value
}

// New builds the operator and starts what all measurements need.
func New(ctx context.Context, options Options) (*Bench, error) {
	slices.Sort(options.Sizes)
	b := &Bench{Options: options, fixtures: map[fixtureKind]*Fixture{}}
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

// Measure makes one measurement.
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

// Smallest and Largest of the sizes.
func (b *Bench) Smallest() int { return b.Sizes[0] }

// Largest of the sizes.
func (b *Bench) Largest() int { return b.Sizes[len(b.Sizes)-1] }

// Fixture is a control plane with so many findings and the REST API over it, and no controllers at
// work. It is shared: who changes anything in it puts it right again.
func (b *Bench) Fixture(ctx context.Context, findings int) (*Fixture, error) {
	return b.fixture(ctx, fixtureKind{findings: findings})
}

// UndecidedFixture is a control plane like that of Fixture, without reviews, in which no finding is closed or decided
// about.
func (b *Bench) UndecidedFixture(ctx context.Context, findings int) (*Fixture, error) {
	return b.fixture(ctx, fixtureKind{findings: findings, undecided: true})
}

// fixtureKind is what is in a fixture.
type fixtureKind struct {
	findings  int
	undecided bool
}

func (b *Bench) fixture(ctx context.Context, kind fixtureKind) (*Fixture, error) {
	if f := b.fixtures[kind]; f != nil {
		return f, nil
	}
	f, err := b.makeFixture(ctx, kind)
	if err != nil {
		return nil, err
	}
	b.fixtures[kind] = f
	return f, nil
}

func (b *Bench) makeFixture(ctx context.Context, kind fixtureKind) (*Fixture, error) {
	findings := kind.findings
	b.made++
	folder := filepath.Join(b.folder, fmt.Sprintf("plane-%d", b.made))
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	began := time.Now()
	f, err := newFixture(ctx, b, folder, kind)
	if err != nil {
		return nil, fmt.Errorf("a control plane with %d findings: %w", findings, err)
	}
	if f.endProfiles, err = b.Profiled(ctx, f.Config, f.Size); err != nil {
		return nil, errors.Join(err, f.Stop())
	}
	b.Say("a control plane with %d findings of %d bytes and %d reviews is up after %s; they were loaded in %s, and the REST API was ready in %s",
		findings, f.Loaded.FindingBytes/int64(max(1, findings)), len(f.Data.Reviews),
		seconds(time.Since(began)), seconds(f.LoadTook), seconds(f.Facade.Readied))
	return f, nil
}

func seconds(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }

// Folder is where a measurement may put files; they go when the run ends.
func (b *Bench) Folder() string { return b.folder }

// Side asks a target over the client's connections. The processor time of the processes is counted.
func (b *Bench) Side(target load.Target, pids ...int) measure.Side {
	return measure.Side{Name: target.Name, PIDs: pids, Run: func(ctx context.Context,
		duration time.Duration) (measure.Sample, error) {
		result := b.Client.Run(ctx, load.Job{Target: target, Connections: b.Connections, For: duration})
		if result.Error != "" {
			return measure.Sample{}, errors.New(result.Error)
		}
		return measure.Sample{
			Operations: result.Requests, Elapsed: result.Elapsed, P50: result.P50, P99: result.P99, Bytes: result.Bytes,
		}, nil
	}}
}

// CeilingSide answers with the content, from memory. The name is the side's and must be its own.
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
