package e2e

import (
	"os/exec"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// The instructions that the terminal shows without samples are followed here exactly.
func TestWithoutSamplesTheTerminalSaysHowToBegin(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), "SAMPLES=false")
	if key, there := r.env["FINDINGS_API_KEY"]; there || len(r.env) != 3 {
		t.Errorf("the env file holds the key %q and %d names; want no key and three names", key, len(r.env))
	}
	harness.Same(t, "organizations", "", r.kubectl(t, "get", "organizations", "--output=name"))
	_, said, _ := strings.Cut(r.output.String(), "with an API key:\n")
	steps, _, found := strings.Cut(said, "  kubectl get appsec")
	if !found {
		t.Fatalf("the terminal says no steps:\n%s", r.output)
	}
	shell := exec.CommandContext(t.Context(), "/bin/bash", "-euc", steps+"\necho; echo $FINDINGS_API_KEY")
	shell.Dir = harness.Root()
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("the steps failed: %v\n%s\n%s", err, steps, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	r.env["FINDINGS_API_KEY"] = lines[len(lines)-1]
	harness.Within(t, settleTimeout, func(g Gomega) {
		answer, err := newRESTClient(r).Do(t.Context(), "GET", "/v1/findings", "")
		g.Expect(err).NotTo(HaveOccurred(), "with the new key")
		g.Expect(answer.Status).To(Equal(200), "with the new key: %s", answer.Body)
	})
	harness.Same(t, "a new organization has findings", []item(nil), newRESTClient(r).list(t, "/v1/findings", 1000))
	t.Run("a backup is restored, as its page says", func(t *testing.T) { checkBackup(t, r) })
	t.Run("a removal is taken back, as its page says", func(t *testing.T) { checkRemovalTakenBack(t, r) })
}
