package harness

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// recorder receives the failures of a test.
type recorder struct {
	testing.TB
	failures chan string
}

func (r recorder) Errorf(format string, args ...any) { r.failures <- fmt.Sprintf(format, args...) }

func TestBackgroundFailsIfTheFunctionReturnsEarly(t *testing.T) {
	r := recorder{TB: t, failures: make(chan string, 2)}
	stop := Background(r, func(context.Context) error { return errors.New("broken") })
	select {
	case got := <-r.failures:
		Same(t, "failure", "what ran in the background ended by itself, with broken", got)
	case <-time.After(Patience):
		t.Error("the test does not fail")
	}
	stop()
	Same(t, "further failures", 0, len(r.failures))
}
