package plane

import (
	"context"
	"time"

	"github.com/appsec-dev/findings-operator/bench/internal/measure"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// readyTimeout allows for a shared machine and 100,000 findings.
const readyTimeout = 15 * time.Minute

// Process is a running part of the operator.
type Process struct{ *harness.Component }

// Memory returns the memory of the process.
func (p *Process) Memory() (measure.Memory, error) { return measure.MemoryOf(p.PID()) }

// start starts a part of the operator and waits until it is ready. The process lives until Stop.
func start(ctx context.Context, component *harness.Component) (*Process, error) {
	component.ReadyWithin = readyTimeout
	if err := component.StartReady(ctx); err != nil {
		return nil, err
	}
	return &Process{component}, nil
}
