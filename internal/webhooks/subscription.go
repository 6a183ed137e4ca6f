package webhooks

import (
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Subscribes reports whether the endpoint gets an event of that type and time.
//
// What happened before the endpoint was made is none of its business. Both times are kept to
// the second, and an event of the endpoint's own second is sent.
func Subscribes(endpoint *v1alpha1.WebhookEndpoint, eventType string, at time.Time) bool {
	return Enabled(endpoint) &&
		!at.Before(endpoint.CreationTimestamp.Truncate(time.Second)) &&
		asksFor(endpoint.Spec.Events, eventType)
}

// Enabled reports whether deliveries are made for the endpoint at all. What happens while they are
// not is not made up for.
func Enabled(endpoint *v1alpha1.WebhookEndpoint) bool {
	return endpoint.DeletionTimestamp.IsZero() && !endpoint.IsDisabled()
}

// Backlogged reports whether no deliveries are made for the endpoint for now: it has too many.
func Backlogged(endpoint *v1alpha1.WebhookEndpoint) bool {
	return v1alpha1.IsConditionTrue(endpoint.Status.Conditions, v1alpha1.ConditionBacklogged)
}

// asksFor reports whether one of the patterns stands for the type. No patterns ask for all.
func asksFor(patterns []v1alpha1.WebhookEventPattern, eventType string) bool {
	for _, pattern := range patterns {
		if matches(string(pattern), eventType) {
			return true
		}
	}
	return len(patterns) == 0
}

// matches reports whether the pattern stands for the type: "*", "finding.*", "finding.created".
func matches(pattern, eventType string) bool {
	if group, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(eventType, group)
	}
	return pattern == eventType
}
