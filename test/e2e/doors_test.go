package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// This is one test from the first start to the end of the last, because each start takes seconds.
func TestFindingsThroughBothDoorsAndAcrossRestarts(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	r := start(t, folder)
	rest := newRESTClient(r)

	t.Run("the environment file is the owner's alone", func(t *testing.T) { checkEnvironment(t, r) })
	t.Run("a real scan's findings are listed", func(t *testing.T) { checkFindings(t, rest) })

	ids := identities(rest.list(t, "/v1/findings", 1000))
	if len(ids) < 2 {
		t.Fatalf("the scan found %d findings; the tests need two", len(ids))
	}
	t.Run("every endpoint answers with something", func(t *testing.T) { checkEveryEndpoint(t, r, rest) })
	t.Run("a class is muted by a policy, as the README has it", func(t *testing.T) { checkPolicy(t, r) })
	t.Run("REST mutes, kubectl shows it", func(t *testing.T) { checkRESTToKubectl(t, r, rest, ids[0]) })
	t.Run("kubectl confirms, REST shows it", func(t *testing.T) { checkKubectlToREST(t, r, rest, ids[1]) })
	t.Run("a second run in the folder is refused", func(t *testing.T) { checkRefused(t, r) })

	t.Run("a repository that nobody wrote down comes with an upload, as the README has it", func(t *testing.T) { checkNewcomer(t, r, rest) })
	t.Run("what is uploaded later comes in muted", func(t *testing.T) { checkMutedByPolicy(t, r) })

	before := rest.list(t, "/v1/findings", 1000)
	reviews := rest.list(t, "/v1/reviews", 1000)
	announced := completedScans(t, r)
	pids := r.pids(t)
	if len(pids) != 5 {
		t.Errorf("the run has the children %v; want five", pids)
	}
	harness.Same(t, "exit code after Ctrl-C", 0, r.interrupt(t))
	r.checkGone(t, pids)
	if _, err := os.Stat(r.path("env")); !os.IsNotExist(err) {
		t.Errorf("the env file outlives the run: %v", err)
	}

	again := start(t, folder)
	if again.env["FINDINGS_API_KEY"] != r.env["FINDINGS_API_KEY"] {
		t.Error("a restart made another token; clients keep theirs")
	}
	harness.Same(t, "findings after a restart and a scan with the same results", before, newRESTClient(again).list(t, "/v1/findings", 1000))
	harness.Same(t, "reviews after a restart that records the same ones", reviews, newRESTClient(again).list(t, "/v1/reviews", 1000))

	t.Run("what was received before the restart is verified after it", func(t *testing.T) {
		checkWebhook(t, again, newRESTClient(again))
	})
	t.Run("the receiver listens at its new port before the scans", func(t *testing.T) {
		harness.Eventually(t, func(g Gomega) {
			scans := completedScans(t, again)
			maps.DeleteFunc(scans, func(name string, _ v1alpha1.WebhookDelivery) bool { _, known := announced[name]; return known })
			g.Expect(scans).To(HaveLen(2))
			for _, scan := range scans {
				g.Expect(scan.Status.Attempts).To(HaveLen(1))
				g.Expect(scan.Status.Phase).To(Equal(v1alpha1.WebhookDeliveryDelivered))
			}
		})
	})
	// Far more requests per minute than a person sends.
	again.kubectl(t, "patch", "apikey", "sample", "--namespace", again.env["FINDINGS_NAMESPACE"], "--type=merge",
		"--patch", `{"spec":{"rateLimit":{"requestsPerMinute":1000000}}}`)
	t.Run("an upload of a pull request that is killed is finished by repeating it", func(t *testing.T) {
		checkKilledUpload(t, again, newRESTClient(again))
	})

	pids = again.pids(t)
	again.kill()
	again.checkGone(t, pids)
}

func checkEnvironment(t *testing.T, r *run) {
	info, err := os.Stat(r.path("env"))
	harness.Must(t, err)
	harness.Same(t, "mode of the env file, which holds a key", os.FileMode(0o600), info.Mode().Perm())
	want := []string{"FINDINGS_API_KEY", "FINDINGS_NAMESPACE", "FINDINGS_URL", "KUBECONFIG"}
	harness.Same(t, "the env file's names", want, slices.Sorted(maps.Keys(r.env)))
	// The terminal is written after the file.
	eventually(t, "the terminal shows a command that lists the findings with the sample's key", func() bool {
		return strings.Contains(r.output.String(), `"Authorization: Bearer `+r.env["FINDINGS_API_KEY"]+`" "`+r.env["FINDINGS_URL"]+`/v1/findings`)
	})
	checkNoLogHolds(t, r, r.env["FINDINGS_API_KEY"])
}

func checkNoLogHolds(t *testing.T, r *run, secret string) {
	t.Helper()
	logs, err := filepath.Glob(r.path("logs", "*"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("there are no logs: %v", err)
	}
	for _, log := range logs {
		content := harness.File(t, log)
		if strings.Contains(content, secret) {
			t.Errorf("%s holds the API key's token", log)
		}
	}
}

func checkFindings(t *testing.T, rest *restClient) {
	findings := rest.list(t, "/v1/findings", 1000)
	if len(findings) < 8 {
		t.Fatalf("GET /v1/findings lists %d findings; gosec finds more in the sample service", len(findings))
	}
	files := map[string]bool{}
	listed := map[string]bool{}
	for _, finding := range findings {
		listed[finding.text("id")] = true
		harness.Same(t, finding.text("id")+" before anyone triaged it", "open open", finding.text("status")+" "+finding.text("user_status"))
		if location, ok := finding["location"].(map[string]any); ok {
			files[item(location).text("file_path")] = true
		}
	}
	if len(files) < 4 {
		t.Errorf("the findings are in the files %v; the sample service has weaknesses in more", files)
	}
	for _, id := range idsInREADME(t) {
		if !listed[id] {
			t.Errorf("the README shows %s, and the list does not", id)
		}
	}
}

func idsInREADME(t *testing.T) []string {
	t.Helper()
	content := harness.RepositoryFile(t, "README.md")
	ids := regexp.MustCompile(`\bf-[a-z2-7]{26}\b`).FindAllString(content, -1)
	slices.Sort(ids)
	return slices.Compact(ids)
}

func checkRESTToKubectl(t *testing.T, r *run, rest *restClient, id string) {
	before := rest.find(t, id)
	answer := rest.patch(t, "/v1/findings/"+id, map[string]string{"user_status": "muted"})
	harness.Same(t, "status and user_status in the answer", "open_muted muted", answer.text("status")+" "+answer.text("user_status"))
	finding := r.finding(t, id)
	if got := finding.Spec.Triage; got.UserStatus != v1alpha1.UserStatusMuted || got.By != "apikey/sample" {
		t.Errorf("kubectl shows the triage %+v; want muted by apikey/sample", got)
	}
	harness.Contains(t, "kubectl get findings", r.kubectl(t, "get", "findings", "--namespace", r.env["FINDINGS_NAMESPACE"], id), "muted")
	r.checkAgreement(t, rest, id, before)
}

func checkKubectlToREST(t *testing.T, r *run, rest *restClient, id string) {
	before := rest.find(t, id)
	r.kubectl(t, "patch", "finding", id, "--namespace", r.env["FINDINGS_NAMESPACE"],
		"--type=merge", "--patch", `{"spec":{"triage":{"userStatus":"active","comments":"seen by hand"}}}`)
	patched := time.Now()
	eventually(t, "REST shows what kubectl wrote", func() bool {
		return rest.find(t, id).text("user_status") == "active"
	})
	t.Logf("REST showed the change after %s", time.Since(patched).Round(time.Millisecond))
	harness.Same(t, "signer of the triage: the user of the kubeconfig", "admin", r.finding(t, id).Spec.Triage.By)
	r.checkAgreement(t, rest, id, before)
}

// checkAgreement waits until the controllers have seen a finding's last change, then compares
// what the two doors say of it.
func (r *run) checkAgreement(t *testing.T, rest *restClient, id string, before item) {
	t.Helper()
	var finding v1alpha1.Finding
	eventually(t, "the controllers see the change", func() bool {
		finding = r.finding(t, id)
		return findingstate.IsRecorded(&finding)
	})
	var now item
	want := findingstate.Recorded(&finding).Status.UpdatedAt.UTC().Format(time.RFC3339)
	eventually(t, "both doors show one updated_at", func() bool {
		now = rest.find(t, id)
		return now.text("updated_at") == want
	})
	if now.text("updated_at") < before.text("updated_at") {
		t.Errorf("updated_at went back from %s to %s", before.text("updated_at"), now.text("updated_at"))
	}
	harness.Same(t, "the state that REST reports, compared with kubectl", string(finding.Status.State), now.text("status"))
}

func checkRefused(t *testing.T, r *run) {
	second := launch(t, r.folder, freePort(t))
	harness.Same(t, "exit code of the second run", 1, second.waitForEnd(t))
	harness.Contains(t, "the refusal", second.output.String(), "RUN_DIR=")
	harness.NoError(t, "the first run, after the second", syscall.Kill(r.process.Process.Pid, 0))
	_, err := os.Stat(r.path("env"))
	harness.NoError(t, "the first run's env file, after the second", err)
}

// finding reads a Finding by kubectl.
func (r *run) finding(t *testing.T, name string) v1alpha1.Finding {
	t.Helper()
	var finding v1alpha1.Finding
	out := r.kubectl(t, "get", "finding", name, "--namespace", r.env["FINDINGS_NAMESPACE"], "--output=json")
	if err := json.Unmarshal([]byte(out), &finding); err != nil {
		t.Fatalf("kubectl printed no Finding: %v\n%s", err, out)
	}
	return finding
}

func identities(findings []item) []string {
	ids := make([]string, 0, len(findings))
	for _, finding := range findings {
		ids = append(ids, finding.text("id"))
	}
	return ids
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	harness.Within(t, settleTimeout, func(g Gomega) { g.Expect(condition()).To(BeTrue(), what) })
}
