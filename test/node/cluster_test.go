//go:build node

package node

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/appsec-dev/findings-operator/test/harness"
)

const (
	// eventually is the limit for anything in the cluster; it takes seconds, or minutes while
	// something else is being built on the machine. timeout is the same for kubectl and helm.
	eventually = 8 * time.Minute
	timeout    = "8m"
	interval   = 200 * time.Millisecond
)

// kubectl runs the project's own kubectl against the node; helm does the same.
func kubectl(t *testing.T, arguments ...string) string {
	t.Helper()
	var out string
	waitFor(t, "kubectl "+strings.Join(arguments, " "), func() bool {
		var err error
		if out, err = output(filepath.Join(root, "bin/k8s/kubectl"), arguments...); err != nil && !passes(err) {
			t.Fatal(err)
		}
		return err == nil
	})
	return strings.TrimSpace(out)
}

// passes reports whether an error is caused by an API server or an etcd that is short of processor
// time, so that the request may be repeated.
func passes(err error) bool {
	for _, sign := range []string{
		"etcdserver: request timed out", "etcdserver: leader changed", "etcdserver: too many requests", "TLS handshake timeout",
		"unable to return a response in the time allotted", "net/http: request canceled while waiting for connection",
	} {
		if strings.Contains(err.Error(), sign) {
			return true
		}
	}
	return false
}

func helm(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := output(filepath.Join(root, "bin/helm"), append(arguments, "--namespace", namespace)...)
	harness.Must(t, err)
	return out
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), interval, eventually, true, func(context.Context) (bool, error) { return done(), nil })
	if err != nil {
		t.Fatalf("waited %v in vain for %s", eventually, what)
	}
}

// succeeds reports whether the kubectl command succeeds.
func succeeds(arguments ...string) bool {
	_, err := output(filepath.Join(root, "bin/k8s/kubectl"), arguments...)
	return err == nil
}

// apply applies manifests, and retries until what they need exists.
func apply(t *testing.T, arguments ...string) {
	t.Helper()
	waitFor(t, "kubectl apply "+strings.Join(arguments, " "), func() bool {
		return succeeds(append([]string{"apply"}, arguments...)...)
	})
}

// installed returns the arguments of `helm install` and `helm upgrade` for the release, with
// additional values.
func installed(values ...string) []string {
	arguments := []string{
		release, filepath.Join(root, "charts/findings-operator"), "--wait", "--timeout", timeout,
		"--set", "image.repository=" + image, "--set", "image.tag=" + imageTag, "--set", "image.pullPolicy=Never",
		"--set", "api.redis.urlSecret=redis",
		// How long kube-proxy takes to observe that a pod terminates depends on the load of the machine.
		"--set", "api.preStopSleepSeconds=20",
		"--set", "controller.webhookAllowCIDRs={" + hostAddress + "/32}",
	}
	for _, value := range values {
		arguments = append(arguments, "--set", value)
	}
	return arguments
}

// address returns the URL of the REST API's Service.
func address(t *testing.T) string {
	t.Helper()
	return "http://" + kubectl(t, "-n", namespace, "get", "service", release+"-api", "-o", "jsonpath={.spec.clusterIP}")
}

// sampleKey returns the API key of the sample organization.
func sampleKey(t *testing.T) string {
	t.Helper()
	kubectl(t, "-n", "org-sample", "wait", "--for=condition=Ready", "apikey/sample", "--timeout="+timeout)
	secret := kubectl(t, "-n", "org-sample", "get", "apikey", "sample", "-o", "jsonpath={.status.secretRef.name}")
	encoded := kubectl(t, "-n", "org-sample", "get", "secret", secret, "-o", "jsonpath={.data.token}")
	token, err := base64.StdEncoding.DecodeString(encoded)
	harness.Must(t, err)
	return string(token)
}

// pods returns the names of a component's pods that are not terminating.
func pods(t *testing.T, component string) []string {
	t.Helper()
	var list struct {
		Items []struct {
			Metadata struct {
				Name              string
				DeletionTimestamp *string
			}
		}
	}
	out := kubectl(t, "-n", namespace, "get", "pods", "-l", "app.kubernetes.io/component="+component, "-o", "json")
	harness.Must(t, json.Unmarshal([]byte(out), &list))
	var names []string
	for _, pod := range list.Items {
		if pod.Metadata.DeletionTimestamp == nil {
			names = append(names, pod.Metadata.Name)
		}
	}
	return names
}

// startRedis runs a Redis on the machine where pods can reach it.
func startRedis(stops *harness.Stops) error {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		return fmt.Errorf("find redis-server (Debian: apt-get install redis-server): %w", err)
	}
	redis := harness.NewProcess(filepath.Join(dir, "logs"), "redis", binary,
		"--bind", hostAddress, "--port", "6379", "--protected-mode", "no", "--save", "", "--appendonly", "no")
	stops.Add(redis.Stop)
	return redis.Start()
}
