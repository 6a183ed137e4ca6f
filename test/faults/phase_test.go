package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

const (
	// warmUp and coolDown are how many REST writes must be acknowledged before and after a fault.
	warmUp, coolDown = 15, 10
)

// outcome holds the results of a phase.
type outcome struct {
	name string
	// writes, reads and controllers are the times after the fault until the first REST write was
	// acknowledged, REST showed a write made with kubectl, and the controllers had observed it.
	writes, reads, controllers time.Duration
	observed
}

func (o outcome) String() string {
	return fmt.Sprintf("%-44s writes after %6s, reads current after %6s, controllers after %6s; looked %d times: served %d, not ready %d, age up to %s",
		o.name, short(o.writes), short(o.reads), short(o.controllers), o.samples, o.served, o.notReady, short(o.oldestMetric))
}

func short(d time.Duration) string { return d.Round(10 * time.Millisecond).String() }

// phase runs the load, injects the fault, and checks the results once everything has settled. fault
// returns when its cause is gone.
func (s *trial) phase(name string, fault func()) outcome {
	s.t.Helper()
	out := outcome{name: name}
	watched, index := s.monitor.begin(name)
	initial := s.comments()
	l := s.work(index)
	func() {
		defer l.stop() // a fault may end the test
		s.awaitProgress(warmUp)
		fault()
		s.converge(&out, index)
		s.awaitProgress(coolDown)
	}()
	s.settle()
	s.judge(initial)
	out.observed = s.monitor.seen(watched)
	s.t.Log(out)
	s.checkBounds(out)
	return out
}

// comments returns the comments of the findings that REST writes, once everything has settled.
func (s *trial) comments() map[string]string {
	s.must(s.audit.read(s.t.Context()))
	out := map[string]string{}
	for _, id := range s.staged[byREST] {
		out[id] = s.audit.last(id)
	}
	return out
}

func (s *trial) awaitProgress(writes int) {
	s.t.Helper()
	target := s.journal.counted("REST writes") + writes
	s.eventually(strconv.Itoa(writes)+" more REST writes are acknowledged", func(context.Context) error {
		if got := s.journal.counted("REST writes"); got < target {
			return fmt.Errorf("%d are missing", target-got)
		}
		return nil
	})
}

// converge measures how long it takes until the service works again as before the fault.
func (s *trial) converge(out *outcome, index int) {
	s.t.Helper()
	healed := time.Now()
	id := s.staged[probed][0]
	number := index * numbersOfPhase
	s.eventually("REST writes are acknowledged", func(context.Context) error {
		number++
		if !s.writeREST(restCallers, id, "probe-"+strconv.Itoa(number), userStatuses[number%len(userStatuses)]) {
			return errors.New("it was refused")
		}
		return nil
	})
	out.writes = time.Since(healed)
	s.eventually("the API server takes a patch", func(context.Context) error {
		number++
		if !s.patchOnce(id, number) {
			return errors.New("it was refused")
		}
		return nil
	})
	s.eventually("REST shows what kubectl wrote", func(context.Context) error {
		if shown, ok := s.get(id); !ok || shown.Comments != strconv.Itoa(number) {
			return fmt.Errorf("it shows %q", shown.Comments)
		}
		return nil
	})
	out.reads = time.Since(healed)
	s.eventually("the controllers have seen it", func(ctx context.Context) error {
		finding := &v1alpha1.Finding{}
		if err := s.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: id}, finding); err != nil {
			return err
		}
		return seen(finding)
	})
	out.controllers = time.Since(healed)
}

func seen(f *v1alpha1.Finding) error {
	if !findingstate.IsRecorded(f) || len(findingstate.History(&f.Status).Owed()) > 0 {
		return fmt.Errorf("finding %s: generation %d is seen of %d, %d emitted", f.Name, f.Status.ObservedGeneration, f.Generation, f.Status.EmittedSeq)
	}
	return nil
}

// settle waits until no work is outstanding and REST and the API server show the same.
func (s *trial) settle() {
	s.t.Helper()
	s.eventually("the last import is done", func(ctx context.Context) error { return s.importScan(ctx, s.whole) })
	s.eventually("the controllers have seen everything", func(ctx context.Context) error {
		findings, scans := &v1alpha1.FindingList{}, &v1alpha1.ScanList{}
		if err := errors.Join(s.Client.List(ctx, findings, client.InNamespace(namespace)), s.Client.List(ctx, scans, client.InNamespace(namespace))); err != nil {
			return err
		}
		for i := range findings.Items {
			if err := seen(&findings.Items[i]); err != nil {
				return err
			}
		}
		for i := range scans.Items {
			scan := &scans.Items[i]
			if n := len(scan.Status.Transitions); scan.Status.ObservedGeneration != scan.Generation || n > 0 && scan.Status.Transitions[n-1].Seq != scan.Status.EmittedSeq {
				return fmt.Errorf("scan %s is not settled", scan.Name)
			}
		}
		return nil
	})
	s.eventually("every operation has ended", s.operationsEnded)
	s.eventually("the policy decides about what nobody has", s.policyDecides)
	s.eventually("both doors show the same", s.doorsAgree)
}

func (s *trial) doorsAgree(ctx context.Context) error {
	list := &v1alpha1.FindingList{}
	if err := s.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return err
	}
	want := map[string]item{}
	for i := range list.Items {
		f := &list.Items[i]
		if f.Spec.Closed != nil {
			return fmt.Errorf("%s is closed though the last import reports it", f.Name)
		}
		want[f.Name] = item{f.Name, string(f.Status.State), string(f.Spec.Triage.UserStatus), f.Spec.Triage.Comments}
	}
	code, got, err := s.rest.call(ctx, http.MethodGet, "/v2/findings?size=1000", nil)
	if err != nil || code != http.StatusOK {
		return fmt.Errorf("the list is answered with %d: %w", code, err)
	}
	p, err := got.page()
	if err != nil {
		return err
	}
	shown := map[string]item{}
	for _, i := range p.Items {
		shown[i.ID] = i
	}
	if len(p.Items) != len(shown) || !maps.Equal(want, shown) {
		var differ []string
		for id, w := range want {
			if shown[id] != w {
				differ = append(differ, fmt.Sprintf("%v is shown as %v", w, shown[id]))
			}
		}
		return fmt.Errorf("REST lists %d of %d findings: %s", len(p.Items), len(want), strings.Join(differ, "; "))
	}
	return nil
}

// judge compares the answers to the load with the stored history. Everything has settled.
func (s *trial) judge(initial map[string]string) {
	s.t.Helper()
	s.must(s.audit.read(s.t.Context()))
	// The final state at both doors counts as one more read.
	for _, id := range s.staged[byREST] {
		s.readREST(restCallers, id)
		now := s.journal.now()
		s.journal.did(operation{id: id, Operation: porcupine.Operation{
			ClientId: restCallers + 1, Input: step{}, Output: s.audit.last(id), Call: now, Return: now,
		}})
	}
	writes, operations := s.journal.take()
	s.audit.checkWrites(writes)
	s.audit.checkDeliveries()
	s.audit.many.check()
	var ofREST []operation
	for _, o := range operations {
		if _, ok := initial[o.id]; ok {
			ofREST = append(ofREST, o)
		}
	}
	checkLinearizable(s.verdict, ofREST, initial, s.audit.stored)
	if done, kept := s.journal.counted("imports"), len(s.audit.completed); kept < done {
		s.verdict.lose("%d imports were acknowledged, and %d scans are recorded", done, kept)
	}
	for _, stray := range s.Facade.Strays() {
		s.verdict.wrong("%s", stray)
	}
}

// checkReceived checks that each delivery that is recorded as delivered was received as recorded.
func (s *trial) checkReceived() {
	s.t.Helper()
	list := &v1alpha1.WebhookDeliveryList{}
	s.must(s.Client.List(s.t.Context(), list, client.InNamespace(namespace)))
	phases := map[v1alpha1.WebhookDeliveryPhase]int{}
	for i := range list.Items {
		d := &list.Items[i]
		phases[d.Status.Phase]++
		payload, times := s.receiver.got(d.Spec.Event.ID)
		if d.Status.Phase == v1alpha1.WebhookDeliveryDelivered && (times == 0 || payload != d.Spec.Payload) {
			s.verdict.lose("%s is recorded as delivered and came %d times, as %q", d.Name, times, payload)
		}
	}
	for _, problem := range s.receiver.wrongs() {
		s.verdict.wrong("the receiver: %s", problem)
	}
	s.t.Logf("deliveries by phase: %v; %d transitions recorded; acknowledged: %v", phases, s.audit.transitions(), s.journal.acknowledged)
}
