package api_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/needs"
)

func (a answer) number(name string) int {
	a.t.Helper()
	n, err := strconv.Atoi(a.header.Get(name))
	if err != nil {
		a.t.Errorf("the header %s: %v", name, err)
	}
	return n
}

// limited returns a caller whose key may send that many requests per minute, once the facade has
// observed the limit.
func limited(o *organization, requestsPerMinute int) *caller {
	o.t.Helper()
	c := o.key("ci")
	o.limit(requestsPerMinute)
	o.eventually(func(g Gomega) {
		g.Expect(c.get("/v1/findings").header.Get("X-Ratelimit-Limit")).To(Equal(strconv.Itoa(requestsPerMinute)))
	})
	return c
}

// An organization's administrators set the limits of its keys, and only the cluster's administrators the maximum.
func TestNoKeyHasMoreThanItsOrganizationsMaximum(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	patch := func(object client.Object, body string) {
		harness.Must(t, env.Client.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(body))))
	}
	patch(builder.APIKey("ci").In(o.namespace).Build(), `{"spec":{"rateLimit":{"requestsPerMinute":1000000}}}`)
	for _, step := range []struct{ most, want string }{{"null", "1000000"}, {"100", "100"}} {
		patch(&v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: o.name}},
			`{"spec":{"apiKeys":{"maxRequestsPerMinute":`+step.most+`}}}`)
		o.eventually(func(g Gomega) {
			g.Expect(c.get("/v1/findings").header.Get("X-Ratelimit-Limit")).To(Equal(step.want))
		})
	}
}

// Every request counts and reports the remaining quota, whatever its answer.
func TestEveryRequestOfAKeyIsCounted(t *testing.T) {
	o := newOrganization(t)
	c := limited(o, 50_000)
	before := c.get("/v1/findings").number("X-Ratelimit-Remaining")
	for _, r := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/v2/repos", 200},
		{"HEAD", "/v1/findings", 200},
		{"OPTIONS", "/v1/findings", 204},
		{"GET", "/v1/findings?size=0", 400},
		{"GET", "/nowhere", 404},
		{"DELETE", "/v1/findings", 405},
		{"GET", "/openapi.json", 200},
		{"GET", "/docs", 200},
	} {
		a := c.do(r.method, r.path, "").wants(r.status, r.method+" "+r.path)
		before--
		if got := a.number("X-Ratelimit-Remaining"); got != before {
			t.Errorf("%s %s: %d requests are left, want %d", r.method, r.path, got, before)
		}
		if reset := a.number("X-Ratelimit-Reset"); reset < 1 || reset > 60 {
			t.Errorf("%s %s: the reset is in %d s", r.method, r.path, reset)
		}
	}
}

// Callers without a valid key are counted by address, as reported by the trusted proxy.
func TestCallersWithoutAKeyAreLimitedByAddress(t *testing.T) {
	guesser, other := newCaller(t, facade, "guess"), newCaller(t, facade, "guess")
	limit := guesser.get("/v1/findings").wants(401, "no valid key").number("X-Ratelimit-Limit")
	if limit != 600 {
		t.Errorf("the limit is %d", limit)
	}
	for range limit - 1 {
		guesser.get("/v1/findings").wants(401, "within the limit")
	}
	guesser.get("/v1/findings").wantsError(429, "Rate limit exceeded", "guessing keys is limited")
	guesser.get("/openapi.json").wants(429, "the contract too")
	other.get("/v1/findings").wants(401, "another address")
	c := newOrganization(t).key("ci")
	c.address = guesser.address
	c.get("/v1/findings").wants(200, "a valid key from the same address")
}

// redisURL starts a real Redis on a loopback port and returns a file with its URL.
func redisURL(t *testing.T) string {
	t.Helper()
	binary := needs.Program(t, "redis-server", "redis-server")
	free, err := harness.FreeAddresses(1)
	harness.Must(t, err)
	address := free[0]
	_, port, err := net.SplitHostPort(address)
	harness.Must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	command := exec.CommandContext(ctx, binary, "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir()) //nolint:gosec // a test's own
	if err := command.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		command.Wait() //nolint:errcheck,gosec // it was killed
	})
	NewWithT(t).Eventually(func(g Gomega) {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		g.Expect(err).NotTo(HaveOccurred())
		defer conn.Close() //nolint:errcheck // a test's own
		_, err = fmt.Fprint(conn, "PING\r\n")
		g.Expect(err).NotTo(HaveOccurred())
		line, err := bufio.NewReader(conn).ReadString('\n')
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(line).To(HavePrefix("+PONG"))
	}).WithTimeout(patience).WithPolling(20 * time.Millisecond).Should(Succeed())
	file := filepath.Join(t.TempDir(), "url")
	harness.Must(t, os.WriteFile(file, []byte("redis://"+address), 0o600))
	return file
}

func TestReplicasShareOneCounterThroughRedis(t *testing.T) {
	options := apiserver.Options{RedisURLFile: redisURL(t)}
	replicas := []*server{ownServer(t, options, nil), ownServer(t, options, func(*rest.Config) {})}
	for _, s := range replicas {
		harness.Must(t, s.waitUntilReady(t.Context()))
	}
	o := newOrganization(t)
	o.server = replicas[0]
	c := o.key("ci")
	const limit = 2000
	o.limit(limit)
	callers := make([]*caller, len(replicas))
	for i, s := range replicas {
		callers[i] = newCaller(t, s, c.token)
		o.eventually(func(g Gomega) {
			a := callers[i].get("/v1/findings")
			g.Expect(a.status).To(Equal(200))
			g.Expect(a.header.Get("X-Ratelimit-Limit")).To(Equal(strconv.Itoa(limit)))
		})
	}
	shared := func() string {
		before := callers[0].get("/v1/findings").number("X-Ratelimit-Remaining")
		for i := range 40 {
			before--
			if got := callers[i%2].get("/v1/findings?size=1").number("X-Ratelimit-Remaining"); got != before {
				return fmt.Sprintf("request %d, to replica %d: %d requests are left, want %d", i, i%2, got, before)
			}
		}
		return ""
	}
	// A replica to which Redis answers too late counts locally for a moment.
	o.eventually(func(g Gomega) { g.Expect(shared()).To(BeEmpty()) })
	o.limit(1)
	for i := range callers {
		o.eventually(func(g Gomega) { g.Expect(callers[i].get("/v1/findings").status).To(Equal(http.StatusTooManyRequests)) })
	}
}
