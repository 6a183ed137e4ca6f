package kube

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsUnknownKind reports whether the API server does not know the requested kind, or another server, such as a proxy,
// answered with its own 404: the two look alike.
func IsUnknownKind(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// UnknownFields returns the fields that the API server has refused in a strict write because its CRD does not have
// them, in its words; "" for another error. The error of a patch also quotes the whole object.
func UnknownFields(err error) string {
	const before = "strict decoding error: "
	if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		return ""
	}
	text := err.Error()
	at := strings.LastIndex(text, before+"unknown field ")
	if at < 0 {
		return ""
	}
	return text[at+len(before):]
}

// LacksField reports whether the API server has refused a write because its CRDs do not have a field: they are older
// than the writer. The error of an apply is an internal one.
func LacksField(err error) bool {
	return err != nil && (UnknownFields(err) != "" || strings.Contains(err.Error(), "field not declared in schema"))
}
