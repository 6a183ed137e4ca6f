package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/appsec-dev/findings-operator/bench/internal/bench"
	"github.com/appsec-dev/findings-operator/bench/internal/measure"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// childVariable makes the test binary act as one of the commands that the program starts itself
// with.
const childVariable = "FINDINGS_BENCH_CHILD"

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	if os.Getenv(childVariable) == "" {
		os.Exit(m.Run())
	}
	if err := newCommand().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func selfAsChild(ctx context.Context, arguments ...string) *exec.Cmd {
	command := self(ctx, arguments...)
	command.Env = append(os.Environ(), childVariable+"=1")
	return command
}

// The comparison works, the loaded data is what the controllers would leave, and a page costs a
// fraction of the API server's own. No more can be asked of a busy machine; `make bench` measures.
func TestTheComparisonInShort(t *testing.T) {
	binary := filepath.Join(harness.Root(), "bin", "findings-operator")
	if _, err := os.Stat(binary); err != nil {
		t.Fatal("run `make build` first: ", err)
	}
	b, err := bench.New(t.Context(), bench.Options{
		Sizes: []int{1_000}, Reviews: 100, Plan: measure.Plan{Rounds: 3, Duration: 100 * time.Millisecond}, Connections: 2,
		Binary: binary, Short: true, Self: selfAsChild, Say: t.Logf,
	})
	harness.Must(t, err)
	defer func() { // before the test's context ends, and with it the processes
		harness.NoError(t, "close", b.Close())
	}()
	f, err := b.Fixture(t.Context(), b.Largest())
	harness.Must(t, err)
	settled, err := settle(t.Context(), f)
	harness.Must(t, err)
	harness.Same(t, "objects of what was loaded that the controllers wrote", 0, settled.written)
	questions, err := findingPages(t.Context(), f, nil)
	harness.Must(t, err)
	if questions[0].facade == questions[2].facade || questions[0].kubeQuery == questions[2].kubeQuery {
		t.Errorf("the first and the last page are one: %+v", questions)
	}
	for _, q := range []question{questions[0], questions[2]} {
		sides, err := sidesOf(t.Context(), b, f, nil, q)
		harness.Must(t, err)
		results, err := b.Compare(t.Context(), sides...)
		harness.Must(t, err)
		t.Logf("%+v", sideTable(q.what, sides, results).Rows)
		if facade, ceiling := results.Bytes(sideName(facadeSide, q.what)), results.Bytes(sideName(ceilingSide, q.what)); facade != ceiling || facade < 100_000 {
			t.Errorf("%s: the facade's answer has %d bytes, the ceiling's %d", q.what, facade, ceiling)
		}
		if ratio := results.Ratio(sideName(facadeSide, q.what), sideName(kubeSide, q.what)); !(ratio.Median > 2) {
			t.Errorf("%s: the facade gives %.1f times as many answers as the API server", q.what, ratio.Median)
		}
	}
}

func TestOnlyKnownMeasurementsAreMade(t *testing.T) {
	o := &options{only: []string{"reads", "settled"}}
	chosen, err := o.chosen()
	if err != nil || len(chosen) != 2 || chosen[0].Name != "reads" {
		t.Errorf("got %v, %v", chosen, err)
	}
	o.only = []string{"wishes"}
	_, err = o.chosen()
	harness.ErrorContains(t, "a measurement that does not exist", err, "wishes", "settled")
}

func TestFlagsOutOfRangeAreRefused(t *testing.T) {
	for _, arguments := range [][]string{{"--findings=0"}, {"--rounds=0"}, {"--turn=0s"}, {"--connections=0"}, {"--reviews=-1"}, {"surplus"}} {
		command := newCommand()
		command.SetArgs(arguments)
		command.SetOut(t.Output())
		command.SetErr(t.Output())
		if err := command.ExecuteContext(t.Context()); err == nil {
			t.Errorf("%v was accepted", arguments)
		}
	}
}
