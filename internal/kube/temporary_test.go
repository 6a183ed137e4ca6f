package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"

	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestWhichErrorsMayPass(t *testing.T) {
	status := func(code int) error {
		return apierrors.NewGenericServerResponse(code, "patch", schema.GroupResource{}, "", "", 0, true)
	}
	uncounted := apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("status unknown for quota: findings-quota, "+
		"resources: count/findings.appsec.dev"))
	for reason, tc := range map[string]struct {
		err  error
		want bool
	}{
		"no connection in time":       {&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, true},
		"no answer in time":           {fmt.Errorf("get: %w", context.DeadlineExceeded), true},
		"a proxy gave up waiting":     {status(http.StatusRequestTimeout), true},
		"overload":                    {status(http.StatusTooManyRequests), true},
		"a quota whose kinds are new": {uncounted, true},
		"an unknown kind":             {status(http.StatusNotFound), false},
		"a field that the CRD does not have": {
			apierrors.NewInternalError(errors.New(".spec.tomorrow: field not declared in schema")), false,
		},
		"a webhook denies it with the code of an outage": {
			webhookerrors.ToStatusErr("hold.example.org", &metav1.Status{Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable}), false,
		},
		"it is interrupted": {context.Canceled, false},
	} {
		harness.Same(t, reason, tc.want, IsTemporary(tc.err))
	}
}
