package kube

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StatusOf returns the status that answered a request, if err is or wraps it. Its code is 0 if the request had no
// answer, or one without a code.
func StatusOf(err error) metav1.Status {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return metav1.Status{}
	}
	return answer.Status()
}

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

// IsRefusal reports whether the API server refused a request, such as the removal of an object, for example because of
// a cluster's own admission policy: the same request would be refused again. A policy or webhook chooses the status
// code. Only a webhook may choose that of an outage, and such a refusal is recognised as one.
func IsRefusal(err error) bool {
	if IsDeniedByWebhook(err) {
		return true
	}
	switch code := StatusOf(err).Code; code {
	case http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusGone, http.StatusTooManyRequests:
		return false
	default:
		return code >= http.StatusBadRequest && code < http.StatusInternalServerError
	}
}

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

// IsQuotaExceeded reports whether an error of the API server says that a ResourceQuota has no room for the object.
func IsQuotaExceeded(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
}

// IsQuotaUncounted reports whether the API server refused an object because a ResourceQuota limits its kind, but
// Kubernetes does not count it yet: for up to five minutes after the kind was installed.
func IsQuotaUncounted(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "status unknown for quota")
}

// IsReasonRequired reports whether the API server refused to mute without a reason: the admission policy of this name
// requires one if the Organization does.
func IsReasonRequired(err error) bool {
	return apierrors.IsInvalid(err) && strings.Contains(err.Error(), "'findings-reasons.appsec.dev'")
}

// HasOtherUID reports whether the API server refused a patch because it names the UID of an earlier object of that
// name.
func HasOtherUID(err error) bool {
	details := StatusOf(err).Details
	return apierrors.IsInvalid(err) && details != nil &&
		slices.ContainsFunc(details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}

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
