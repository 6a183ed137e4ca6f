package api_test

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// A person with kubectl and a client with a key see each other's decisions.
func TestKubectlAndRESTShowTheSameDecision(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	f := o.finding(c, builder.Finding("f-1"))
	config, err := env.Member(t.Context(), o.namespace, "alice", testenv.Triager)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := testenv.WriteKubeconfig(t, config, o.namespace)
	kubectl := func(arguments ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), testenv.Binary(t, "kubectl"),
			append([]string{"--kubeconfig", kubeconfig}, arguments...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("kubectl %v: %v\n%s", arguments, err, out)
		}
		return string(out)
	}

	kubectl("patch", "finding", "f-1", "--type=merge", "-p", `{"spec":{"triage":{"userStatus":"active","comments":"seen"}}}`)
	NewWithT(t).Eventually(func(g Gomega) {
		got := decoded[shown](c.get(pathOf(f)))
		g.Expect(got.UserStatus).To(Equal("active"))
		g.Expect(got.Comments).To(Equal("seen"))
	}).WithTimeout(patience).WithPolling(5 * time.Millisecond).Should(Succeed())

	c.patch("/v1/findings/f-1", `{"user_status":"muted"}`).wants(200, "a decision by REST")
	got := kubectl("get", "finding", "f-1", "-o", "jsonpath={.spec.triage.userStatus} {.spec.triage.comments} {.spec.triage.by}")
	if want := "muted seen apikey/ci"; got != want {
		t.Errorf("kubectl shows %q, want %q", got, want)
	}
	// The column TRIAGE shows the effective decision, which the controllers record; this test runs
	// no controllers.
	if muted := kubectl("get", "findings", "--field-selector=spec.triage.userStatus=muted", "-o=name"); !strings.Contains(muted, "f-1") {
		t.Errorf("kubectl selects %q by the decision", muted)
	}
}
