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
