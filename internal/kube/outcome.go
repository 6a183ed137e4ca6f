package kube

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// IsOutcomeUnknown reports whether a write that failed may be stored all the same. Nothing is stored if the API server
// or the proxy before it could not be dialled, if the certificate was not trusted, if a plugin returned no credentials,
// or if the request was refused with a code below 500 or for a webhook. Anything else leaves it open: a code of 500 and
// above, the 408 of a proxy that did not wait for the answer, and every way in which an answer gets lost, such as a
// timeout or a reset stream. Not all of these are temporary.
func IsOutcomeUnknown(err error) bool {
	network, isNetwork := errors.AsType[*net.OpError](err)
	undialled := isNetwork && (network.Op == "dial" || network.Op == "proxyconnect")
	_, isUntrusted := errors.AsType[*tls.CertificateVerificationError](err)
	if err == nil || undialled || isUntrusted || lacksCredentials(err) || isRefusedForWebhook(err) {
		return false
	}
	code := StatusOf(err).Code
	return code == 0 || code == http.StatusRequestTimeout || code >= http.StatusInternalServerError
}

// lacksCredentials reports whether a plugin of the kubeconfig returned none, for which client-go has no type.
func lacksCredentials(err error) bool { return strings.Contains(err.Error(), "getting credentials: ") }

// OnceMoreIfUnauthorized calls request, and once more if its credentials were refused: nothing is stored then, and the
// client library has new ones from the kubeconfig's plugin or token file, if there are any, but does not repeat the
// request.
func OnceMoreIfUnauthorized(request func() error) error {
	err := request()
	if apierrors.IsUnauthorized(err) {
		err = request()
	}
	return err
}

// IsTemporary reports whether the error of a request may go away by itself.
func IsTemporary(err error) bool {
	switch {
	case LacksField(err), IsDeniedByWebhook(err):
		return false
	case apierrors.IsTooManyRequests(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err),
		apierrors.IsInternalError(err), apierrors.IsServiceUnavailable(err), IsQuotaUncounted(err):
		return true
	case apierrors.IsUnexpectedServerError(err):
		// Among the others only a proxy's 408 is temporary. Its 404 looks like that of the API server about an unknown kind.
		return StatusOf(err).Code == http.StatusRequestTimeout
	case utilnet.IsConnectionRefused(err), utilnet.IsConnectionReset(err), isConnectionLostOnWindows(err),
		utilnet.IsProbableEOF(err), utilnet.IsHTTP2ConnectionLost(err):
		return true
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, io.ErrUnexpectedEOF):
		return true
	}
	network, is := errors.AsType[net.Error](err)
	return is && network.Timeout()
}

// isConnectionLostOnWindows reports whether the error has one of these codes of Winsock: the connection was aborted
// (10053), reset (10054), not made in time (10060) or refused (10061). No other system uses these numbers. On Windows
// syscall.ECONNRESET and the like are values that Go invents and the network never returns.
func isConnectionLostOnWindows(err error) bool {
	code, is := errors.AsType[syscall.Errno](err)
	return is && slices.Contains([]syscall.Errno{10053, 10054, 10060, 10061}, code)
}
