//go:build node

package node

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// The tests build on each other, in this order: the life of an installation from install to
// uninstall.

func TestTheChartInstallsAndIsReady(t *testing.T) {
	kubectl(t, "create", "namespace", namespace)
	kubectl(t, "label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
	kubectl(t, "-n", namespace, "create", "secret", "generic", "redis", "--from-literal=url=redis://"+hostAddress+":6379/0")
	helm(t, append([]string{"install"}, installed()...)...)
	for _, component := range []string{"controller", "api"} {
		waitFor(t, "two pods of "+component, func() bool { return len(pods(t, component)) == 2 })
		kubectl(t, "-n", namespace, "rollout", "status", "deployment/"+release+"-"+component, "--timeout="+timeout)
	}
}

func TestTheSamplesAreServedThroughTheService(t *testing.T) {
	samples, err := filepath.Glob(filepath.Join(root, "config/samples/*.yaml"))
	harness.Must(t, err)
	apply(t, "-f", filepath.Join(root, "config/samples/organization.yaml"))
	kubectl(t, "wait", "--for=condition=Ready", "organization/sample", "--timeout="+timeout)
	kubectl(t, "patch", "organization", "sample", "--type=merge", "-p", `{"spec":{"rateLimit":{"requestsPerMinute":1000000}}}`)
	for _, sample := range samples {
		if filepath.Base(sample) != "organization.yaml" {
			apply(t, "-f", sample)
		}
	}
	url, key := address(t)+"/v1/findings", sampleKey(t)
	waitFor(t, "an answer", func() bool {
		return call(&http.Client{Timeout: callTimeout}, url, key) == nil
	})
}

func TestHelmTest(t *testing.T) {
	helm(t, "test", release, "--timeout", timeout)
}

func TestConformanceThroughTheService(t *testing.T) {
	err := command("go", "test", "-count=1", "-timeout=45m", "./test/conformance",
		"-base-url="+address(t), "-kubeconfig="+adminKubeconfig(), "-receiver-address="+hostAddress, "-require-all")
	harness.Must(t, err)
}

func TestAnUpgradeUnderLoadFailsNoRequest(t *testing.T) {
	load := startLoad(t, address(t)+"/v1/findings", sampleKey(t))
	helm(t, append([]string{"upgrade"}, installed("api.podAnnotations.upgraded=yes", "controller.podAnnotations.upgraded=yes")...)...)
	waitFor(t, "the old pods to go", func() bool { return len(pods(t, "api")) == 2 })
	answered, failures := load.end()
	t.Logf("%d requests answered", answered)
	if len(failures) > 0 {
		t.Errorf("%d requests failed: %s", len(failures), strings.Join(failures[:min(5, len(failures))], "; "))
	}
	if answered == 0 {
		t.Error("no request was answered")
	}
}

func TestARollingRestartFailsNoRequest(t *testing.T) {
	load := startLoad(t, address(t)+"/v1/findings", sampleKey(t))
	kubectl(t, "-n", namespace, "rollout", "restart", "deployment/"+release+"-api")
	kubectl(t, "-n", namespace, "rollout", "status", "deployment/"+release+"-api", "--timeout="+timeout)
	if answered, failures := load.end(); len(failures) > 0 || answered == 0 {
		t.Errorf("%d requests answered, %d failed: %v", answered, len(failures), failures[:min(5, len(failures))])
	}
}

// Only requests in flight on the killed replica fail, and requests until its death is noticed.
func TestAKilledReplicaFailsOnlyWhatItHadInHand(t *testing.T) {
	before := pods(t, "api")
	load := startLoad(t, address(t)+"/v1/findings", sampleKey(t))
	waitFor(t, "some load", func() bool { load.mu.Lock(); defer load.mu.Unlock(); return load.answered > 20 })
	killProcessOf(t, before[0])
	waitFor(t, "two ready replicas", func() bool {
		return kubectl(t, "-n", namespace, "get", "deployment", release+"-api", "-o", "jsonpath={.status.readyReplicas}") == "2" &&
			restarted(t, before[0])
	})
	answered, failures := load.end()
	t.Logf("%d requests answered, %d failed: %v", answered, len(failures), failures)
	// Each caller has one request in flight; and until the kubelet has noticed the death and
	// kube-proxy has been updated, new connections are still sent to the replica and refused.
	for _, failure := range failures {
		if !strings.Contains(failure, "connection refused") && !strings.Contains(failure, "EOF") && !strings.Contains(failure, "reset by peer") {
			t.Errorf("a request failed in another way: %s", failure)
		}
	}
}

func TestAKilledNodeComesBackWithEverything(t *testing.T) {
	const finding = "manual-review-session-guessable"
	url, key := address(t)+"/v1/findings", sampleKey(t)
	kubectl(t, "-n", "org-sample", "patch", "finding", finding, "--type=merge",
		"-p", `{"spec":{"triage":{"userStatus":"muted","comments":"kept over the node's death"}}}`)
	harness.Must(t, stop()) // it kills
	harness.Must(t, up())
	waitFor(t, "the REST API to answer with the old key", func() bool {
		return call(&http.Client{Timeout: callTimeout}, url, key) == nil
	})
	got := kubectl(t, "-n", "org-sample", "get", "finding", finding, "-o", "jsonpath={.spec.triage.comments}")
	harness.Same(t, "the comment", "kept over the node's death", got)
	for _, component := range []string{"controller", "api"} {
		kubectl(t, "-n", namespace, "rollout", "status", "deployment/"+release+"-"+component, "--timeout="+timeout)
	}
}

func TestUninstallLeavesWhatTheDocumentsSay(t *testing.T) {
	helm(t, "uninstall", release, "--wait", "--timeout", timeout)
	waitFor(t, "the pods to go", func() bool {
		return kubectl(t, "-n", namespace, "get", "pods", "-o", "name") == ""
	})
	for _, kinds := range []string{
		"clusterroles,clusterrolebindings", "validatingadmissionpolicies,validatingadmissionpolicybindings",
		"mutatingadmissionpolicies,mutatingadmissionpolicybindings",
	} {
		for _, name := range strings.Fields(kubectl(t, "get", kinds, "-o", "name")) {
			if strings.Contains(name, "findings") || strings.Contains(name, "appsec.dev") {
				t.Errorf("%s is left behind", name)
			}
		}
	}
	if got := kubectl(t, "get", "findings", "-A", "-o", "name"); got == "" {
		t.Error("the findings are gone with the release")
	}
}

func TestTheMachineIsAsItWas(t *testing.T) {
	harness.Must(t, stop())
	after, err := lookAtMachine()
	harness.Must(t, err)
	harness.Same(t, "the machine", before, after, cmp.AllowUnexported(machine{}))
	if running := processesOf(t, dir); len(running) > 0 {
		t.Errorf("still running: %v", running)
	}
}

// killProcessOf kills the only process of a pod from the machine, as the kernel might.
func killProcessOf(t *testing.T, pod string) {
	t.Helper()
	id := kubectl(t, "-n", namespace, "get", "pod", pod, "-o", "jsonpath={.status.containerStatuses[0].containerID}")
	_, id, _ = strings.Cut(id, "://")
	initPID := harness.File(t, filepath.Join(dir, "state", "init.pid"))
	_, err := output("nsenter", "-t", strings.TrimSpace(initPID), "-m", "-n", "-p",
		"ctr", "-n", "k8s.io", "task", "kill", "-s", "SIGKILL", id)
	harness.Must(t, err)
}

func restarted(t *testing.T, pod string) bool {
	t.Helper()
	return kubectl(t, "-n", namespace, "get", "pod", pod, "-o", "jsonpath={.status.containerStatuses[0].restartCount}") != "0"
}

// processesOf returns the processes whose arguments contain the folder.
func processesOf(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	harness.Must(t, err)
	var running []string
	for _, file := range files {
		arguments, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(arguments), folder+"/") {
			running = append(running, strings.ReplaceAll(string(arguments), "\x00", " "))
		}
	}
	return running
}
