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

// Main is testenv.Main for a package whose tests share controllers. The flag -parallel overrides how many of them run at
// a time.
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

	mutex sync.Mutex
	users int
	stop  func() error
}

// Share returns controllers that tests can use at the same time.
func Share(setups ...Setup) *Shared { return &Shared{setups: setups} }

// Start makes the test parallel, and runs the controllers until the last test that uses them has ended. Tests that start
// controllers of their own end before: they are not parallel.
func (s *Shared) Start(t *testing.T, env *testenv.Environment) {
	t.Helper()
	t.Parallel()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.users == 0 {
		stop, err := Run(env, s.setups...)
		harness.Must(t, err)
		s.stop = stop
	}
	s.users++
	t.Cleanup(func() {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		if s.users--; s.users > 0 {
			return
		}
		if err := s.stop(); err != nil {
			t.Errorf("the manager stopped with %v", err)
		}
	})
}
