package importer

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/safely"
)

// The facade imports for all organizations in one process.
func TestAPanicWhileWritingFailsTheImportAlone(t *testing.T) {
	panics := interceptor.NewClient(nil, interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			panic("no such finding")
		},
	})
	held := &lock{duration: time.Hour}
	held.renewedAt.Store(new(time.Now()))
	w := &writer{im: New(&Client{Client: panics}, Target{}, Options{}), lock: held}
	err := w.all(t.Context(), []change{{action: ActionCreate, name: "f-1", spec: v1alpha1.FindingSpec{}}})
	if safely.Stack(err) == "" {
		t.Errorf("got %v, want the panic", err)
	}
}

func TestWhatIsRefusedBecauseOfTheObject(t *testing.T) {
	findings := schema.GroupResource{Group: v1alpha1.GroupName, Resource: "findings"}
	forbidden := func(why string) error { return apierrors.NewForbidden(findings, "f-1", errors.New(why)) }
	for name, tc := range map[string]struct {
		reason string
		err    error
		object bool
	}{
		"invalid":                {"the schema refuses the object", apierrors.NewInvalid(schema.GroupKind{Kind: "Finding"}, "f-1", nil), true},
		"a cluster's own policy": {"it may accept other objects", forbidden("ValidatingAdmissionPolicy 'hold' with binding 'hold' denied request: a legal hold"), true},
		"a webhook":              {"it may accept other objects", forbidden(`admission webhook "hold.example.com" denied the request: a legal hold`), true},
		"a webhook that sets no code": {"it may accept other objects",
			&apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusBadRequest, Message: `admission webhook "hold.example.com" denied the request: a legal hold`}}, true},
		"a webhook that is down": {"it is asked again",
			&apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusServiceUnavailable, Message: `admission webhook "hold.example.com" denied the request: no database`}}, false},
		"this project's policy": {"the account may write no facts",
			forbidden("ValidatingAdmissionPolicy 'findings-facts.appsec.dev' with binding 'findings-facts.appsec.dev' denied request: me needs the verb report"), false},
		"no role":  {"the account may write nothing", forbidden(`User "me" cannot patch resource "findings"`), false},
		"quota":    {"nothing else can be created either", forbidden("exceeded quota: findings"), false},
		"conflict": {"it is decided again", apierrors.NewConflict(findings, "f-1", errors.New("changed")), false},
	} {
		if got := RefusesObject(tc.err); got != tc.object {
			t.Errorf("%s: %t, want %t, because %s", name, got, tc.object, tc.reason)
		}
	}
}
