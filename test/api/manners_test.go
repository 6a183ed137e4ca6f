package api_test

import (
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/apiserver"
	"github.com/appsec-dev/findings-operator/test/builder"
)

func TestHEADIsGETWithoutABody(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	o.finding(c, builder.Finding("f-1"))
	for _, path := range []string{"/v1/findings", someFinding, "/v2/repos", someProject, "/v1/reviews", "/v1/findings?size=0", "/nowhere", "/openapi.json", "/docs"} {
		plain := header("Accept-Encoding", "identity")
		get, head := c.get(path, plain), c.do("HEAD", path, "", plain)
		if head.status != get.status || len(head.body) > 0 {
			t.Errorf("%s: HEAD is %d with %d bytes, GET is %d", path, head.status, len(head.body), get.status)
		}
		for _, name := range []string{"Content-Type", "Content-Length", "Etag", "Vary"} {
			if head.header.Get(name) != get.header.Get(name) {
				t.Errorf("%s: %s of HEAD is %q, of GET %q", path, name, head.header.Get(name), get.header.Get(name))
			}
		}
	}
}

func TestLongAnswersAreCompressedForWhoTakesIt(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	o.findings(c, 3)
	const path = "/v1/findings"
	plain := c.get(path, header("Accept-Encoding", "identity"))
	if plain.header.Get("Content-Encoding") != "" || plain.header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("plain: %v", plain.header)
	}
	// Set by hand, so that the client leaves the body as it came.
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, facade.url(path), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	for accepted, compressed := range map[string]bool{
		"gzip": true, "br, gzip;q=0.5": true, "*": true, "GZIP": true,
		"gzip;q=0": false, "br": false, "gzip;q=0, *": false, "gzip;q=x": false, "*;q=0": false,
	} {
		request.Header.Set("Accept-Encoding", accepted)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		var body io.Reader = response.Body
		if got := response.Header.Get("Content-Encoding") == "gzip"; got != compressed {
			t.Errorf("Accept-Encoding %q: compressed is %t", accepted, got)
		} else if compressed {
			if body, err = gzip.NewReader(body); err != nil {
				t.Fatal(err)
			}
		}
		content, err := io.ReadAll(body)
		response.Body.Close() //nolint:errcheck,gosec // only read from
		if err != nil || !bytes.Equal(content, plain.body) {
			t.Errorf("Accept-Encoding %q: %v, %d bytes instead of %d", accepted, err, len(content), len(plain.body))
		}
	}
	if got := c.get("/v1/findings?repo_id=none").header.Get("Vary"); got != "" {
		t.Errorf("a short answer varies by %s", got)
	}
}

func TestAReadIsConditionalOnIfNoneMatch(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	o.finding(c, builder.Finding("f-1"))
	for _, path := range []string{someFinding, someProject} {
		first := c.get(path)
		tag := first.header.Get("Etag")
		if !regexp.MustCompile(`^"[0-9a-f]{32}(-gzip)?"$`).MatchString(tag) {
			t.Fatalf("%s: the tag is %s", path, tag)
		}
		same := c.get(path, header("If-None-Match", `"x", W/`+tag)).wants(304, path)
		if same.header.Get("Etag") != tag {
			t.Errorf("%s: the tag is now %s", path, same.header.Get("Etag"))
		}
		c.do("HEAD", path, "", header("If-None-Match", tag)).wants(304, "HEAD "+path)
		c.get(path, header("If-None-Match", "*")).wants(304, "any")
		c.get(path, header("If-None-Match", `"x"`)).wants(200, "another tag")
	}
	tag := c.get(someFinding).header.Get("Etag")
	c.patch("/v1/findings/f-1", `{"user_status":"muted"}`)
	if changed := c.get(someFinding, header("If-None-Match", tag)).wants(200, "the finding has changed"); changed.header.Get("Etag") == tag {
		t.Error("two states have one tag")
	}
	if got := c.get("/v1/findings").header.Get("Etag"); got != "" {
		t.Errorf("a list has the tag %s", got)
	}
}

func TestAChangeIsConditionalOnIfMatch(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	o.finding(c, builder.Finding("f-1"))
	tag := c.get(someFinding).header.Get("Etag")
	muted := c.patch("/v1/findings/f-1", `{"user_status":"muted"}`, header("If-Match", tag)).wants(200, "the state that was read")
	for _, path := range []string{"/v1/findings/f-1", "/v2/findings/f-1"} {
		c.patch(path, `{"user_status":"active"}`, header("If-Match", tag)).wantsError(412, "Precondition failed", "a state that is gone")
		c.patch(path, `{"user_status":"active"}`, header("If-Match", "W/"+tag)).wantsError(412, "Precondition failed", "a weak tag")
	}
	if got := o.stored("f-1").Spec.Triage.UserStatus; got != "muted" {
		t.Errorf("the finding is %s", got)
	}
	// v1 and v2 are two shapes of one state.
	c.patch("/v2/findings/f-1", `{"comments":"why"}`, header("If-Match", muted.header.Get("Etag"))).wants(200, "the tag of the change before")
	c.patch("/v1/findings/f-1", `{"user_status":"open"}`, header("If-Match", "*")).wants(200, "any state")
	c.patch("/v1/findings/none", `{"user_status":"open"}`, header("If-Match", "*")).wants(404, "no such finding")
}

// What others write between the look and the patch is found out by the API server's refusal.
func TestAConditionalChangeIsRefusedWhateverTheReadModelKnows(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	o.finding(c, builder.Finding("f-1"))
	for i := range 5 {
		status := []string{"active", "muted"}[i%2]
		tag := c.get(someFinding).header.Get("Etag")
		if err := o.kubectlPatch(t.Context(), "f-1", `{"spec":{"triage":{"userStatus":"`+status+`"}}}`); err != nil {
			t.Fatal(err)
		}
		// At once: this replica may have heard of the change or not.
		c.patch("/v1/findings/f-1", `{"user_status":"open"}`, header("If-Match", tag)).wants(412, "somebody was faster")
	}
}

func TestErrorsTellNothingOfHowTheServiceIsMade(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci", "findings:read")
	all := o.key("all")
	answers := []answer{
		c.get("/v1/findings?size=x"), c.get("/v1/findings?cursor=AAAA"), c.get("/nowhere"), c.do("DELETE", "/v1/findings", ""),
		c.get("/v2/issues/none"), c.get("/v2/issues/a%00"), c.get("/v1/reviews"), newCaller(t, facade, "x").get("/v1/findings"),
		all.patch("/v1/findings/f-1", `{"user_status":1}`), all.patch("/v1/findings/f-1", `{`), all.patch("/v1/findings/f-1", `{"user_status":"open"}`),
		all.patch("/v1/findings/f-1", strings.Repeat(" ", 1<<17)), all.do("PATCH", "/v1/findings/f-1", `{}`), all.post("/v2/webhook-deliveries/d/verify", `[]`),
		all.get("/v1/reviews?start_time=x"), all.get("/v1/reviews?start_time=2026-13-45T00:00:00Z"),
	}
	leak := regexp.MustCompile(`(?i)goroutine|panic|runtime|\.go\b|/work|/root|kube|namespace|json:|unmarshal|resourceVersion|appsec\.dev|strconv|parsing time|%!`)
	for _, a := range answers {
		if a.status < 400 {
			t.Errorf("got %d %s", a.status, a.body)
		}
		if found := leak.Find(a.body); found != nil {
			t.Errorf("%d: %s speaks of %q", a.status, a.body, found)
		}
	}
}

func TestTheDocumentationNeedsNoOtherHost(t *testing.T) {
	c := newCaller(t, facade, "")
	page := c.get("/docs").wants(200, "the page")
	policy := page.header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "http") {
		t.Errorf("the policy is %q", policy)
	}
	if bytes.Contains(page.body, []byte("//")) {
		t.Errorf("the page names another host:\n%s", page.body)
	}
	for _, match := range regexp.MustCompile(`(?:href|src)="([^"]+)"`).FindAllSubmatch(page.body, -1) {
		asset := c.get("/"+string(match[1])).wants(200, string(match[1]))
		if kind := asset.header.Get("Content-Type"); !regexp.MustCompile(`^(text/(css|javascript); charset=utf-8|image/png)$`).MatchString(kind) {
			t.Errorf("%s is %s", match[1], kind)
		}
	}
	script := c.get("/docs/start.js")
	if !bytes.Contains(script.body, []byte(`url: "openapi.json"`)) || !bytes.Contains(script.body, []byte("validatorUrl: null")) {
		t.Errorf("the script is\n%s", script.body)
	}
	c.get("/docs/").wants(401, "a path that there is not needs a key")
}

// certificate writes a fresh one for 127.0.0.1 in place of the last, and returns its pool.
func certificate(t *testing.T, certFile, keyFile string) (serial string, roots *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	number, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: number, Subject: pkix.Name{CommonName: "facade"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for file, content := range map[string][]byte{keyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), certFile: certPEM} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(certPEM)
	return number.String(), roots
}

func TestARenewedCertificateIsUsedWithoutARestart(t *testing.T) {
	folder := t.TempDir()
	certFile, keyFile := filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	first, roots := certificate(t, certFile, keyFile)
	s := ownServer(t, apiserver.Options{TLSCertFile: certFile, TLSKeyFile: keyFile}, nil)
	if err := s.waitUntilReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	serial := func(roots *x509.CertPool) (string, error) {
		conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}).DialContext(t.Context(), "tcp", s.Address())
		if err != nil {
			return "", err
		}
		defer conn.Close() //nolint:errcheck // a test's own
		return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.String(), nil
	}
	if got, err := serial(roots); err != nil || got != first {
		t.Fatalf("got the certificate %s, %v", got, err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	response, err := client.Get("https://" + s.Address() + "/openapi.json") //nolint:noctx // bounded by the test
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close() //nolint:errcheck,gosec // only the status counts
	if response.StatusCode != http.StatusOK || response.ProtoMajor != 2 {
		t.Errorf("got %d over %s", response.StatusCode, response.Proto)
	}
	second, roots := certificate(t, certFile, keyFile)
	NewWithT(t).Eventually(func() (string, error) { return serial(roots) }).WithTimeout(patience).WithPolling(50 * time.Millisecond).Should(Equal(second))
}
