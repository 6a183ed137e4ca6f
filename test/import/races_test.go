package import_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func (p *project) leases() int {
	p.Helper()
	return len(testenv.List(p, NewWithT(p), env, &coordinationv1.LeaseList{}, client.InNamespace(namespace)).Items)
}

// The second import must wait until the first has ended, and then find everything unchanged.
func TestConcurrentImportsRunOneAfterTheOther(t *testing.T) {
	t.Parallel() // it mostly waits
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
				select { // hold the Lease until the other import waits for it
				case <-waiting:
				case <-time.After(time.Minute):
					t.Error("the second import does not wait")
				}
				harness.Same(t, "scans while the second import waits", 1, len(p.scans()))
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

// A deleted project is released once it has no findings and scans: nothing would remove those that are written later.
func TestNothingIsWrittenIntoAProjectThatIsDeletedMeanwhile(t *testing.T) {
	for name, c := range map[string]struct {
		there, done int
		anew        bool
	}{
		"before a finding is created": {there: 0, done: 0},
		"after a finding is changed":  {there: 20, done: 1, anew: true},
		"after the last change":       {there: 20, done: 30},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it mostly waits
			p := newProject(t)
			p.imports(document(numbered(c.there)...), commitA)
			p.withoutEvidence() // so that the next import changes them
			file := document(numbered(30)...)
			var waiting sync.WaitGroup
			var late error
			remove := sync.OnceFunc(func() {
				queued := make(chan struct{})
				queue := sync.OnceFunc(func() { close(queued) })
				waiting.Go(func() {
					defer queue() // also if it fails before it waits
					_, late = p.tryImport(importer.Options{
						Upload:     &v1alpha1.ScanUpload{ID: "u-3", Scans: 1},
						OnWaiting:  func(*importer.Batch, string) { queue() },
						OnRecorded: func(*importer.Batch, string) { t.Error("the waiting import recorded a scan") },
					}, collect(t, importer.Choices{}, file))
				})
				<-queued
				p.remove(c.anew)
			})
			_, err := p.tryImport(importer.Options{OnProgress: func(done, _ int) {
				if done == c.done {
					remove()
				}
			}}, collect(t, importer.Choices{}, file))
			waiting.Wait()
			for _, err := range []error{err, late} {
				p.wantRefused(err, "was deleted during the import")
			}
			harness.Same(t, "findings and scans that are left", 0, len(p.findings())+len(p.scans()))
		})
	}
}

// Nothing removes a Scan that is created behind the removal of its project, and a new project of that name would show it.
func TestNoScanIsRecordedInAProjectThatIsDeletedMeanwhile(t *testing.T) {
	p := newProject(t)
	both := collect(t, importer.Choices{}, document(numbered(1)...), builder.SARIF("zeta", numbered(1)...))
	remove := sync.OnceFunc(func() { p.remove(true) })
	_, err := p.tryImport(importer.Options{OnRecorded: func(*importer.Batch, string) { remove() }}, both)
	p.wantRefused(err, "was deleted during the import")
	harness.Same(t, "findings and scans that are left", 0, len(p.findings())+len(p.scans()))
}

func TestAnImportWithoutChangesIntoADeletedProjectFails(t *testing.T) {
	p := newProject(t)
	p.imports(document(numbered(1)...), commitA)
	_, err := p.tryImport(during(func() {
		harness.Must(p, env.Client.Delete(p.Context(), builder.Project(p.name).In(namespace).Build()))
	}), collect(t, importer.Choices{}, document(numbered(1)...)))
	p.wantRefused(err, "was deleted during the import")
}

func TestAScanThatIsDeletedDuringItsImportIsRecordedAgain(t *testing.T) {
	p := newProject(t)
	p.importsAll(during(func() {
		harness.Must(p, env.Client.Delete(p.Context(), &p.scans()[0]))
	}), collect(t, importer.Choices{}, document(numbered(1)...)))
	if scans := p.scans(); len(scans) != 1 || scans[0].Spec.Outcome != v1alpha1.ScanSucceeded {
		t.Errorf("%+v, want one scan that succeeded", scans)
	}
}

// remove deletes the project with its findings and scans, as the controllers do. anew creates another one of its name.
func (p *project) remove(anew bool) {
	p.Helper()
	object := builder.Project(p.name).In(namespace).Repository(repositoryName).Build()
	harness.Must(p, env.Client.Delete(p.Context(), object))
	for _, kind := range []client.Object{&v1alpha1.Finding{}, &v1alpha1.Scan{}} {
		harness.Must(p, env.Client.DeleteAllOf(p.Context(), kind, client.InNamespace(namespace),
			client.MatchingFields{"spec.projectRef.name": p.name}))
	}
	if anew {
		env.Create(p, builder.Project(p.name).In(namespace).Repository(repositoryName).Build())
	}
}

// A finding that is decided about during the import must not be closed without regard to the
// decision.
func TestAFindingThatChangesBeforeItsClosingIsLeftOpen(t *testing.T) {
	p := newProject(t)
	results := numbered(3)
	p.imports(document(results...), commitA)
	decided := p.titled("problem 000").Name
	decide := during(func() { p.triage(decided, `{"spec":{"triage":{"userStatus":"active"}}}`) })
	s := p.importsAll(decide, collect(t, importer.Choices{}, document(results[2:]...)))[0]
	p.did("the import meanwhile", s, counts{Unchanged: 1, Closed: 1, LeftOpen: 1})
	if f := p.findings()[decided]; f.Spec.Closed != nil || f.Spec.Triage.UserStatus != v1alpha1.UserStatusActive {
		t.Errorf("closed %v, triage %s; want it open and active", f.Spec.Closed, f.Spec.Triage.UserStatus)
	}
	p.did("the next import", p.imports(document(results[2:]...), commitB), counts{Unchanged: 1, Closed: 1})
}

// A cluster's own rule about one finding does not hold up the others.
func TestAFindingThatMayNotBeClosedIsLeftOpen(t *testing.T) {
	p := newProject(t)
	results := numbered(4)
	p.imports(document(results...), commitA)
	held := p.titled("problem 000").Name
	refuse(t, "!has(object.spec.closed)", held)
	s := p.imports(document(results[3:]...), commitB)
	if s.Closed != 2 || s.LeftOpen != 1 || len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], held+" stays open") ||
		!strings.Contains(s.Warnings[0], "a legal hold") {
		t.Errorf("%+v, want 2 closed, 1 left open, and a warning about it", *s)
	}
}

// A policy that refuses everything must not look like success.
func TestAnImportFailsIfEveryChangeIsRefused(t *testing.T) {
	p := newProject(t)
	results := numbered(3)
	p.imports(document(results...), commitA)
	results[0].Level, results[1].Level = "note", "note"
	refuse(t, "false", p.titled(results[0].Message).Name, p.titled(results[1].Message).Name)
	_, err := p.tryImport(importer.Options{}, collect(t, importer.Choices{Commit: commitB}, document(results[:2]...)))
	harness.ErrorContains(t, "the import", err, "refuses every change", "a legal hold")
	if f := p.titled("problem 002"); f.Spec.Closed != nil {
		t.Error("a finding was closed")
	}
}

// A rule of the cluster that keeps findings out for good does not keep repaired ones open.
func TestFindingsAreClosedThoughAllNewOnesAreRefused(t *testing.T) {
	p := newProject(t)
	results := numbered(5)
	p.imports(document(results[:3]...), commitA)
	results[3].Message, results[4].Message = "kept out 3", "kept out 4"
	deny(t, "kept-out", nil, "!object.spec.details.title.startsWith('kept out')", metav1.StatusReasonInvalid, admissionregistrationv1.Create)
	probe := builder.Finding("probe").In(namespace).Project(repositoryName, p.name).Title("kept out").Build()
	harness.Eventually(t, func(g Gomega) {
		g.Expect(env.Client.Create(t.Context(), probe.DeepCopy(), client.DryRunAll)).To(MatchError(ContainSubstring("a legal hold")))
	})
	summaries, err := p.tryImport(importer.Options{}, collect(t, importer.Choices{Commit: commitB}, document(results[3:]...)))
	harness.Must(p, err)
	p.did("the repaired ones are closed", summaries[0], counts{Closed: 3, Skipped: 2})
}

// refuse makes a cluster administrator's admission policy for the updates of findings.
func refuse(t *testing.T, unless string, findings ...string) {
	t.Helper()
	deny(t, "hold-"+findings[0], findings, "object != null && "+unless, metav1.StatusReasonForbidden,
		admissionregistrationv1.Update, admissionregistrationv1.Delete)
	probe := builder.Finding(findings[0]).In(namespace).Build()
	harness.Eventually(t, func(g Gomega) {
		g.Expect(env.Client.Delete(t.Context(), probe, client.DryRunAll)).To(MatchError(ContainSubstring("a legal hold")))
	})
}

// deny makes a cluster administrator's admission policy for findings.
func deny(t *testing.T, name string, findings []string, unless string, reason metav1.StatusReason,
	operations ...admissionregistrationv1.OperationType) {
	t.Helper()
	env.Deny(t, name, admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
			ResourceNames: findings,
			RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: operations,
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{v1alpha1.GroupName}, APIVersions: []string{"*"}, Resources: []string{"findings"}},
			},
		}}},
		Validations: []admissionregistrationv1.Validation{{Expression: unless, Message: "a legal hold", Reason: &reason}},
	})
}

// A change of a finding's status by the controllers is no reason to leave it open.
func TestAFindingWhoseStatusIsWrittenBeforeItsClosingIsClosed(t *testing.T) {
	p := newProject(t)
	results := numbered(3)
	p.imports(document(results...), commitA)
	noted := p.titled("problem 000")
	note := during(func() {
		testenv.ChangeStatus(p, env, &noted, func(f *v1alpha1.Finding) { f.Status.State = v1alpha1.FindingStateOpen })
	})
	s := p.importsAll(note, collect(t, importer.Choices{}, document(results[2:]...)))[0]
	p.did("the import meanwhile", s, counts{Unchanged: 1, Closed: 2})
	p.wantState("the import meanwhile", 1, 2, 0)
}

// A create never overwrites an existing object, whoever created it: the import lists only findings
// of its tool.
func TestACreateLeavesAnObjectOfItsNameAlone(t *testing.T) {
	p := newProject(t)
	p.imports(document(numbered(1)...), commitA)
	name := p.titled("problem 000").Name
	other := p.findings()[name]
	harness.Must(p, env.Client.Delete(p.Context(), &other))
	foreign := builder.Finding(name).In(namespace).Build()
	foreign.Spec = v1alpha1.FindingSpec{RepositoryRef: other.Spec.RepositoryRef, ProjectRef: other.Spec.ProjectRef, Tool: "another",
		Details: v1alpha1.FindingDetails{Title: "by hand", Severity: v1alpha1.LevelLow}}
	env.Create(p, foreign)

	for scan, want := range []counts{{Created: 1}, {Unchanged: 1}} {
		p.did("the import of what somebody else has made", p.imports(document(numbered(1)...), commitA), want)
		if now := p.findings()[name]; now.ResourceVersion != foreign.ResourceVersion || p.titled("problem 000").Name == name {
			t.Errorf("import %d wrote the finding that somebody else has made: %+v", scan, now.Spec)
		}
	}
}

// A finding that is deleted just before it is closed is not created again.
func TestAFindingDeletedBeforeItsClosingStaysGone(t *testing.T) {
	p := newProject(t)
	results := numbered(3)
	p.imports(document(results...), commitA)
	deleted := p.titled("problem 000")
	remove := during(func() { harness.Must(p, env.Client.Delete(p.Context(), &deleted)) })
	s := p.importsAll(remove, collect(t, importer.Choices{}, document(results[2:]...)))[0]
	if _, there := p.findings()[deleted.Name]; there || s.Closed != 1 {
		t.Errorf("the deleted finding is there: %v; %+v, want 1 closed", there, *s)
	}
}

// A finding in a renamed file keeps its decision, and a dry run explains how the finding was
// recognised.
func TestAMovedFindingKeepsItsDecisionAndADryRunSaysWhy(t *testing.T) {
	p := newProject(t)
	results := numbered(3)
	p.imports(document(results...), commitA)
	muted := p.titled("problem 001")
	p.triage(muted.Name, `{"spec":{"triage":{"userStatus":"muted"}}}`)
	results[1].Path = "lib/file001.go"
	s := p.importsAll(importer.Options{DryRun: true}, collect(t, importer.Choices{}, document(results...)))[0]
	if len(s.Changes) != 1 || s.Changes[0].Because != "recognised by file moved: moved from src/file001.go; in doubt: found in another file, and nothing confirms the move" {
		t.Errorf("dry run: %+v, want one update that says from where it moved, and that one result alone confirms nothing", *s)
	}
	if s := p.imports(document(results...), commitB); s.Updated != 1 || s.Unchanged != 2 || s.Closed != 0 || s.Recognised["file moved"] != 1 {
		t.Errorf("%+v, want 1 updated and recognised, 2 unchanged", *s)
	}
	if f := p.findings()[muted.Name]; f.Spec.Details.Location.FilePath != "lib/file001.go" || f.Spec.Triage.UserStatus != v1alpha1.UserStatusMuted {
		t.Errorf("finding %s is at %s, %s; want it at its new place, muted", f.Name, f.Spec.Details.Location.FilePath, f.Spec.Triage.UserStatus)
	}
}
