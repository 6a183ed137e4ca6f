package cluster

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Errors about an operation name its members, and explain what an organization can do about its quota.
func TestARefusedOperationSaysWhatToDo(t *testing.T) {
	operations := schema.GroupResource{Group: "appsec.dev", Resource: "triageoperations"}
	kind := schema.GroupKind{Group: "appsec.dev", Kind: "TriageOperation"}
	policy := apierrors.NewInvalid(kind, "op-1", nil)
	policy.ErrStatus.Message = "ValidatingAdmissionPolicy 'findings-reasons.appsec.dev' with binding 'all' denied request: a reason"
	for name, test := range map[string]struct {
		err    error
		status int
		code   string
		field  string
	}{
		"quota":     {apierrors.NewForbidden(operations, "op-1", errors.New("exceeded quota: findings-quota")), 409, "refused", ""},
		"forbidden": {apierrors.NewForbidden(operations, "op-1", errors.New("no role")), 500, "try_again", ""},
		"no reason": {policy, 400, problem.CodeReasonRequired, "set.reason"},
		"gone":      {apierrors.NewNotFound(operations, "op-1"), 404, "not_found", ""},
		"away":      {errors.New("connection refused"), 500, "try_again", ""},
	} {
		got := problem.Of(explainOperation(test.err, ""))
		if got.Status != test.status || got.Code != test.code || got.Field != test.field {
			t.Errorf("%s: got %d %s, field %q: %s", name, got.Status, got.Code, got.Field, got.Detail)
		}
	}
}

// Temporary errors say to try again, also when a starting API server forbids a request; permanent errors do
// not.
func TestARefusalSaysWhatToDo(t *testing.T) {
	findings := schema.GroupResource{Group: "appsec.dev", Resource: "findings"}
	for name, test := range map[string]struct {
		err    error
		status int
		again  bool
	}{
		"forbidden":     {apierrors.NewForbidden(findings, "f-1", errors.New("no role")), 500, true},
		"too many":      {apierrors.NewTooManyRequests("slow down", 1), 500, true},
		"internal":      {apierrors.NewInternalError(errors.New("etcd is away")), 500, true},
		"no connection": {errors.New("connection refused"), 500, true},
		"invalid":       {apierrors.NewInvalid(schema.GroupKind{Group: "appsec.dev", Kind: "Finding"}, "f-1", nil), 500, false},
		"denied by a webhook with the code of a deletion": {
			webhookerrors.ToStatusErr("hold.example.org", &metav1.Status{Code: http.StatusNotFound}), 500, true,
		},
		"deleted before":    {apierrors.NewNotFound(findings, "f-1"), 404, false},
		"a proxy's own 404": {harness.ProxyRefusal(http.StatusNotFound, http.MethodGet), 500, true},
	} {
		t.Run(name, func(t *testing.T) {
			explained, is := errors.AsType[*problem.Problem](explain("finding", test.err))
			if !is {
				t.Fatal("no problem")
			}
			if (explained.RetryAfter > 0) != test.again {
				t.Errorf("%q says to try again after %s", explained.Detail, explained.RetryAfter)
			}
			if explained.Status != test.status || strings.HasSuffix(explained.Detail, "; try again") != test.again {
				t.Errorf("got %d %q", explained.Status, explained.Detail)
			}
		})
	}
}

// The API server's refusal of a patch quotes the whole object, with its code and comments.
func TestARefusalByOlderCRDsLogsTheFieldsWithoutTheObject(t *testing.T) {
	const unknown, marker = `unknown field "spec.triage.expiresAt"`, "their secret code"
	refused := apierrors.NewInvalid(schema.GroupKind{Group: "appsec.dev", Kind: "Finding"}, "f-1", field.ErrorList{
		field.Invalid(field.NewPath("patch"), map[string]any{"spec": marker}, "strict decoding error: "+unknown),
	})
	for name, err := range map[string]error{"finding": explain("finding", refused), "operation": explainOperation(refused, "")} {
		if text := err.Error(); strings.Contains(text, marker) || !strings.Contains(text, unknown) {
			t.Errorf("%s: logged is %q", name, text)
		}
	}
}
