package kube

import (
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HasOtherUID reports whether the API server refused a patch because it names the UID of an earlier object of that
// name.
func HasOtherUID(err error) bool {
	details := StatusOf(err).Details
	return apierrors.IsInvalid(err) && details != nil &&
		slices.ContainsFunc(details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}
