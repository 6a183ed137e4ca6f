package kube

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// UnknownFields returns the fields that the API server has refused in a strict write because its CRD does not have
// them, in its words; "" for another error. A patch's error also quotes the whole object.
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
