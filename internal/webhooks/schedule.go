package webhooks

import (
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// NextAttempt is when a delivery is due for its next attempt, the zero time being at once, and
// whether it gets one at all.
//
// There is one attempt, at once. One whose outcome is unknown is repeated, once: the receiver may never
// have seen it, and tells a repetition by its webhook-id. Not more than once, or a payload that
// kills the controller would do so for ever.
func NextAttempt(attempts []v1alpha1.WebhookAttempt) (at time.Time, due bool) {
	switch len(attempts) {
	case 0:
		return time.Time{}, true
	case 1:
		return time.Time{}, attempts[0].Outcome == v1alpha1.WebhookAttemptUnknown
	}
	return time.Time{}, false
}
