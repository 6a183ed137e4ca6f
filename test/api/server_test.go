package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// ownServer starts a facade for one test. alter changes how it reaches the API server.
func ownServer(t *testing.T, options apiserver.Options, alter ...func(*rest.Config)) *server {
	t.Helper()
	config, err := env.Facade(t.Context())
	harness.Must(t, err)
	for _, change := range alter {
		change(config)
	}
	s, err := newServer(config, options)
	harness.Must(t, err)
	s.stop = sync.OnceValue(s.stop)
	t.Cleanup(func() { harness.NoError(t, "stop", s.stop()) })
	return s
}

// line is a network connection to the API server that can be cut.
type line struct {
	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

func (l *line) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut { // perhaps since the dial began
		conn.Close() //nolint:errcheck,gosec // nothing was written to it
		return nil, fmt.Errorf("the line is cut")
	}
	l.conns = append(l.conns, conn)
	return conn, nil
}

// set cuts the line, or lets new connections through again.
func (l *line) set(cut bool) {
	l.mu.Lock()
	l.cut = cut
	l.mu.Unlock()
	if cut {
		l.drop()
	}
}

// drop closes the connections. New ones are made unless the line is cut.
func (l *line) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.conns {
		conn.Close() //nolint:errcheck,gosec // it may be closed already
	}
	l.conns = nil
}

// While the API server does not answer, reads succeed and report their age until the key data is
// stale; writes fail. After that everything works as before.
func TestWithoutTheAPIServerReadsGoOnUntilKeysAreStale(t *testing.T) {
	t.Parallel() // it mostly waits
	l := &line{}
	s := ownServer(t, apiserver.Options{KeyStaleness: 8 * time.Second}, func(config *rest.Config) { config.Dial = l.dial })
	o := newOrganization(t).on(s)
	c := o.key("ci")
	f := o.finding(c, builder.Finding("f-1"))
	harness.Same(t, "x-data-age, and all is well", "", c.get("/v1/findings").wants(200, "all is well").header.Get("X-Data-Age"))
	l.set(true)
	c.patch("/v1/findings/f-1", `{"user_status":"muted"}`).wantsError(500, "Internal server error", "a write that cannot be stored")
	aged := false
	harness.Eventually(t, func(g Gomega) {
		a := c.get(pathOf(f))
		if a.status == 200 && a.header.Get("X-Data-Age") != "" {
			aged = true
		}
		g.Expect(a.status).To(Equal(500))
		g.Expect(string(a.body)).To(ContainSubstring("authorization data is stale"))
	})
	if !aged {
		t.Error("no answer said how old its data was")
	}
	c.get("/nowhere").wants(500, "nobody can tell whether the key is valid")
	l.set(false)
	harness.Eventually(t, func(g Gomega) { g.Expect(c.get(pathOf(f)).status).To(Equal(200)) })
	c.patch("/v1/findings/f-1", `{"user_status":"muted"}`).wants(200, "a write again")
}

func TestAFacadeIsReadyOnceItHasReachedTheAPIServer(t *testing.T) {
	t.Parallel() // it mostly waits
	l := &line{cut: true}
	s := ownServer(t, apiserver.Options{}, func(config *rest.Config) { config.Dial = l.dial })
	on := func(path string, want int, parts ...string) {
		t.Helper()
		status, body, err := s.health(t.Context(), path)
		harness.Must(t, err)
		harness.Same(t, path, want, status)
		harness.Contains(t, path, body, parts...)
	}
	on("/readyz", http.StatusServiceUnavailable, "[-] read model")
	on("/healthz", http.StatusOK, "ok")
	l.set(false)
	harness.NoError(t, "wait until it is ready", s.waitUntilReady(t.Context()))
	on("/readyz", http.StatusOK, "[+] keys\n[+] read model\n[+] not stopping\n")
	on("/v1/findings", http.StatusNotFound) // the REST API has another port
	newOrganization(t).on(s).key("ci").get("/v1/findings").wants(200, "a facade that is ready")
}

func TestMetricsShowRequestsByRouteAndTheReadModel(t *testing.T) {
	s := ownServer(t, apiserver.Options{})
	harness.Must(t, s.waitUntilReady(t.Context()))
	o := newOrganization(t).on(s)
	c := o.key("ci")
	f := o.finding(c, builder.Finding("f-1"))
	c.get(pathOf(f))
	c.get("/made/up/by/a/client")
	c.do("MADEUP", "/v1/findings", "")
	var body string
	harness.Eventually(t, func(g Gomega) {
		var err error
		_, body, err = s.health(t.Context(), "/metrics")
		g.Expect(err).NotTo(HaveOccurred())
		for _, want := range []string{
			`findings_api_requests_total{code="200",method="GET",route="/v2/repos/{repo_id}/projects/{project_id}/findings/{finding_id}"} 1`,
			`findings_api_requests_total{code="404",method="GET",route="unmatched"} 1`,
			`findings_api_requests_total{code="405",method="other",route="unmatched"} 1`,
			`findings_api_request_duration_seconds_bucket{code="404",method="GET",route="unmatched",le="+Inf"} 1`,
			"go_goroutines ",
			"findings_read_model_lag_seconds 0\n",
		} {
			g.Expect(body).To(ContainSubstring("\n" + want))
		}
		for _, want := range []string{
			`findings_read_model_items\{kind="findings"\} [1-9]`, `findings_read_model_items\{kind="organizations"\} [1-9]`,
			`findings_read_model_catch_up_seconds_count [1-9]`,
			// An empty kind counts once it has been listed and its watch has begun.
			`findings_read_model_heard_seconds\{kind="webhookdeliveries"\} [0-9.e-]+\n`,
		} {
			g.Expect(body).To(MatchRegexp(want))
		}
	})
	harness.Lacks(t, "labels of /metrics, which name nothing that only clients know", body, "made/up", "MADEUP", "f-1", o.name)
}

func TestTheLogNamesRequestsAndHoldsNoSecrets(t *testing.T) {
	log := &harness.Buffer{}
	s := ownServer(t, apiserver.Options{Log: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	o := newOrganization(t).on(s)
	c := o.key("ci-bot")
	o.finding(c, builder.Finding("f-1"))
	given := c.get("/v1/findings?class=from-the-query", header("X-Request-Id", "from-the-proxy.1"))
	harness.Same(t, "the request's name", "from-the-proxy.1", given.header.Get("X-Request-Id"))
	harness.Lacks(t, "the request's name", c.get("/v1/findings", header("X-Request-Id", "no name\tof ours")).header.Get("X-Request-Id"), "ours")
	c.patch("/v2/findings/f-1", `{"comments":"from-the-body"}`)
	harness.Must(t, env.LetUploads(t.Context(), o.namespace))
	o.key("uploader", v1alpha1.ScopeFindingsImport).upload("?dry_run=true", sarif("one"), header("X-Request-Id", "of-an-upload"))
	c.get("/v1/findings?cursor=x")
	newCaller(t, s, "from-the-header").get("/v1/findings")
	text := log.String()
	for _, want := range []string{
		`"requestID":"from-the-proxy.1"`, `"route":"/v2/findings/{id}"`, `"key":"ci-bot"`, `"organization":"` + o.name + `"`,
		`"status":401`, `"status":400`, `"error":"Invalid query parameter: cursor`,
		`"requestID":"of-an-upload","organization":"` + o.name + `"`, // the end of the upload, not the request's own line
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the log lacks %s", want)
		}
	}
	for _, secret := range append(strings.Split(c.token, "."), "from-the-query", "from-the-body", "from-the-header") {
		if strings.Contains(text, secret) {
			t.Errorf("the log contains %q", secret)
		}
	}
}

// These raw bytes are requests that no HTTP client would send.
func TestRequestsOfOddForm(t *testing.T) {
	c := newOrganization(t).key("ci")
	authorization := "Authorization: Bearer " + c.token + "\r\n"
	for _, test := range []struct {
		reason, head string
		status       int
	}{
		{"an absolute target", "GET http://elsewhere/v1/findings HTTP/1.1\r\nHost: x\r\n" + authorization, 200},
		{"OPTIONS of the server", "OPTIONS * HTTP/1.1\r\nHost: x\r\n" + authorization, 404},
		{"OPTIONS of the server without a key", "OPTIONS * HTTP/1.1\r\nHost: x\r\n", 401},
		{"CONNECT", "CONNECT elsewhere:443 HTTP/1.1\r\nHost: elsewhere:443\r\n" + authorization, 404},
		{"a method of the client's own", "X GET /v1/findings HTTP/1.1\r\nHost: x\r\n", 400},
		{"bytes that are no UTF-8", "GET /v2/repos/r/projects/p/findings/\xff HTTP/1.1\r\nHost: x\r\n" + authorization, 400},
		{"a percent sign that encodes nothing", "GET /v1/findings/%zz HTTP/1.1\r\nHost: x\r\n" + authorization, 400},
		{"a long target", "GET /v1/findings/" + strings.Repeat("a", 20_000) + " HTTP/1.1\r\nHost: x\r\n" + authorization, 405},
		{"headers without end", "GET /v1/findings HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("a", 64<<10) + "\r\n", 431},
		{"a body cut short", "PATCH /v1/findings/f-1 HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 5\r\n" + authorization + "\r\n{}", 400},
		{"no HTTP", "hello", 400},
	} {
		harness.Same(t, test.reason, test.status, rawStatus(t, facade.Address(), test.head+"\r\n\r\n"))
	}
}

func rawStatus(t *testing.T, address, request string) int {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	harness.Must(t, err)
	defer conn.Close() //nolint:errcheck // a test's own
	harness.Must(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(conn, request)
	harness.Must(t, err)
	harness.Must(t, conn.(*net.TCPConn).CloseWrite())
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%.60q: %v", request, err)
	}
	defer response.Body.Close() //nolint:errcheck // only the status counts
	return response.StatusCode
}

// A request in progress when the server is stopped is still answered and stored.
func TestStoppingAnswersWhatHasBegun(t *testing.T) {
	s := ownServer(t, apiserver.Options{})
	o := newOrganization(t).on(s)
	c := o.key("ci")
	o.finding(c, builder.Finding("f-1"))
	rest, answered := c.hold(http.MethodPatch, "/v1/findings/f-1", header("Content-Type", "application/json"))
	stopped := make(chan error, 1)
	go func() { stopped <- s.stop() }()
	harness.Eventually(t, func(g Gomega) {
		conn, err := net.DialTimeout("tcp", s.Address(), time.Second)
		if err == nil {
			conn.Close() //nolint:errcheck,gosec // it should not be there
		}
		g.Expect(err).To(HaveOccurred(), "the server still takes new connections")
	})
	status, report, err := s.health(t.Context(), "/readyz")
	if err != nil || status != http.StatusServiceUnavailable || !strings.Contains(report, "[-] not stopping") {
		t.Errorf("readyz while stopping: %d %q, %v", status, report, err)
	}
	_, err = io.WriteString(rest, `{"user_status":"muted"}`)
	harness.Must(t, err)
	harness.Must(t, rest.Close())
	(<-answered).wants(200, "the request that had begun")
	harness.NoError(t, "stop", <-stopped)
	harness.Same(t, "the finding's user status", v1alpha1.UserStatusMuted, o.stored("f-1").Spec.Triage.UserStatus)
}
