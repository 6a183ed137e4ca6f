package kube

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// A controller would take its own write for done, or repeat it at once for ever. Another server, such as a proxy, knows
// of no object.
func TestOnlyTheAPIServersOwnAnswerCountsWhateverTheCode(t *testing.T) {
	findings := schema.GroupResource{Resource: "findings"}
	type answers struct{ Conflict, NotFound, Exists bool }
	denied := func(code int32, reason metav1.StatusReason) error {
		return fmt.Errorf("write it: %w", webhookerrors.ToStatusErr("x", &metav1.Status{Code: code, Reason: reason}))
	}
	for reason, tc := range map[string]struct {
		err  error
		want answers
	}{
		"a conflict":                    {apierrors.NewConflict(findings, "f-1", errors.New("moved on")), answers{Conflict: true}},
		"it does not exist":             {fmt.Errorf("get: %w", apierrors.NewNotFound(findings, "f-1")), answers{NotFound: true}},
		"it exists":                     {apierrors.NewAlreadyExists(findings, "f-1"), answers{Exists: true}},
		"denied with a conflict's code": {denied(http.StatusConflict, ""), answers{}},
		"denied with the code 404":      {denied(http.StatusNotFound, ""), answers{}},
		"denied as NotFound":            {denied(0, metav1.StatusReasonNotFound), answers{}},
		"denied as AlreadyExists":       {denied(http.StatusConflict, metav1.StatusReasonAlreadyExists), answers{}},
		"another server's 404":          {harness.ProxyRefusal(http.StatusNotFound, http.MethodGet), answers{}},
		"another server's 409":          {harness.ProxyRefusal(http.StatusConflict, http.MethodPut), answers{}},
		"another server's 409 to POST":  {harness.ProxyRefusal(http.StatusConflict, http.MethodPost), answers{}},
		"no error":                      {nil, answers{}},
	} {
		got := answers{IsConflict(tc.err), IsNotFound(tc.err), IsAlreadyExists(tc.err)}
		harness.Same(t, reason, tc.want, got)
		if ignored := IgnoreNotFound(tc.err); (ignored == nil) != (tc.err == nil || tc.want.NotFound) {
			t.Errorf("%s: IgnoreNotFound returns %v", reason, ignored)
		}
	}
}

// A cluster's own policy or webhook chooses the code of its refusal.
func TestIsRefusal(t *testing.T) {
	for code, want := range map[int32]bool{400: true, 401: true, 403: true, 404: false, 408: false, 409: false, 410: false,
		413: true, 422: true, 429: false, 451: true, 500: false} {
		err := &apierrors.StatusError{ErrStatus: metav1.Status{Code: code}}
		harness.Same(t, fmt.Sprintf("%d is a refusal", code), want, IsRefusal(fmt.Errorf("remove it: %w", err)))
		err.ErrStatus.Message = `admission webhook "hold.example.org" denied the request: a legal hold`
		harness.Same(t, fmt.Sprintf("%d of a webhook is a refusal", code), true, IsRefusal(fmt.Errorf("remove it: %w", err)))
	}
	harness.Same(t, "an outage is a refusal", false, IsRefusal(errors.New("connection refused")))
}

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
