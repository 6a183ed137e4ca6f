package api_test

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/apiserver"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestARenewedCertificateIsUsedWithoutARestart(t *testing.T) {
	folder := t.TempDir()
	certFile, keyFile := filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	roots := harness.Certificate(t, certFile, keyFile)
	var log harness.Buffer
	s := ownServer(t, apiserver.Options{
		TLSCertFile: certFile, TLSKeyFile: keyFile, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	harness.Must(t, s.waitUntilReady(t.Context()))
	harness.Contains(t, "the log", log.String(), "msg=Serving", "tls=true")
	serves := func(roots *x509.CertPool) error {
		conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}).DialContext(t.Context(), "tcp", s.Address())
		if err != nil {
			return err
		}
		return conn.Close()
	}
	harness.Must(t, serves(roots))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	response, err := client.Get("https://" + s.Address() + "/openapi.json") //nolint:noctx // bounded by the test
	harness.Must(t, err)
	response.Body.Close() //nolint:errcheck,gosec // only the status counts
	if response.StatusCode != http.StatusOK || response.ProtoMajor != 2 {
		t.Errorf("got %d over %s", response.StatusCode, response.Proto)
	}
	renewed := harness.Certificate(t, certFile, keyFile)
	harness.Eventually(t, func(g Gomega) { g.Expect(serves(renewed)).To(Succeed()) })
}
