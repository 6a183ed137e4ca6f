package kube

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsConflict reports whether the API server refused a write because the object has changed since it was read. Unlike
// that of apierrors, it is false for that code from an admission webhook or a proxy: they do not know whether the
// object has changed, and may refuse the same write again.
func IsConflict(err error) bool { return apierrors.IsConflict(err) && isOwnAnswer(err) }

// IsNotFound reports whether the API server knows the kind, and has no object of that name. It is false for that code
// from a webhook or a proxy, like IsConflict. The answer about an unknown kind looks like that of a proxy.
func IsNotFound(err error) bool { return apierrors.IsNotFound(err) && isOwnAnswer(err) }

// IsAlreadyExists reports whether an object with the name of the new one exists. It is false for that code from a
// webhook or a proxy, like IsConflict.
func IsAlreadyExists(err error) bool { return apierrors.IsAlreadyExists(err) && isOwnAnswer(err) }

// isOwnAnswer reports whether neither an admission webhook nor a proxy chose the code of the error.
func isOwnAnswer(err error) bool {
	return !IsDeniedByWebhook(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// IgnoreNotFound returns nil if IsNotFound, else the error.
func IgnoreNotFound(err error) error {
	if IsNotFound(err) {
		return nil
	}
	return err
}
