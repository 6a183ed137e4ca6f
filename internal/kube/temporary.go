package kube

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

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
	case utilnet.IsConnectionRefused(err), utilnet.IsConnectionReset(err),
		utilnet.IsProbableEOF(err), utilnet.IsHTTP2ConnectionLost(err):
		return true
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, io.ErrUnexpectedEOF):
		return true
	}
	network, is := errors.AsType[net.Error](err)
	return is && network.Timeout()
}
