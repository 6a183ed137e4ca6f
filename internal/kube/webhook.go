package kube

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// IsDeniedByWebhook reports whether an error of the API server says that an admission webhook denied the request. The
// webhook chooses the code, and may choose that of an outage. Of a webhook that is down, the API server says instead
// that calling it failed.
func IsDeniedByWebhook(err error) bool {
	answer := apierrors.APIStatus(nil)
	if !errors.As(err, &answer) {
		return false
	}
	message := answer.Status().Message
	return strings.HasPrefix(message, `admission webhook "`) && strings.Contains(message, `" denied the request`)
}

// IsRefusedForWebhook reports whether an error of the API server says that an admission webhook denied the request, or
// could not be called although it has to be: nothing was written.
func IsRefusedForWebhook(err error) bool {
	answer := apierrors.APIStatus(nil)
	return IsDeniedByWebhook(err) ||
		errors.As(err, &answer) && strings.Contains(answer.Status().Message, `failed calling webhook "`)
}
