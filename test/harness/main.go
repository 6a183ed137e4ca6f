package harness

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// startTimeout bounds the start of everything that a package's tests need, including the first build of all programs.
const startTimeout = 15 * time.Minute

// Main starts what the package's tests need, runs them, and stops everything, whatever their result. Call it from
// TestMain. Fuzz targets must not use what start provides. controller-runtime logs nothing.
func Main(m *testing.M, start func(context.Context, *Stops) error) { os.Exit(run(m, start)) }

// AtATime sets how many parallel tests run at a time, where they mostly wait. The flag -parallel overrides it. Call it
// before Main.
func AtATime(tests int) {
	if err := flag.Set("test.parallel", strconv.Itoa(tests)); err != nil {
		panic(err) // the flag exists in every test binary
	}
}

func run(m interface{ Run() int }, start func(context.Context, *Stops) error) (code int) {
	log.SetLogger(logr.Discard())
	if err := forgetResult(); err != nil {
		return failed("forget the result of the tests", err)
	}
	if isFuzzWorker() {
		return m.Run()
	}
	var stops Stops
	defer func() {
		if err := stops.Stop(); err != nil {
			code = failed("stop what the tests needed", err)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := start(ctx, &stops); err != nil {
		return failed("start what the tests need", err)
	}
	return m.Run()
}

func failed(what string, err error) (code int) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
	return 1
}

// isFuzzWorker reports whether this is one of the worker processes of `go test -fuzz`. They run a
// fuzz target and no tests: starting a control plane for each worker would leave little time for inputs.
func isFuzzWorker() bool {
	worker := flag.Lookup("test.fuzzworker")
	return worker != nil && worker.Value.String() == "true"
}

// forgetResult keeps `go test` from caching the package's result. The cache tracks the files that
// are opened while tests run, but not those that start reads earlier, nor the programs that it builds: after a change
// of a CRD, a role or a policy, `go test` would still print the old result.
func forgetResult() error {
	flag.Parse()
	return flag.Set("test.testlogfile", "")
}
