package cluster

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
)

// What may pass by itself says to try again, also what a starting API server forbids; what cannot
// does not.
func TestARefusalSaysWhatToDo(t *testing.T) {
	findings := schema.GroupResource{Group: "appsec.dev", Resource: "findings"}
	for name, test := range map[string]struct {
		err    error
		status int
		again  bool
	}{
		"forbidden":      {apierrors.NewForbidden(findings, "f-1", errors.New("no role")), 500, true},
		"too many":       {apierrors.NewTooManyRequests("slow down", 1), 500, true},
		"internal":       {apierrors.NewInternalError(errors.New("etcd is away")), 500, true},
		"no connection":  {errors.New("connection refused"), 500, true},
		"invalid":        {apierrors.NewInvalid(schema.GroupKind{Group: "appsec.dev", Kind: "Finding"}, "f-1", nil), 500, false},
		"deleted before": {apierrors.NewNotFound(findings, "f-1"), 404, false},
	} {
		t.Run(name, func(t *testing.T) {
			var explained *problem.Problem
			if !errors.As(explain(test.err), &explained) {
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
