package api_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/apiserver"
	"github.com/appsec-dev/findings-operator/test/harness"
)

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
	var log harness.Buffer
	s := ownServer(t, apiserver.Options{
		TLSCertFile: certFile, TLSKeyFile: keyFile, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	harness.Must(t, s.waitUntilReady(t.Context()))
	if !strings.Contains(log.String(), "msg=Serving") || !strings.Contains(log.String(), "tls=true") {
		t.Errorf("the log does not report TLS: %s", log.String())
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
	harness.Must(t, err)
	response.Body.Close() //nolint:errcheck,gosec // only the status counts
	if response.StatusCode != http.StatusOK || response.ProtoMajor != 2 {
		t.Errorf("got %d over %s", response.StatusCode, response.Proto)
	}
	second, roots := certificate(t, certFile, keyFile)
	NewWithT(t).Eventually(func() (string, error) { return serial(roots) }).WithTimeout(patience).WithPolling(50 * time.Millisecond).Should(Equal(second))
}
