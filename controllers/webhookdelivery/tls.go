package webhookdelivery

import (
	"crypto/tls"
	"errors"
	"net"
)

// isTLS reports whether the TLS handshake failed.
func isTLS(err error) bool {
	var (
		unverified *tls.CertificateVerificationError
		noTLS      tls.RecordHeaderError
		// The type of an alert of the receiver is not exported.
		alert *net.OpError
	)
	return errors.As(err, &unverified) || errors.As(err, &noTLS) || errors.As(err, &alert) && alert.Op == "remote error"
}
