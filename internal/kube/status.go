package kube

import (
	"errors"

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
