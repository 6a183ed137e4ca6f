package kube

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// IsReasonRequired reports whether the API server refused to mute without a reason: the admission policy of this name
// requires one if the Organization does.
func IsReasonRequired(err error) bool {
	return apierrors.IsInvalid(err) && strings.Contains(err.Error(), "'findings-reasons.appsec.dev'")
}
