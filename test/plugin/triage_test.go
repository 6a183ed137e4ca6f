package plugin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/needs"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestADecisionIsSignedByTheAPIServer(t *testing.T) {
	o := newOrganization(t, "signed").withMany(2)
	g := &gateway{}
	triager := g.through(o, o.token(testenv.Triager))

	triager.findings("triage", "f-0000", "--mute", "--comment", "Only tests").Wants("findings: 1 muted, 0 unchanged, 0 failed")
	want := v1alpha1.FindingTriage{
		UserStatus: v1alpha1.UserStatusMuted, Comments: "Only tests",
		By: testenv.ServiceAccountUsername(o.namespace, "some-triager"), Basis: "rated=low",
	}
	harness.Same(t, "triage", want, o.finding("f-0000").Spec.Triage)
	for _, patch := range g.sent(http.MethodPatch, "/findings/f-0000") {
		if strings.Contains(patch.body, `"by"`) || !strings.Contains(patch.body, `"resourceVersion"`) {
			t.Errorf("it sends %s, and must not sign for others nor overwrite blindly", patch.body)
		}
	}

	triager.findings("triage", "f-0000", "f-0001", "--confirm").Wants("2 confirmed")
	want.UserStatus = v1alpha1.UserStatusActive // a comment that is not given stays
	harness.Same(t, "triage", want, o.finding("f-0000").Spec.Triage)
	triager.findings("triage", "f-0000", "--comment", "").Wants("1 commented")
	want.Comments = ""
	harness.Same(t, "triage", want, o.finding("f-0000").Spec.Triage)
	triager.findings("triage", "f-0000", "--reopen").Wants("1 reopened")

	before := o.versions()
	triager.findings("triage", "f-0000", "--reopen").Wants("0 reopened, 1 unchanged")
	harness.Same(t, "a decision that changes nothing was written", before, o.versions())
}

func TestAViewerIsToldWhatItTakes(t *testing.T) {
	o := newOrganization(t, "viewer").withMany(3)
	before := o.versions()
	viewer := o.member(testenv.Viewer)
	viewer.findings("triage", "f-0000", "--mute").Fails("forbidden", "findings-triager", "kubectl create rolebinding", "1 of 1 findings failed")
	viewer.findings("triage", "--severity", "low", "--mute", "--yes").Fails("forbidden", "findings-triager")
	viewer.findings("triage", "f-0000", "--mute", "--dry-run=server").Fails("forbidden", "findings-triager")
	harness.Same(t, "something was written", before, o.versions())
}

func TestADryRunWritesNothing(t *testing.T) {
	o := newOrganization(t, "dry-run").withMany(30)
	before := o.versions()
	triager := o.member(testenv.Triager)
	for _, arguments := range [][]string{
		{"--severity", "low", "--dry-run"},
		{"--severity", "low", "--dry-run=client"},
		{"--severity", "low", "--dry-run=server"},
	} {
		a := triager.findings(append([]string{"triage", "--mute"}, arguments...)...).
			Wants("BECOMES", "f-0019", "... and 10 more", "30 muted, 0 unchanged, 0 failed", "dry run")
		harness.Lacks(t, "the preview, which has a bound", a.Stderr, "f-0020")
	}
	triager.findings("triage", "f-0001", "--mute", "--dry-run").Wants("1 muted", "dry run (client)")
	triager.findings("triage", "f-0001", "--mute", "--dry-run=server").Wants("1 muted", "dry run (server)")
	harness.Same(t, "a dry run wrote", before, o.versions())
	o.hasNoOperations()
}

func TestWithoutATerminalManyTakeAYes(t *testing.T) {
	o := newOrganization(t, "no-terminal").withMany(3)
	before := o.versions()
	triager := o.member(testenv.Triager)
	refused := triager.command("triage", "--severity", "low", "--mute")
	refused.Stdin = strings.NewReader("y\n")
	harness.Run(t, refused).Fails("refusing to mute 3 findings in namespace "+o.namespace, "--yes")
	harness.Same(t, "it wrote all the same", before, o.versions())
	o.hasNoOperations()
	triager.findings("triage", "f-0000", "--mute").Wants("1 muted") // naming it is an explicit choice
	triager.findings("triage", "--severity", "low", "--mute", "--yes").Wants("2 muted, 1 unchanged, 0 failed")
	triager.findings("triage", "--class", "nowhere", "--mute").
		Wants("nothing matches the filters", `no finding of any state has the class "nowhere"`, "0 muted, 0 unchanged")
	triager.findings("triage", "--project", "nowhere", "--mute", "--yes").Fails(`projects.appsec.dev "nowhere" not found`)
}

func TestAConflictIsTriedAgain(t *testing.T) {
	o := newOrganization(t, "conflict").withMany(2)
	var once sync.Once
	g := &gateway{before: func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "f-0000") {
			// Somebody else writes the finding between the read and the write.
			once.Do(func() { o.changed("f-0000", func(f *v1alpha1.Finding) { f.Labels = map[string]string{"team": "web"} }) })
		}
		return false
	}}
	triager := g.through(o, o.token(testenv.Triager))
	triager.findings("triage", "f-0000", "f-0001", "--mute").Wants("2 muted, 0 unchanged, 0 failed")
	patches := g.sent(http.MethodPatch, "/findings/f-0000")
	harness.Same(t, "patches of the finding, with a second one after the conflict", 2, len(patches))
	harness.Same(t, "the muted findings", 2, o.withVerdict(v1alpha1.UserStatusMuted))
}

// changed writes a finding as an administrator would.
func (o *organization) changed(name string, change func(*v1alpha1.Finding)) {
	f := o.finding(name)
	change(f)
	harness.NoError(o, "change "+name, env.Client.Update(o.Context(), f))
}

// A user who has agreed to mute undecided findings has not agreed to overrule somebody else's
// decision.
func TestADecisionMadeInTheMeantimeStays(t *testing.T) {
	o := newOrganization(t, "meantime").withMany(3)
	g := beforeCommit(func() {
		o.changed("f-0001", func(f *v1alpha1.Finding) { f.Spec.Triage.UserStatus = v1alpha1.UserStatusActive })
	})
	triager := g.through(o, o.token(testenv.Triager))
	a := triager.findings("triage", "--user-status", "open", "--mute", "--yes", "-o", "json").Fails("1 of 3 findings conflicted", "admin decided about it in the meantime")
	var summary struct {
		Operation  string
		Done       []string
		Conflicted []struct{ Name, Reason string }
	}
	if err := json.Unmarshal([]byte(a.Stdout), &summary); err != nil {
		t.Fatalf("%v:\n%s", err, a.Stdout)
	}
	if diff := cmp.Diff([]string{"f-0000", "f-0002"}, summary.Done); diff != "" || len(summary.Conflicted) != 1 || summary.Conflicted[0].Name != "f-0001" {
		t.Errorf("summary:\n%s", a.Stdout)
	}
	harness.Same(t, "the other's decision", v1alpha1.UserStatusActive, o.finding("f-0001").Spec.Triage.UserStatus)
	harness.Same(t, "it is decided by", "operation/"+summary.Operation, o.finding("f-0000").Spec.Triage.By)
}

func TestSomeMayFail(t *testing.T) {
	o := newOrganization(t, "some-fail").withMany(2)
	triager := o.member(testenv.Triager)
	triager.findings("triage", "f-0000", "f-000", "f-0001", "--mute").
		Fails("failed f-000: ", "2 muted, 0 unchanged, 1 failed", "1 of 3 findings failed", "Did you mean f-0000 or f-0001?")
	harness.Same(t, "the muted findings", 2, o.withVerdict(v1alpha1.UserStatusMuted))
	a := triager.findings("triage", "f-0000", "f-0001", "--reopen", "-o", "name").Wants()
	harness.Same(t, "-o name", "finding.appsec.dev/f-0000\nfinding.appsec.dev/f-0001\n", a.Stdout)
}

func TestABusyAPIServerIsAskedAgain(t *testing.T) {
	o := newOrganization(t, "busy").withMany(3)
	var mu sync.Mutex
	refused := map[string]bool{}
	g := &gateway{before: func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if r.Method == http.MethodGet || refused[r.Method+r.URL.Path] {
			return false
		}
		refused[r.Method+r.URL.Path] = true
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429}`)
		return true
	}}
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(refused)
	}
	triager := g.through(o, o.token(testenv.Triager))
	triager.findings("triage", "f-0000", "f-0001", "f-0002", "--mute").Wants("3 muted, 0 unchanged, 0 failed")
	harness.Same(t, "the findings that were refused at first", 3, count())
	triager.findings("triage", "--severity", "low", "--confirm", "--yes").Wants("3 confirmed, 0 unchanged, 0 failed")
	harness.Same(t, "the writes refused at first: of each finding, of the operation and of its commit", 5, count())
}

func TestAnInterruptedTriageSaysHowFarItCame(t *testing.T) {
	const n, before = 40, 10
	o := newOrganization(t, "interrupted").withMany(n)
	// The write after the first ten is held until the signal is sent: it is completed, and not all others are begun.
	var writes atomic.Int32
	held, interrupted := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(interrupted) })
	defer release()
	g := &gateway{before: func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch && writes.Add(1) == before+1 {
			close(held)
			<-interrupted
		}
		return false
	}}
	triager := g.through(o, o.token(testenv.Triager))
	arguments := []string{"triage", "--mute", "--concurrency", "1", "-o", "json"}
	for name := range o.versions() {
		arguments = append(arguments, name)
	}
	cmd := triager.direct(arguments...) // kubectl would not receive the signal
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	harness.Must(o, cmd.Start())
	NewWithT(t).Eventually(held).WithTimeout(harness.Patience).Should(BeClosed())
	harness.Must(o, cmd.Process.Signal(syscall.SIGINT))
	release()
	if err := cmd.Wait(); err == nil {
		t.Fatalf("an interrupted triage succeeded:\n%s", stdout.String())
	}
	summary := harness.Decoded[struct{ Done, NotTried []string }](o, []byte(stdout.String()))
	muted := o.withVerdict(v1alpha1.UserStatusMuted)
	if len(summary.Done) != muted || len(summary.NotTried) != n-muted || muted <= before || muted == n {
		t.Errorf("%d are muted; it says %d done, %d not tried", muted, len(summary.Done), len(summary.NotTried))
	}
	harness.Contains(t, "it says", stderr.String(), fmt.Sprintf("interrupted after %d of %d findings", muted, n))
	triager.findings("triage", "--user-status", "open", "--mute", "--yes").Wants(fmt.Sprintf("%d muted, 0 unchanged, 0 failed", n-muted))
}

// onTerminal runs the command on a terminal, types the answer once it is asked for, and returns
// everything that the terminal shows.
func (p *person) onTerminal(cmd *exec.Cmd, typed string) string {
	p.Helper()
	terminal, program := openTerminal(p.T)
	onTerminal(cmd, program)
	harness.Must(p, cmd.Start())
	_ = program.Close() // reading ends when the command does
	var screen strings.Builder
	buffer := make([]byte, 4096)
	for {
		n, err := terminal.Read(buffer)
		screen.Write(buffer[:n])
		if err != nil {
			_ = cmd.Wait()
			return screen.String()
		}
		if typed != "" && strings.Contains(screen.String(), "[y/N]") {
			_, err := terminal.WriteString(typed)
			harness.Must(p, err)
			typed = ""
		}
	}
}

func TestTheAnswerIsNoUnlessItIsYes(t *testing.T) {
	o := newOrganization(t, "terminal").withMany(3)
	triager := o.member(testenv.Triager)
	before := o.versions()
	for name, typed := range map[string]string{"no": "n\n", "end of input": "\x04", "Ctrl-C": "\x03"} {
		cmd := triager.direct("triage", "--severity", "low", "--mute")
		screen := triager.onTerminal(cmd, typed)
		harness.Contains(t, name+": the terminal", screen, "Mute 3 findings in namespace "+o.namespace+"? [y/N]", "nothing was written")
	}
	harness.Same(t, "it wrote all the same", before, o.versions())
	o.hasNoOperations()
	cmd := triager.direct("triage", "--severity", "low", "--mute")
	screen := triager.onTerminal(cmd, "y\n")
	if n := o.withVerdict(v1alpha1.UserStatusMuted); n != 3 || cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("after a yes %d findings are muted, want 3:\n%s", n, screen)
	}
}

// A shell ends a loop only if the command in it has ended by the signal itself.
func TestCtrlCEndsTheLoopOfAShell(t *testing.T) {
	o := newOrganization(t, "terminal-loop").withMany(3)
	triager := o.member(testenv.Triager)
	loop := exec.CommandContext(t.Context(), needs.Program(t, "bash", "bash"), "-c",
		"for severity in low medium; do kubectl-findings triage --severity $severity --mute; done; echo next command")
	screen := triager.onTerminal(triager.equip(loop), "\x03")
	harness.Contains(t, "the terminal", screen, "Mute 3 findings", "interrupted; nothing was written")
	harness.Lacks(t, "the terminal", screen, "nothing matches the filters", "next command")
}

// A finding that is deleted meanwhile is reported as a separate failure.
func TestAFindingThatGoesIsNamed(t *testing.T) {
	o := newOrganization(t, "gone").withMany(3)
	g := beforeCommit(func() {
		gone := builder.Finding("f-0002").In(o.namespace).Build()
		harness.NoError(o, "delete f-0002", env.Client.Delete(o.Context(), gone, client.GracePeriodSeconds(0)))
	})
	g.through(o, o.token(testenv.Triager)).findings("triage", "--severity", "low", "--mute", "--yes").
		Fails("failed f-0002: the finding no longer exists", "2 muted, 0 unchanged, 1 failed")
}

func TestADecisionIsGivenAReasonAndAnEnd(t *testing.T) {
	o := newOrganization(t, "grounds").withMany(2)
	triager := o.member(testenv.Triager)
	triager.findings("triage", "f-0000", "f-0001", "--mute", "--reason", "accepted-risk", "--expires-in", "720h").Wants("2 muted")
	want := o.finding("f-0000").Spec.Triage
	if want.Reason != v1alpha1.DecisionAcceptedRisk || want.ExpiresAt == nil {
		t.Errorf("triage %+v", want)
	}
	triager.findings("triage", "f-0000", "--mute", "--expires-at", "none").Wants("1 muted")
	want.ExpiresAt = nil
	harness.Same(t, "triage without an end", want, o.finding("f-0000").Spec.Triage)
	triager.findings("triage", "f-0001", "--confirm").Wants("1 confirmed")
	want.UserStatus, want.Reason = v1alpha1.UserStatusActive, "" // another decision comes without reason and end
	harness.Same(t, "triage", want, o.finding("f-0001").Spec.Triage)
	triager.findings("triage", "f-0001", "--confirm", "--reason", "accepted-risk", "--expires-in", "720h").Wants("1 confirmed")
	o.observed("f-0001", func(s *v1alpha1.FindingStatus) { s.EndedAt = o.finding("f-0001").Spec.Triage.ExpiresAt })
	triager.findings("triage", "f-0001", "--mute", "--reason", "accepted-risk").Wants("1 muted")
	want.UserStatus, want.Reason = v1alpha1.UserStatusMuted, v1alpha1.DecisionAcceptedRisk // given, though the ended decision had the same
	harness.Same(t, "triage after the end", want, o.finding("f-0001").Spec.Triage)
}
