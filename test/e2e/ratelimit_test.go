package e2e

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/needs"
)

const (
	// sharedLimit is the key's limit of requests per minute, at all replicas together.
	sharedLimit = 60
	// beyondLimit is how many more requests are sent.
	beyondLimit = 20
	// limitWindow is the length of a window.
	limitWindow = time.Minute
	// limitTrials bounds how often a window may end too early on a slow machine.
	limitTrials = 3
)

// Two processes that share only a Redis limit a key together.
func TestTwoReplicasWithOneRedisLimitAKeyAsOne(t *testing.T) {
	t.Parallel()
	redis := redisURLFile(t)
	r := start(t, t.TempDir(), "SAMPLES=false")
	r.apply(t, "apiVersion: appsec.dev/v1alpha1\nkind: Organization\nmetadata: {name: shared}\nspec: {}\n")
	var namespace string
	eventually(t, "the organization has its namespace", func() bool {
		namespace = r.kubectl(t, "get", "organization", "shared", "--output=jsonpath={.status.namespace}")
		return namespace != ""
	})
	replicas := []string{r.replica(t, redis), r.replica(t, redis)}
	for trial := range limitTrials {
		token := r.limitedKey(t, namespace, fmt.Sprintf("trial-%d", trial))
		callers := make([]*restClient, len(replicas))
		begun := time.Now()
		for i, base := range replicas {
			callers[i] = &restClient{base: base, key: token, http: &http.Client{Timeout: 20 * time.Second}}
			eventually(t, "the replica knows the key", func() bool {
				status, _, err := callers[i].call(t.Context(), http.MethodGet, "/", nil)
				return err == nil && status == http.StatusNotFound
			})
		}
		// One request of each replica has been counted.
		answered := countAnswers(t, callers, sharedLimit+beyondLimit)
		if time.Since(begun) > limitWindow/2 {
			t.Logf("trial %d: the window may have ended meanwhile", trial)
			continue
		}
		if answered[http.StatusOK] != sharedLimit-len(replicas) && trial < limitTrials-1 {
			t.Logf("trial %d: %v; a replica that finds Redis late counts by itself for a moment", trial, answered)
			continue
		}
		if answered[http.StatusOK] != sharedLimit-len(replicas) || answered[http.StatusTooManyRequests] != beyondLimit+len(replicas) {
			t.Errorf("two replicas answered %v; want %d with 200 and the rest with 429", answered, sharedLimit-len(replicas))
		}
		return
	}
	t.Fatalf("%d requests took more than half a window, %d times", sharedLimit+beyondLimit, limitTrials)
}

// countAnswers sends requests to all callers in turn, some concurrently, and counts the statuses.
func countAnswers(t *testing.T, callers []*restClient, requests int) map[int]int {
	t.Helper()
	var mutex sync.Mutex
	var next atomic.Int64
	answered := map[int]int{}
	var senders sync.WaitGroup
	for range 2 * len(callers) {
		senders.Go(func() {
			for i := next.Add(1); i <= int64(requests); i = next.Add(1) {
				status, _, err := callers[int(i)%len(callers)].call(t.Context(), http.MethodGet, "/v1/findings", nil)
				if err != nil {
					t.Error(err)
					return
				}
				mutex.Lock()
				answered[status]++
				mutex.Unlock()
			}
		})
	}
	senders.Wait()
	return answered
}

// limitedKey creates an unused key, and returns its token.
func (r *run) limitedKey(t *testing.T, namespace, name string) string {
	t.Helper()
	r.apply(t, fmt.Sprintf("apiVersion: appsec.dev/v1alpha1\nkind: APIKey\nmetadata: {name: %s, namespace: %s}\nspec: {rateLimit: {requestsPerMinute: %d}}\n",
		name, namespace, sharedLimit))
	var secret string
	eventually(t, "the key has its Secret", func() bool {
		secret = r.kubectl(t, "get", "apikey", name, "--namespace", namespace, "--output=jsonpath={.status.secretRef.name}")
		return secret != ""
	})
	encoded := r.kubectl(t, "get", "secret", secret, "--namespace", namespace, "--output=jsonpath={.data.token}")
	token, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(token) == 0 {
		t.Fatalf("the Secret holds no token: %v", err)
	}
	return string(token)
}

func (r *run) apply(t *testing.T, manifest string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	harness.Must(t, os.WriteFile(file, []byte(manifest), 0o600))
	r.kubectl(t, "apply", "--filename", file)
}

// replica starts another process of the REST API on the run's cluster, with the same rights as the
// run's own, and returns its address once it is ready. It is killed at the end of the test.
func (r *run) replica(t *testing.T, redisURLFile string) string {
	t.Helper()
	api, health := localAddress(t), localAddress(t)
	background(t, repositoryFile(t, "bin", "findings-operator"), "apiserver", "--kubeconfig="+r.path("kubeconfigs", "apiserver.kubeconfig"),
		"--bind-address="+api, "--health-bind-address="+health, "--redis-url-file="+redisURLFile)
	eventually(t, "the replica is ready", func() bool { return answers(t, "http://"+health+"/readyz") })
	return "http://" + api
}

func localAddress(t *testing.T) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(t)))
}

func answers(t *testing.T, url string) bool {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	harness.Must(t, err)
	response, err := (&http.Client{Timeout: time.Second}).Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// background runs a program until the test ends.
func background(t *testing.T, path string, arguments ...string) {
	t.Helper()
	output := &harness.Buffer{}
	command := exec.Command(path, arguments...)
	command.SysProcAttr = endWithTest()
	command.Stdout, command.Stderr = output, output
	harness.Must(t, command.Start())
	t.Cleanup(func() {
		command.Process.Kill() //nolint:errcheck // it may have ended
		command.Wait()         //nolint:errcheck // it was killed
		if t.Failed() {
			t.Logf("%s said:\n%s", strings.Join(command.Args[:2], " "), output)
		}
	})
}

// redisURLFile starts a Redis for the test and returns a file with its URL.
func redisURLFile(t *testing.T) string {
	t.Helper()
	binary := needs.Program(t, "redis-server", "redis-server")
	address := localAddress(t)
	_, port, _ := strings.Cut(address, ":")
	background(t, binary, "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir())
	eventually(t, "Redis listens", func() bool {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
	file := filepath.Join(t.TempDir(), "redis-url")
	harness.Must(t, os.WriteFile(file, []byte("redis://"+address), 0o600))
	return file
}
