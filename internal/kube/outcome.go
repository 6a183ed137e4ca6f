package kube

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
)

// IsOutcomeUnknown reports whether a write that failed may be stored all the same. Nothing is stored if the API server
// could not be dialled, if its certificate was not trusted, if a plugin returned no credentials, or if the request was
// refused with a code below 500 or for a webhook. Anything else leaves it open: a code of 500 and above, the 408 of a
// proxy that did not wait for the answer, and every way in which an answer gets lost, such as a timeout or a reset
// stream. Not all of these are temporary.
func IsOutcomeUnknown(err error) bool {
	network, isNetwork := errors.AsType[*net.OpError](err)
	_, isUntrusted := errors.AsType[*tls.CertificateVerificationError](err)
	if err == nil || isNetwork && network.Op == "dial" || isUntrusted || lacksCredentials(err) ||
		isRefusedForWebhook(err) {
		return false
	}
	code := StatusOf(err).Code
	return code == 0 || code == http.StatusRequestTimeout || code >= http.StatusInternalServerError
}

// lacksCredentials reports whether a plugin of the kubeconfig returned none, for which client-go has no type.
func lacksCredentials(err error) bool { return strings.Contains(err.Error(), "getting credentials: ") }
