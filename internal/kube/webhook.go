package kube

import "strings"

// IsDeniedByWebhook reports whether an admission webhook denied the request. The webhook chooses the status code,
// perhaps that of an outage. If a webhook is down, the error instead says that calling it failed.
func IsDeniedByWebhook(err error) bool {
	message := StatusOf(err).Message
	return strings.HasPrefix(message, `admission webhook "`) && strings.Contains(message, `" denied the request`)
}

// isRefusedForWebhook reports whether an admission webhook denied the request, or a required one could not be called:
// nothing was written.
func isRefusedForWebhook(err error) bool {
	return IsDeniedByWebhook(err) || strings.Contains(StatusOf(err).Message, `failed calling webhook "`)
}
