package import_test

import (
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsecv1alpha1 "github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/importer"
)

func (p *project) leases() int {
	p.Helper()
	list := &coordinationv1.LeaseList{}
	p.must(env.Client.List(p.Context(), list, client.InNamespace(namespace)))
	return len(list.Items)
}

// The second import must wait until the first has ended, and then find its work done.
func TestConcurrentImportsFollowEachOther(t *testing.T) {
	p := newProject(t)
	file := document(numbered(30)...)
	waiting := make(chan struct{})
	var first sync.Once
	summaries := make(chan *importer.Summary, 2)
	var group sync.WaitGroup
	begun := make(chan struct{})
	group.Go(func() {
		s, err := p.tryImport(importer.Options{OnProgress: func(int, int) {
			first.Do(func() {
				close(begun)
				select { // hold the Lease until the other one stands in line
				case <-waiting:
				case <-time.After(time.Minute):
					t.Error("the second import does not wait")
				}
				if n := len(p.scans()); n != 1 {
					t.Errorf("%d scans while the second import waits, want 1", n)
				}
			})
		}}, collect(t, importer.Choices{}, file))
		if err != nil {
			t.Errorf("first import: %v", err)
			return
		}
		summaries <- s[0]
	})
	<-begun
	group.Go(func() {
		s, err := p.tryImport(importer.Options{OnWaiting: func(_ *importer.Batch, holder string) {
			if holder == "" {
				t.Error("the waiting import does not say for whom")
			}
			close(waiting)
		}}, collect(t, importer.Choices{}, file))
		if err != nil {
			t.Errorf("second import: %v", err)
			return
		}
		summaries <- s[0]
	})
	group.Wait()
	close(summaries)
	created, unchanged := 0, 0
	for s := range summaries {
		created += s.Created
		unchanged += s.Unchanged
	}
	if created != 30 || unchanged != 30 || len(p.findings()) != 30 {
		t.Errorf("%d created, %d unchanged, %d findings; want 30 of each", created, unchanged, len(p.findings()))
	}
}

// A decision that is made while the import runs must not be closed over unseen.
func TestAFindingThatChangesBeforeItsClosingIsLeftOpen(t *testing.T) {
	p := newProject(t)
	results := numbered(3)
	p.imports(document(results...), commitA)
	decided := p.titled("problem 000").Name
	var once sync.Once
	summaries, err := p.tryImport(importer.Options{OnProgress: func(int, int) {
		once.Do(func() { p.triage(decided, `{"spec":{"triage":{"userStatus":"active"}}}`) })
	}}, collect(t, importer.Choices{}, document(results[2:]...)))
	p.must(err)
	p.wantAdds(summaries[0])
	if s := summaries[0]; s.LeftOpen != 1 || s.Closed != 1 {
		t.Errorf("%+v, want 1 left open and 1 closed", *s)
	}
	if f := p.findings()[decided]; f.Spec.Closed != nil || f.Spec.Triage.UserStatus != appsecv1alpha1.UserStatusActive {
		t.Errorf("closed %v, triage %s; want it open and active", f.Spec.Closed, f.Spec.Triage.UserStatus)
	}
	if s := p.imports(document(results[2:]...), commitB); s.Closed != 1 || s.LeftOpen != 0 {
		t.Errorf("the next import: %+v, want the one left open closed", *s)
	}
}
