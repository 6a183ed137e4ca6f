package controllertest

import (
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// atATime is how many tests that share controllers run at a time: they mostly wait for what the controllers delay.
const atATime = "8"

// Main is testenv.Main for a package whose tests share controllers. The flag -parallel overrides how many of them run
// at a time.
func Main(m *testing.M, env **testenv.Environment) {
	if err := flag.Set("test.parallel", atATime); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	testenv.Main(m, env)
}

// Shared are controllers that tests use at the same time, each in namespaces of its own.
type Shared struct {
	setups []Setup
	users  int
	stop   func() error
}

// turn guards inUse, the controllers that run: others would reconcile the same objects.
var (
	turn  = sync.NewCond(&sync.Mutex{})
	inUse *Shared
)

// Share returns controllers that tests can use at the same time.
func Share(setups ...Setup) *Shared { return &Shared{setups: setups} }

// Alone runs the controllers for a test that stops them, or prepares something before they start.
func (s *Shared) Alone(t *testing.T, env *testenv.Environment) (stop func()) {
	t.Helper()
	return Start(t, env, s.setups...)
}

// Start makes the test parallel, and runs the controllers until the last test that uses them has ended. Tests that
// start controllers of their own are not parallel, and end before. Where a package has several Shared, the tests that
// use one have no parallel subtests: tests that wait for other controllers could take all their places.
func (s *Shared) Start(t *testing.T, env *testenv.Environment) {
	t.Helper()
	t.Parallel()
	turn.L.Lock()
	defer turn.L.Unlock()
	for inUse != nil && inUse != s {
		turn.Wait()
	}
	if inUse == nil {
		stop, err := Run(env, s.setups...)
		harness.Must(t, err)
		inUse, s.stop = s, stop
	}
	s.users++
	t.Cleanup(func() { s.leave(t) })
}

func (s *Shared) leave(t *testing.T) {
	turn.L.Lock()
	defer turn.L.Unlock()
	if s.users--; s.users > 0 {
		return
	}
	inUse = nil
	turn.Broadcast()
	if err := s.stop(); err != nil {
		t.Errorf("the manager stopped with %v", err)
	}
}
