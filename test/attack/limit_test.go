package attack

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
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
func TestTokens_TwoReplicasWithOneRedisLimitAKeyAsOne(t *testing.T) {
	redis := "--redis-url-file=" + redisURLFile(t)
	var replicas []*facade
	for range 2 {
		f, err := target.startFacade(redis)
		harness.Must(t, err)
		t.Cleanup(func() { harness.Must(t, f.Stop()) }) // before Redis
		replicas = append(replicas, f)
	}
	o := newOrganization(t, "limited-"+letters(6), sharedLimit)
	for trial := range limitTrials {
		token := o.key(t, fmt.Sprintf("trial-%d", trial), v1alpha1.Scopes()...)
		begun := time.Now()
		for _, f := range replicas {
			harness.Eventually(t, func(g Gomega) {
				g.Expect(f.send(t, token, shot{method: "GET", path: "/"}).status).To(Equal(http.StatusNotFound), "the key must be known")
			})
		}
		// One request of each replica has been counted.
		answered := countAnswers(t, replicas, token, sharedLimit+beyondLimit)
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

// countAnswers sends requests to all replicas in turn, some concurrently, and counts the statuses.
func countAnswers(t *testing.T, replicas []*facade, token string, requests int) map[int]int {
	t.Helper()
	var mutex sync.Mutex
	var next atomic.Int64
	answered := map[int]int{}
	var senders sync.WaitGroup
	for range 2 * len(replicas) {
		senders.Go(func() {
			for i := next.Add(1); i <= int64(requests); i = next.Add(1) {
				got, err := replicas[int(i)%len(replicas)].try(t, token, shot{method: "GET", path: "/v1/findings"})
				if err != nil {
					t.Error(err)
					return
				}
				mutex.Lock()
				answered[got.status]++
				mutex.Unlock()
			}
		})
	}
	senders.Wait()
	return answered
}

// redisURLFile starts a Redis for the test and returns a file with its URL.
func redisURLFile(t *testing.T) string {
	t.Helper()
	binary, folder := needs.Program(t, "redis-server", "redis-server"), t.TempDir()
	redis, address, err := harness.StartRedis(t.Context(), folder, binary)
	harness.Must(t, err)
	t.Cleanup(func() { harness.NoError(t, "stop Redis", redis.Stop()) })
	file := filepath.Join(folder, "redis-url")
	harness.Must(t, os.WriteFile(file, []byte("redis://"+address), 0o600))
	return file
}
