// Package plane runs a separate control plane: a real etcd and kube-apiserver with the kinds, roles
// and admission policies installed, and the operator's own binary as controllers and as REST API,
// each with the credentials of its service account. Everything listens on the loopback interface.
package plane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/appsec-dev/findings-operator/bench/internal/measure"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// Plane is a running control plane. Stop ends all its processes.
type Plane struct {
	*testenv.Environment
	// Controller and Facade are nil while they do not run.
	Controller, Facade *harness.Component

	operator   harness.Operator
	cursorKeys string
}

// quiet keeps kube-apiserver from comparing its whole cache with etcd every five minutes, which takes
// both cores for half a minute with 100,000 findings and would distort the figures of one side.
const quiet = "--feature-gates=DetectCacheInconsistency=false"

// readyTimeout allows for a shared machine and 100,000 findings.
const readyTimeout = 15 * time.Minute

// Start starts etcd and kube-apiserver with the kinds, roles and policies of the tree in the folder source; the
// operator's processes are started on demand. binary is the path of the operator, built from that tree. The folder must
// exist; it holds logs and credentials.
func Start(source, folder, binary string) (*Plane, error) {
	p := &Plane{operator: harness.Operator{Binary: binary, Folder: folder, Namespace: testenv.SystemNamespace}}
	var err error
	if p.cursorKeys, err = p.operator.CursorKeys(); err != nil {
		return nil, err
	}
	p.Environment, err = testenv.StartOf(source, quiet)
	return p, err
}

// StartController starts the controllers with further flags, and waits until they are ready.
func (p *Plane) StartController(ctx context.Context, flags ...string) error {
	config, err := p.Environment.Controller(ctx)
	if err != nil {
		return err
	}
	component, err := p.operator.Controller("controller", config, append([]string{"--webhook-allow-cidr=127.0.0.1/32"},
		flags...)...)
	if err != nil {
		return err
	}
	p.Controller, err = start(ctx, component)
	return err
}

// StopController ends the controllers, if they run.
func (p *Plane) StopController() error { return stop(&p.Controller) }

// StartFacade starts the REST API, and waits until it is ready.
func (p *Plane) StartFacade(ctx context.Context) error {
	config, err := p.Environment.Facade(ctx)
	if err != nil {
		return err
	}
	component, err := p.operator.Facade("facade", config, p.cursorKeys)
	if err != nil {
		return err
	}
	p.Facade, err = start(ctx, component)
	return err
}

// StopFacade ends the REST API, if it runs.
func (p *Plane) StopFacade() error { return stop(&p.Facade) }

// start starts a part of the operator and waits until it is ready. The process lives until it is stopped.
func start(ctx context.Context, component *harness.Component) (*harness.Component, error) {
	component.ReadyWithin = readyTimeout
	if err := component.StartReady(ctx); err != nil {
		return nil, err
	}
	return component, nil
}

func stop(process **harness.Component) error {
	if *process == nil {
		return nil
	}
	err := (*process).Stop()
	*process = nil
	return err
}

// Stop ends everything.
func (p *Plane) Stop() error {
	return errors.Join(p.StopFacade(), p.StopController(), p.Environment.Stop())
}

// PIDs returns the process IDs of the running processes, by name: etcd, kube-apiserver, controller,
// facade.
func (p *Plane) PIDs() map[string]int {
	out := map[string]int{"etcd": p.ControlPlane.Etcd.PID(), "kube-apiserver": p.ControlPlane.APIServer.PID()}
	for _, process := range []*harness.Component{p.Controller, p.Facade} {
		if process != nil {
			out[process.Name] = process.PID()
		}
	}
	return out
}

// ProcessorTimes returns the processor time that each running process has used so far, by name.
func (p *Plane) ProcessorTimes() map[string]time.Duration {
	out := map[string]time.Duration{}
	for name, pid := range p.PIDs() {
		if used, err := measure.ProcessorTimeOf(pid); err == nil {
			out[name] = used
		}
	}
	return out
}

// Memory returns the memory of each running process, by name.
func (p *Plane) Memory() (map[string]measure.Memory, error) {
	out := map[string]measure.Memory{}
	for name, pid := range p.PIDs() {
		memory, err := measure.MemoryOf(pid)
		if err != nil {
			return nil, fmt.Errorf("memory of %s: %w", name, err)
		}
		out[name] = memory
	}
	return out, nil
}
