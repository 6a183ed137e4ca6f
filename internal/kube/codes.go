package kube

import apierrors "k8s.io/apimachinery/pkg/api/errors"

// IsConflict reports whether the API server refused a write because the object has changed since it was read. Unlike
// that of apierrors, it is false for an admission webhook's denial with that code: nothing has changed, and the same
// write would be denied again.
func IsConflict(err error) bool { return apierrors.IsConflict(err) && !IsDeniedByWebhook(err) }

// IsNotFound reports whether the API server knows the kind, and has no object of that name. It is false for a webhook's
// denial, like IsConflict, and if IsUnknownKind: the 404 of a proxy says nothing about the object.
func IsNotFound(err error) bool {
	return apierrors.IsNotFound(err) && !IsDeniedByWebhook(err) && !IsUnknownKind(err)
}

// IsAlreadyExists reports whether an object with the name of the new one exists. It is false for a webhook's denial,
// like IsConflict.
func IsAlreadyExists(err error) bool {
	return apierrors.IsAlreadyExists(err) && !IsDeniedByWebhook(err)
}

// IgnoreNotFound returns nil if IsNotFound, else the error.
func IgnoreNotFound(err error) error {
	if IsNotFound(err) {
		return nil
	}
	return err
}
