package kube

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// IsQuotaExceeded reports whether an error of the API server says that a ResourceQuota has no room for the object.
func IsQuotaExceeded(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
}

// IsQuotaUncounted reports whether the API server refused an object because a ResourceQuota limits its kind, but
// Kubernetes does not count it yet: for up to five minutes after the kind was installed.
func IsQuotaUncounted(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "status unknown for quota")
}
