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
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestLongAnswersAreCompressedForWhoTakesIt(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	o.findings(c, 3)
	const path = "/v1/findings"
	plain := c.get(path, header("Accept-Encoding", "identity"))
	if plain.header.Get("Content-Encoding") != "" || plain.header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("plain: %v", plain.header)
	}
	// Set explicitly, so that the client does not decompress the body.
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, facade.url(path), http.NoBody)
	harness.Must(t, err)
	request.Header.Set("Authorization", "Bearer "+c.token)
	for accepted, compressed := range map[string]bool{
		"gzip": true, "br, gzip;q=0.5": true, "*": true, "GZIP": true,
		"gzip;q=0": false, "br": false, "gzip;q=0, *": false, "gzip;q=x": false, "*;q=0": false,
	} {
		request.Header.Set("Accept-Encoding", accepted)
		response, err := http.DefaultClient.Do(request)
		harness.Must(t, err)
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
	harness.Same(t, "a short answer varies by", "", c.get("/v1/findings?repo_id=none").header.Get("Vary"))
}

func TestTheDocumentationNeedsNoOtherHost(t *testing.T) {
	c := newCaller(t, facade, "")
	page := c.get("/docs").wants(200, "the page")
	harness.Same(t, "the page's media type", "text/html; charset=utf-8", page.header.Get("Content-Type"))
	policy := page.header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "http") {
		t.Errorf("the policy is %q", policy)
	}
	if bytes.Contains(page.body, []byte("//")) {
		t.Errorf("the page names another host:\n%s", page.body)
	}
	mediaTypes := map[string]string{
		".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".png": "image/png",
	}
	for _, match := range regexp.MustCompile(`(?:href|src)="([^"]+)"`).FindAllSubmatch(page.body, -1) {
		asset := c.get("/"+string(match[1])).wants(200, string(match[1]))
		harness.Same(t, string(match[1]), mediaTypes[filepath.Ext(string(match[1]))], asset.header.Get("Content-Type"))
	}
	script := c.get("/docs/start.js")
	if !bytes.Contains(script.body, []byte(`url: "openapi.json"`)) || !bytes.Contains(script.body, []byte("validatorUrl: null")) {
		t.Errorf("the script is\n%s", script.body)
	}
	c.get("/docs/").wants(401, "a path that there is not needs a key")
}

// certificate replaces the files with a new certificate for 127.0.0.1, and returns its pool.
func certificate(t *testing.T, certFile, keyFile string) (serial string, roots *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	harness.Must(t, err)
	number, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	harness.Must(t, err)
	template := &x509.Certificate{
		SerialNumber: number, Subject: pkix.Name{CommonName: "facade"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	harness.Must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	harness.Must(t, err)
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for file, content := range map[string][]byte{keyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), certFile: certPEM} {
		harness.Must(t, os.WriteFile(file, content, 0o600))
	}
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(certPEM)
	return number.String(), roots
}

func TestARenewedCertificateIsUsedWithoutARestart(t *testing.T) {
	folder := t.TempDir()
	certFile, keyFile := filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	first, roots := certificate(t, certFile, keyFile)
	s := ownServer(t, apiserver.Options{TLSCertFile: certFile, TLSKeyFile: keyFile})
	harness.Must(t, s.waitUntilReady(t.Context()))
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
	harness.Must(t, err)
	response.Body.Close() //nolint:errcheck,gosec // only the status counts
	if response.StatusCode != http.StatusOK || response.ProtoMajor != 2 {
		t.Errorf("got %d over %s", response.StatusCode, response.Proto)
	}
	second, roots := certificate(t, certFile, keyFile)
	NewWithT(t).Eventually(func() (string, error) { return serial(roots) }).WithTimeout(patience).WithPolling(50 * time.Millisecond).Should(Equal(second))
}
