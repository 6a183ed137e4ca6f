package controllertest

import (
	"sync"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// maxTests is how many tests may share the controllers at once: they mostly wait for what the controllers delay.
const maxTests = 8

// Main is testenv.Main for a package whose tests share controllers. They limit themselves, because
// go test counts a waiting test as running.
func Main(m *testing.M, env **testenv.Environment) {
	harness.AtATime(1000)
	testenv.Main(m, env)
}

// Shared are controllers that tests use at the same time, each in namespaces of its own.
type Shared struct {
	setups []Setup
	users  int
	stop   func() error
}

// turn guards what follows, and is signalled when a test no longer uses shared controllers. inUse are those that run:
// others would reconcile the same objects.
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
// start controllers of their own are not parallel, and end before.
func (s *Shared) Start(t *testing.T, env *testenv.Environment) {
	t.Helper()
	t.Parallel()
	turn.L.Lock()
	defer turn.L.Unlock()
	for inUse != nil && inUse != s || s.users == maxTests {
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

// Namespace starts the controllers as Start does, and returns a namespace of the test's own.
func (s *Shared) Namespace(t *testing.T, env *testenv.Environment) string {
	t.Helper()
	s.Start(t, env)
	return env.Namespace(t)
}

// failWhileShared fails a test that would start controllers of its own beside shared ones: both would reconcile the
// objects of all tests.
func failWhileShared(t testing.TB) {
	t.Helper()
	turn.L.Lock()
	defer turn.L.Unlock()
	if inUse != nil {
		t.Fatal("shared controllers are running: only a test that is not parallel and does not use them may start its own")
	}
}

func (s *Shared) leave(t *testing.T) {
	turn.L.Lock()
	defer turn.L.Unlock()
	turn.Broadcast()
	if s.users--; s.users > 0 {
		return
	}
	inUse = nil
	if err := s.stop(); err != nil {
		t.Errorf("the manager stopped with %v", err)
	}
}
