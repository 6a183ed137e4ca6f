package plane

import (
	"context"
	"time"

	"github.com/appsec-dev/findings-operator/bench/internal/measure"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// readyTimeout is for a machine on which others work, and 100,000 findings.
const readyTimeout = 15 * time.Minute

// Process is a part of the operator at work.
type Process struct{ *harness.Component }

// Memory that the process takes.
func (p *Process) Memory() (measure.Memory, error) { return measure.MemoryOf(p.PID()) }

// start starts a part of the operator and waits until it is ready. It lives until Stop.
func start(ctx context.Context, component *harness.Component) (*Process, error) {
	component.ReadyWithin = readyTimeout
	if err := component.StartReady(ctx); err != nil {
		return nil, err
	}
	return &Process{component}, nil
}
