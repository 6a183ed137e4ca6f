package main

import (
	"context"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Who commits an operation while another is asked about it wants it carried out, and may want to undo it.
func TestOnlyWhatNobodyHasCommittedIsDiscarded(t *testing.T) {
	scheme := runtime.NewScheme()
	harness.Must(t, v1alpha1.AddToScheme(scheme))
	for reason, tc := range map[string]struct {
		commits, stays bool
		spec           string
	}{
		"nobody has committed it":                {spec: `{}`},
		"somebody has":                           {spec: `{"commit":true}`, stays: true},
		"somebody does as it is being discarded": {spec: `{}`, commits: true, stays: true},
	} {
		write := func(c client.Client, spec string) {
			o := builder.TriageOperation("mute", "G1").In("org-acme").Build()
			harness.Must(t, c.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"spec":`+spec+`}`))))
		}
		var once sync.Once
		c := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
				if tc.commits {
					once.Do(func() { write(c, `{"commit":true}`) })
				}
				return c.Delete(ctx, o, options...)
			},
		}).WithObjects(builder.TriageOperation("mute", "G1").In("org-acme").Build()).Build()
		seen := builder.TriageOperation("mute", "G1").In("org-acme").Build()
		write(c, tc.spec)
		err := (&operating{session: &session{client: c, namespace: "org-acme"}, operation: seen}).discard(t.Context())
		if (err != nil) != tc.stays || err != nil && !strings.Contains(err.Error(), "somebody has committed it") {
			t.Errorf("%s: %v", reason, err)
		}
		gone := apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(seen), &v1alpha1.TriageOperation{}))
		if gone == tc.stays {
			t.Errorf("%s: it is gone: %t", reason, gone)
		}
	}
}
