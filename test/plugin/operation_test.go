package plugin_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// commits reports whether a request commits an operation.
func commits(r *http.Request) bool {
	return r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/triageoperations/")
}

// beforeCommit returns a gateway that calls do once, before an operation is committed.
func beforeCommit(do func()) *gateway {
	do = sync.OnceFunc(do)
	return &gateway{before: func(_ http.ResponseWriter, r *http.Request) bool {
		if commits(r) {
			do()
		}
		return false
	}}
}

func (o *organization) operations() []v1alpha1.TriageOperation {
	o.Helper()
	return testenv.List(o, NewWithT(o), env, &v1alpha1.TriageOperationList{}, client.InNamespace(o.namespace)).Items
}

func (o *organization) hasNoOperations() {
	o.Helper()
	for _, operation := range o.operations() {
		o.Errorf("the operation %s is left behind: %+v", operation.Name, operation.Status)
	}
}

// decisions returns the decisions of all findings by name, without their authors.
func (o *organization) decisions() map[string]v1alpha1.FindingTriage {
	o.Helper()
	list := testenv.List(o, NewWithT(o), env, &v1alpha1.FindingList{}, client.InNamespace(o.namespace))
	decisions := map[string]v1alpha1.FindingTriage{}
	for i := range list.Items {
		list.Items[i].Spec.Triage.By = ""
		decisions[list.Items[i].Name] = list.Items[i].Spec.Triage
	}
	return decisions
}

func TestAnOperationDecidesAndUndoesWhatMatches(t *testing.T) {
	o := newOrganization(t, "operation").withMany(4)
	triager := o.member(testenv.Triager)
	me := testenv.ServiceAccountUsername(o.namespace, "some-triager")
	triager.findings("triage", "finding.appsec.dev/f-0001", "--confirm", "--comment", "real").Wants("1 confirmed")
	triager.findings("triage", "f-0002", "--mute", "--reason", "duplicate", "--expires-in", "720h").Wants("1 muted")
	before := o.decisions()

	a := triager.findings("triage", "--severity", "low", "--mute", "--reason", "accepted-risk", "--comment", "all", "--yes").
		Wants("muted, with other terms", "already decided by "+me+" (2)", "findings: 4 muted, 0 unchanged, 0 failed", "undo with: kubectl findings triage --undo ")
	name := regexp.MustCompile(`--undo (mute-[a-z0-9]{6}) -n ` + o.namespace + "\n").FindStringSubmatch(a.Stdout)
	operations := o.operations()
	if name == nil || len(operations) != 1 || operations[0].Name != name[1] {
		t.Fatalf("%d operations:\n%s", len(operations), a.Stdout)
	}
	if spec := operations[0].Spec; spec.By != me || spec.CommittedBy != me {
		t.Errorf("made by %q, committed by %q", spec.By, spec.CommittedBy)
	}
	want := v1alpha1.FindingTriage{UserStatus: "muted", Reason: v1alpha1.DecisionAcceptedRisk, Comments: "all", By: "operation/" + name[1], Basis: "rated=low"}
	harness.Same(t, "triage", want, o.finding("f-0000").Spec.Triage)

	triager.findings("triage", "f-0003", "--confirm").Wants("1 confirmed")
	mine := o.decisions()["f-0003"]
	triager.findings("triage", "--undo", name[1]).Fails("refusing to undo "+name[1]+" for 3 findings", "--yes")
	triager.findings("triage", "--undo", name[1], "--dry-run").Fails("dry run (client): 3 restored, 0 unchanged, 1 conflicted, 0 failed", "1 stay unchanged")
	triager.findings("__complete", "triage", "--undo", "").Wants(name[1]+"\tmute, Completed, 4 changed", ":4\n")
	triager.findings("triage", "--undo", "mute-").Fails("Did you mean " + name[1] + "?")
	harness.Same(t, "operations, and nobody has agreed to another than the first", 1, len(o.operations()))
	triager.findings("triage", "--undo", name[1], "--yes").
		Fails("f-0001", "active", "1 stay unchanged", "conflicted f-0003: ", "since the undone operation", "3 restored, 0 unchanged, 1 conflicted, 0 failed", "--undo undo-")
	before["f-0003"] = mine
	harness.Same(t, "the decisions after the undo", before, o.decisions())
	a = triager.findings("ops", "--no-headers").Wants("undo "+name[1], "Completed", me)
	harness.Same(t, "operations that are listed", 2, strings.Count(a.Stdout, "\n"))
	triager.findings("ops", "-o", "name").Wants("triageoperation.appsec.dev/" + name[1] + "\n")
	a = triager.findings("triage", "--undo", name[1], "--yes", "-o", "json").Fails(name[1]+" was undone already by undo-", "4 of 4 findings conflicted")
	if !json.Valid([]byte(a.Stdout)) || !strings.Contains(a.Stdout, `"f-0003"`) {
		t.Errorf("the second undo prints %s", a.Stdout)
	}
}

// Whoever may create operations could have another set decided about in the name of the one who confirms.
func TestOnlyTheOperationThatWasShownIsCommitted(t *testing.T) {
	o := newOrganization(t, "operation-replaced").withMany(3)
	g := beforeCommit(func() {
		shown := &o.operations()[0]
		other := builder.TriageOperation(shown.Name, "").In(o.namespace).Spec(func(s *v1alpha1.TriageOperationSpec) {
			s.Select = &v1alpha1.FindingSelection{IDs: []v1alpha1.ResourceName{"f-0001"}}
		}).Build()
		harness.Must(o, env.Client.Delete(t.Context(), shown))
		env.Create(t, other)
	})
	g.through(o, o.token(testenv.Triager)).findings("triage", "--severity", "low", "--mute", "--yes", "--timeout", "1m").
		Fails("another one was created under its name, which stays\nThis command decided nothing: run it again")
	left := o.operations()
	if len(left) != 1 || left[0].Spec.Commit {
		t.Errorf("the other operation is deleted or committed: %+v", left)
	}
	harness.Same(t, "the muted findings", 0, o.withVerdict(v1alpha1.UserStatusMuted))
}

func TestAnInterruptedWaitLeavesTheOperationAtWork(t *testing.T) {
	o := newOrganization(t, "operation-interrupted").withMany(3)
	committed := make(chan struct{}, 1)
	g := &gateway{before: func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/triageoperations") && len(committed) > 0 {
			<-r.Context().Done() // the answer never arrives
			return true
		}
		if commits(r) {
			committed <- struct{}{}
		}
		return false
	}}
	cmd := g.through(o, o.token(testenv.Triager)).direct("triage", "--severity", "low", "--mute", "--yes")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	harness.Must(o, cmd.Start())
	harness.Eventually(t, func(g Gomega) { g.Expect(o.withVerdict(v1alpha1.UserStatusMuted)).To(Equal(3)) })
	harness.Must(o, cmd.Process.Signal(syscall.SIGINT))
	if err := cmd.Wait(); err == nil {
		t.Error("an interrupted wait succeeded")
	}
	name := o.operations()[0].Name
	harness.Contains(t, "it says", stderr.String(), "operation "+name+": interrupted", "The operation continues in the cluster.",
		"kubectl get triageoperation "+name+" -n "+o.namespace, "kubectl findings triage --undo "+name)
}

func TestAnInterruptedPreviewLeavesNothing(t *testing.T) {
	o := newOrganization(t, "preview-interrupted").withMany(1)
	// A child inherits that a signal is ignored, as under nohup, but not that it is caught.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(hangups) })
	for _, interrupt := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP} {
		var cmd *exec.Cmd
		made, started := make(chan struct{}), make(chan struct{})
		var asked atomic.Bool
		g := &gateway{before: func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/triageoperations/") {
				return false
			}
			if r.Method == http.MethodDelete && interrupt == syscall.SIGHUP {
				<-started
				_ = cmd.Process.Signal(interrupt) // when a terminal closes, the shell sends it too
			}
			if r.Method != http.MethodGet || asked.Swap(true) {
				return false
			}
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush() // an answer begins, and never ends
			close(made)
			<-r.Context().Done()
			return true
		}}
		cmd = g.through(o, o.token(testenv.Triager)).direct("triage", "--severity", "low", "--mute", "--yes")
		var stderr strings.Builder
		cmd.Stderr = &stderr
		harness.Must(o, cmd.Start())
		close(started)
		<-made
		harness.Must(o, cmd.Process.Signal(interrupt))
		if err := cmd.Wait(); err == nil || !strings.Contains(stderr.String(), "interrupted; nothing was written") {
			t.Errorf("%s: %v:\n%s", interrupt, err, stderr.String())
		}
		harness.Lacks(t, "the client library writes no lines of its own", stderr.String(), "request.go")
		o.hasNoOperations()
	}
	harness.Same(t, "the muted findings", 0, o.withVerdict(v1alpha1.UserStatusMuted))
}

// As with `2>&1 | head`.
func TestAPreviewThatNobodyReadsLeavesNothing(t *testing.T) {
	o := newOrganization(t, "preview-unread").withMany(3)
	triager := o.member(testenv.Triager)
	for reason, more := range map[string][]string{"a dry run": {"--dry-run"}, "a decision": {"--yes"}} {
		cmd := triager.direct(append([]string{"triage", "--severity", "low", "--mute"}, more...)...)
		cmd.Stdout, cmd.Stderr = closedPipe(t), closedPipe(t)
		_ = cmd.Run()
		harness.Same(t, reason+": exit code", exitClosedPipe, cmd.ProcessState.ExitCode())
		o.hasNoOperations()
	}
	harness.Same(t, "the muted findings", 0, o.withVerdict(v1alpha1.UserStatusMuted))
}

func TestAClusterWithoutOperationsNeedsAnUpgrade(t *testing.T) {
	o := newOrganization(t, "operation-unknown").withMany(1)
	g := &gateway{before: func(_ http.ResponseWriter, r *http.Request) bool {
		r.URL.Path = strings.Replace(r.URL.Path, "/triageoperations", "/unheardof", 1)
		return false
	}}
	old := g.through(o, o.token(owner))
	old.findings("triage", "--severity", "low", "--mute", "--yes").Fails("knows no triage operations", "upgrade")
	old.findings("triage", "--undo", "mute-abcdef", "--yes").Fails("knows no triage operations", "upgrade")
	old.findings("operations").Fails("knows no triage operations", "upgrade")
	harness.Same(t, "the muted findings", 0, o.withVerdict(v1alpha1.UserStatusMuted))
	old.findings("triage", "f-0000", "--mute").Wants("1 muted")
}

// The controllers select by the flags' filters, which go beyond what the API server can select.
func TestAnOperationChoosesByFiltersOfItsOwn(t *testing.T) {
	o := newOrganization(t, "operation-filters")
	o.has(
		builder.Finding("f-1").Project("shop", "web").Title("Path traversal"), builder.Finding("f-2").Title("Path traversal"),
		builder.Finding("f-3").Project("shop", "web"),
	)
	triager := o.member(testenv.Triager)
	a := triager.findings("triage", "--project", "web", "--text", "path", "--confirm", "--yes", "-q", "-o", "json").Wants()
	summary := harness.Decoded[struct{ Done, Unchanged []string }](o, []byte(a.Stdout))
	if diff := cmp.Diff([]string{"f-1"}, summary.Done); diff != "" || len(summary.Unchanged) != 0 {
		t.Errorf("summary:\n%s", a.Stdout)
	}
	triager.findings("triage", "--project", "web", "--confirm", "--yes", "-o", "name").Wants("finding.appsec.dev/f-3\n")
	harness.Same(t, "operations", 2, len(o.operations()))
	triager.findings("triage", "--project", "web", "--confirm", "--yes").Wants("0 confirmed, 2 unchanged, 0 failed")
	harness.Same(t, "operations: one that changes nothing is not kept", 2, len(o.operations()))
	harness.Same(t, "f-2, which does not match", v1alpha1.UserStatusOpen, o.finding("f-2").Spec.Triage.UserStatus)
}

// A decision that has expired counts as open, for a list and for an operation.
func TestADecisionThatHasEndedIsOpen(t *testing.T) {
	o := newOrganization(t, "operation-ended")
	end := v1alpha1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	o.has(builder.Finding("f-ended").Triage(v1alpha1.UserStatusMuted, "for a while").Mutate(func(f *v1alpha1.Finding) {
		f.Spec.Triage.ExpiresAt = &end
	}), builder.Finding("f-muted").Triage(v1alpha1.UserStatusMuted, "for ever"))
	o.observed("f-ended", func(s *v1alpha1.FindingStatus) { s.EndedAt = &end })
	triager := o.member(testenv.Triager)
	for status, want := range map[string]string{"open": "f-ended", "muted": "f-muted"} {
		a := triager.findings("list", "--user-status", status, "-o", "name").Wants()
		harness.Same(t, status+" are", "finding.appsec.dev/"+want+"\n", a.Stdout)
	}
	triager.findings("triage", "--user-status", "open", "--mute", "--yes").Wants("open, ended", "1 muted, 0 unchanged")
	if got := o.finding("f-ended").Spec.Triage; got.ExpiresAt != nil || got.Comments != "for a while" {
		t.Errorf("triage %+v", got)
	}
}
