package apiserver

import (
	"crypto/tls"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// newCertificates watches the files of a certificate and its key, so that a renewed certificate is used without
// a restart. It returns nil if neither file is given.
func newCertificates(certFile, keyFile string) (*certwatcher.CertWatcher, error) {
	if certFile == "" && keyFile == "" {
		return nil, nil //nolint:nilnil // without a certificate there is nothing to watch
	}
	certificates, err := certwatcher.New(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("read the TLS certificate: %w", err)
	}
	return certificates, nil
}

func tlsConfig(certificates *certwatcher.CertWatcher) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificates.GetCertificate}
}
