package import_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/scan"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// reasons returns the project's scans by the reason of their condition Ready.
func (p *project) reasons() map[string]v1alpha1.Scan {
	p.Helper()
	out := map[string]v1alpha1.Scan{}
	for _, scan := range p.scans() {
		if ready := v1alpha1.FindCondition(scan.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
			out[ready.Reason] = scan
		}
	}
	return out
}

// An import that dies reports that many findings; an earlier one has made those that are no longer reported.
const (
	noLonger = 50
	reported = 250
)

// wantOneEnd checks that one scan ended and counted that many of the reported findings as unchanged, and
// that another has no end.
func (p *project) wantOneEnd(unchanged int) {
	p.Helper()
	whole, without := 0, 0
	for _, scan := range p.scans() {
		switch c := scan.Spec.Counts; {
		case c == nil:
			without++
		case c.Closed == noLonger && int(c.Unchanged) == unchanged && c.Created+c.Unchanged == reported:
			whole++
		}
	}
	if whole != 1 || without != 1 {
		p.Errorf("%d scans counted %d unchanged of %d, %d have no end; want 1 and 1", whole, unchanged, reported, without)
	}
}

// endSoon lets the Lease of a process that is dead end in a second: tests do not wait for the rest of it.
func endSoon(t *testing.T, name string) {
	t.Helper()
	lease := testenv.Get(t, NewWithT(t), env, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	if lasts := ptr.Deref(lease.Spec.LeaseDurationSeconds, 0); lasts > 15 {
		t.Errorf("the next import waits for %d seconds", lasts)
	}
	env.Patch(t, lease, `{"spec":{"leaseDurationSeconds":1}}`)
}

// One import is killed and one is stopped, as on a laptop that goes to sleep, in the middle of its findings,
// and some earlier ones are no longer reported.
func TestTheScanOfAnImportThatDiesIsFailedWithinAMinuteAndTheSameImportFinishesTheWork(t *testing.T) {
	controllertest.Start(t, env, scan.Settings{}.SetupWithManager)
	for name, signal := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			all := numbered(noLonger + reported)
			p.imports(document(all[:noLonger]...), commitA)
			file := sarifFile(p, document(all[noLonger:]...))
			cmd, out := p.begin(file, 20, "--force")
			harness.Must(p, cmd.Process.Signal(signal))
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			open, closed, _ := p.count()
			if open == noLonger+reported || closed > 0 {
				t.Fatalf("%d open and %d closed: the import was too fast for this test:\n%s", open, closed, out)
			}
			t.Parallel() // both wait at the same time
			harness.Within(t, time.Minute, func(g Gomega) {
				g.Expect(p.reasons()).To(HaveKey(v1alpha1.ReasonAbandoned))
			})
			if _, closed, _ := p.count(); closed > 0 {
				t.Errorf("%d findings are closed by an import that did not come to its end", closed)
			}
			half, _, _ := p.count()
			endSoon(t, p.reasons()[v1alpha1.ReasonAbandoned].Spec.Lease.Name)
			harness.Run(t, p.kubectl(file, "--force")).Wants("waiting: another import") // for the Lease
			p.wantOneEnd(half - noLonger)
			if signal == syscall.SIGSTOP {
				harness.Must(p, cmd.Process.Signal(syscall.SIGCONT))
			}
			err := cmd.Wait()
			p.wantState("the same import again", reported, noLonger, 0)
			if signal != syscall.SIGSTOP {
				return
			}
			if err == nil || !strings.Contains(out.String(), "Lease was lost") {
				t.Errorf("the import that was late says (%v):\n%s", err, out)
			}
			harness.Eventually(t, func(g Gomega) {
				reasons := p.reasons()
				g.Expect(reasons).To(HaveKey(v1alpha1.ReasonScanFailed), "its own word is the last one")
				g.Expect(reasons).NotTo(HaveKey(v1alpha1.ReasonAbandoned))
				// Otherwise the next import takes it for one that was cut off after the last success.
				ended := reasons[v1alpha1.ReasonScanFailed].Spec.CompletedAt
				g.Expect(slices.ContainsFunc(p.scans(), func(s v1alpha1.Scan) bool {
					return s.Spec.Outcome == v1alpha1.ScanSucceeded && s.Spec.CompletedAt.After(ended.Time)
				})).To(BeTrue(), "a success after %s, when it last had its Lease", ended)
			})
		})
	}
}
