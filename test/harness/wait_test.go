package harness

import (
	"context"
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
	r := recorder{TB: t, failures: make(chan string, 1)}
	Background(r, func(context.Context) error { return nil })
	select {
	case got := <-r.failures:
		Same(t, "failure", "what ran in the background ended by itself, with <nil>", got)
	case <-time.After(Patience):
		t.Error("the test does not fail")
	}
}
