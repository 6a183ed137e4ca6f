package webhookdelivery

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// isTLS reports whether the TLS handshake failed.
func isTLS(err error) bool {
	var (
		unverified *tls.CertificateVerificationError
		noTLS      tls.RecordHeaderError
		alert      tls.AlertError
		authority  x509.UnknownAuthorityError
		invalid    x509.CertificateInvalidError
		hostname   x509.HostnameError
	)
	return errors.As(err, &unverified) || errors.As(err, &noTLS) || errors.As(err, &alert) ||
		errors.As(err, &authority) || errors.As(err, &invalid) || errors.As(err, &hostname)
}
