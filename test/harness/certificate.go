package harness

import (
	"crypto/x509"
	"os"
	"testing"

	"k8s.io/client-go/util/cert"
)

// Certificate writes a new certificate for 127.0.0.1 and its key to the files, and returns the pool that trusts it.
func Certificate(t testing.TB, certFile, keyFile string) *x509.CertPool {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	Must(t, err)
	Must(t, os.WriteFile(keyFile, key, 0o600))
	Must(t, os.WriteFile(certFile, certificate, 0o600))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	return roots
}
