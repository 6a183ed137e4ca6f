package kube

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// IsDeniedByWebhook reports whether an admission webhook denied the request. The webhook chooses the status code,
// perhaps that of an outage. If a webhook is down, the error instead says that calling it failed.
func IsDeniedByWebhook(err error) bool {
	answer := apierrors.APIStatus(nil)
	if !errors.As(err, &answer) {
		return false
	}
	message := answer.Status().Message
	return strings.HasPrefix(message, `admission webhook "`) && strings.Contains(message, `" denied the request`)
}

// IsRefusedForWebhook reports whether an admission webhook denied the request, or a required one could not be called:
// nothing was written.
func IsRefusedForWebhook(err error) bool {
	answer := apierrors.APIStatus(nil)
	return IsDeniedByWebhook(err) ||
		errors.As(err, &answer) && strings.Contains(answer.Status().Message, `failed calling webhook "`)
}
