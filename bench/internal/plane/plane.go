// Package plane runs a control plane of its own: a real etcd and kube-apiserver with the kinds, roles
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

// Plane is a control plane at work. Stop ends all of it.
type Plane struct {
	*testenv.Environment
	// Controller and Facade are nil while they do not run.
	Controller, Facade *Process

	operator   harness.Operator
	cursorKeys string
}

// quiet keeps kube-apiserver from comparing all of its cache with all of etcd every five minutes, which
// takes both cores for half a minute with 100,000 findings: it would fall to one side or the other.
const quiet = "--feature-gates=DetectCacheInconsistency=false"

// Start starts etcd and kube-apiserver; the operator's processes are started when they are wanted.
// binary is the operator's, and the folder, which is there already, takes logs and credentials.
func Start(folder, binary string) (*Plane, error) {
	return StartOf(testenv.RepositoryRoot(), folder, binary)
}

// StartOf is Start with the kinds, roles and policies of another commit's tree, which is in the folder source; the
// binary is built of that tree.
func StartOf(source, folder, binary string) (*Plane, error) {
	p := &Plane{operator: harness.Operator{Binary: binary, Folder: folder, Namespace: testenv.SystemNamespace}}
	var err error
	if p.cursorKeys, err = p.operator.CursorKeys(); err != nil {
		return nil, err
	}
	p.Environment, err = testenv.StartOf(source, quiet)
	return p, err
}

// StartController starts the controllers, with further flags, and waits until they see everything.
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

// StopController ends the controllers; none running is no error.
func (p *Plane) StopController() error { return stop(&p.Controller) }

// StartFacade starts the REST API, with further flags, and waits until it is ready.
func (p *Plane) StartFacade(ctx context.Context, flags ...string) error {
	config, err := p.Environment.Facade(ctx)
	if err != nil {
		return err
	}
	component, err := p.operator.Facade("facade", config, append([]string{p.cursorKeys}, flags...)...)
	if err != nil {
		return err
	}
	p.Facade, err = start(ctx, component)
	return err
}

// StopFacade ends the REST API; none running is no error.
func (p *Plane) StopFacade() error { return stop(&p.Facade) }

func stop(process **Process) error {
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

// PIDs of what runs, by name: etcd, kube-apiserver, controller, facade.
func (p *Plane) PIDs() map[string]int {
	out := map[string]int{"etcd": p.ControlPlane.Etcd.PID(), "kube-apiserver": p.ControlPlane.APIServer.PID()}
	for _, process := range []*Process{p.Controller, p.Facade} {
		if process != nil {
			out[process.Name] = process.PID()
		}
	}
	return out
}

// ProcessorTimes are what each of what runs has used so far, by name.
func (p *Plane) ProcessorTimes() map[string]time.Duration {
	out := map[string]time.Duration{}
	for name, pid := range p.PIDs() {
		if used, err := measure.ProcessorTimeOf(pid); err == nil {
			out[name] = used
		}
	}
	return out
}

// Memory of what runs, by name.
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
