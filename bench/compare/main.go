package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/appsec-dev/findings-operator/bench/internal/bench"
	"github.com/appsec-dev/findings-operator/bench/internal/held"
	"github.com/appsec-dev/findings-operator/bench/internal/load"
	"github.com/appsec-dev/findings-operator/bench/internal/postgres"
	"github.com/appsec-dev/findings-operator/bench/internal/report"
	"github.com/appsec-dev/findings-operator/bench/internal/rivals"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctrl.SetLogger(logr.Discard())
	return newCommand().ExecuteContext(ctx)
}

// self starts this program again.
func self(ctx context.Context, arguments ...string) *exec.Cmd {
	program, err := os.Executable()
	if err != nil {
		program = os.Args[0]
	}
	command := exec.CommandContext(ctx, program, arguments...)
	command.Stderr = os.Stderr
	// Ctrl-C goes to this process only; a child ends when its input ends.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return command
}

// options holds the flags.
type options struct {
	bench.Options
	only []string
	out  string
}

func newCommand() *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use:   "compare",
		Short: "Measure the service side by side with what else does the same",
		Long: `Measure the service side by side with what else does the same. Write a page for each
measurement into <out>/performance, and the main figures into the summary of <out>/performance.md.

Everything listens on the loopback interface and ends by itself. Needs the control plane
in bin/k8s (make controlplane); what needs PostgreSQL is reported as not run without it.

Measurements:
` + list(),
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error { return o.run(command) },
	}
	flags := command.Flags()
	flags.IntSliceVar(&o.Sizes, "findings", []int{1_000, 10_000, 100_000},
		"numbers of findings, each loaded into a control plane of its own")
	flags.IntVar(&o.Reviews, "reviews", 10_000, "number of reviews in each")
	flags.IntVar(&o.Results, "results", 5_000, "results of the file whose upload is compared with the plugin's import")
	flags.IntVar(&o.ResultsAgain, "results-again", 20_000, "results of the file that is uploaded twice")
	flags.IntVar(&o.Triaged, "triaged", 10_000,
		"findings of a policy that is compared with bare writes; an operation is over half of them (100000: an hour and more)")
	flags.IntVar(&o.Imported, "imported", 5_000, "findings of the imports during which a person decides")
	flags.IntVar(&o.Plan.Rounds, "rounds", 7, "rounds in which each side has its turn")
	flags.DurationVar(&o.Plan.Duration, "turn", 500*time.Millisecond, "how long a turn takes")
	flags.IntVar(&o.Connections, "connections", 4, "connections that requests are sent over")
	flags.StringSliceVar(&o.only, "only", nil, "measure only these")
	flags.StringVar(&o.out, "out", "docs",
		"folder of performance.md and of the pages in performance; empty: write to standard output alone")
	flags.StringVar(&o.Binary, "binary", "", "the operator to measure; without it, one that is built of the working tree")
	flags.StringVar(&o.Against, "against", "5b72824", "the commit that the costs of a finding are compared with")
	flags.StringVar(&o.Profiles, "profiles", "",
		"folder for profiles of kube-apiserver, of processor time and of what is allocated, one after the other, named after the measurement: see go tool pprof")
	flags.BoolVar(&o.Short, "short", false,
		"few findings and short turns, and no pages without --out: shows in a minute that everything works")
	command.CompletionOptions.DisableDefaultCmd = true
	command.AddCommand(children()...)
	return command
}

// children are the commands that this program starts itself with.
func children() []*cobra.Command {
	return []*cobra.Command{
		{Use: bench.ClientCommand, Hidden: true, RunE: func(command *cobra.Command, _ []string) error {
			return load.Serve(command.Context(), command.InOrStdin(), command.OutOrStdout())
		}},
		{Use: heldCommand, Hidden: true, RunE: func(command *cobra.Command, _ []string) error {
			return held.Serve(command.Context(), command.InOrStdin(), command.OutOrStdout())
		}},
		{Use: bench.CeilingCommand, Hidden: true, RunE: func(command *cobra.Command, _ []string) error {
			return rivals.Serve(command.Context(), rivals.Ceiling(), command.InOrStdin(), command.OutOrStdout())
		}},
		{Use: bench.PostgresCommand, Hidden: true, Args: cobra.ExactArgs(2),
			RunE: func(command *cobra.Command, arguments []string) error {
				handler, err := postgres.Handler(command.Context(), arguments[0], arguments[1])
				if err != nil {
					return err
				}
				return rivals.Serve(command.Context(), handler, command.InOrStdin(), command.OutOrStdout())
			}},
	}
}

func list() string {
	var b strings.Builder
	for _, m := range measurements {
		fmt.Fprintf(&b, "  %-11s %s\n", m.Name, m.About)
	}
	return b.String()
}

// chosen returns the measurements to run.
func (o *options) chosen() ([]bench.Measurement, error) {
	if len(o.only) == 0 {
		return measurements, nil
	}
	var out []bench.Measurement
	for _, name := range o.only {
		i := slices.IndexFunc(measurements, func(m bench.Measurement) bool { return m.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("--only: there is no measurement %q; there are\n%s", name, list())
		}
		out = append(out, measurements[i])
	}
	return out, nil
}

func (o *options) complete(flags *pflag.FlagSet) error {
	if o.Short {
		// Its figures must not replace published ones.
		if !flags.Changed("out") {
			o.out = ""
		}
		o.Sizes, o.Reviews, o.Plan.Rounds, o.Plan.Duration = []int{1_000}, 500, 3, 100*time.Millisecond
		o.Results, o.ResultsAgain, o.Triaged, o.Imported = 150, 300, 200, 200
	}
	if len(o.Sizes) == 0 || slices.Min(o.Sizes) < 1 || o.Plan.Rounds < 1 || o.Plan.Duration <= 0 || o.Connections < 1 ||
		o.Reviews < 1 || o.Results < 1 || o.ResultsAgain < 1 || o.Triaged < 2 || o.Imported < 1 {
		return errors.New("--findings, --reviews, --results, --results-again, --triaged, --imported, --rounds, --turn and " +
			"--connections must be positive")
	}
	return nil
}

func (o *options) run(command *cobra.Command) (err error) {
	ctx := command.Context()
	if err := o.complete(command.Flags()); err != nil {
		return err
	}
	chosen, err := o.chosen()
	if err != nil {
		return err
	}
	began := time.Now()
	o.Self = self
	o.Say = func(format string, arguments ...any) {
		fmt.Fprintf(command.ErrOrStderr(), "bench %5.0fs: %s\n", time.Since(began).Seconds(),
			fmt.Sprintf(format, arguments...))
	}
	b, err := bench.New(ctx, o.Options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	about := report.ThisRun(b.Binary, commandLine(command.Flags()))
	for _, m := range chosen {
		section, err := b.Measure(ctx, m)
		if err != nil {
			return err
		}
		fmt.Fprintln(command.OutOrStdout(), section.Markdown(about))
		if o.out == "" {
			continue
		}
		if err := section.Write(o.out, about); err != nil {
			return err
		}
	}
	return nil
}

// commandLine returns the command that repeats a run with these flags.
func commandLine(flags *pflag.FlagSet) string {
	var arguments []string
	flags.Visit(func(flag *pflag.Flag) { // in the order of their names
		argument := "--" + flag.Name
		if flag.Value.Type() != "bool" {
			argument += " " + cmp.Or(strings.Trim(flag.Value.String(), "[]"), "''")
		}
		arguments = append(arguments, argument)
	})
	if len(arguments) == 0 {
		return "make bench"
	}
	return `make bench BENCH="` + strings.Join(arguments, " ") + `"`
}
