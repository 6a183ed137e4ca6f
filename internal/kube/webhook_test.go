package kube

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"

	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestIsDeniedByWebhook(t *testing.T) {
	denied := func(answer *metav1.Status) error { return webhookerrors.ToStatusErr("hold.example.org", answer) }
	for reason, tc := range map[string]struct {
		err     error
		want    bool
		refused bool // although the webhook has not denied it
	}{
		"with the code of an outage": {
			fmt.Errorf("remove it: %w", denied(&metav1.Status{Code: http.StatusServiceUnavailable, Message: "a legal hold"})), true, false,
		},
		"with a reason alone":      {denied(&metav1.Status{Reason: metav1.StatusReasonTooManyRequests}), true, false},
		"without explanation":      {denied(nil), true, false},
		"it cannot answer dry run": {webhookerrors.NewDryRunUnsupportedErr("hold.example.org"), false, false},
		"it is down": {
			apierrors.NewInternalError(errors.New(`failed calling webhook "hold.example.org": no route to host`)), false, true,
		},
		"the API server is down": {errors.New("connection refused"), false, false},
		"another error":          {apierrors.NewBadRequest(`of admission webhook "x" denied the request`), false, false},
	} {
		harness.Same(t, reason, tc.want, IsDeniedByWebhook(tc.err))
		harness.Same(t, reason+": for the webhook", tc.want || tc.refused, isRefusedForWebhook(tc.err))
	}
}
