package main

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericiooptions"
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

// hasty shortens the pauses between attempts, until the test ends.
func hasty(t *testing.T) {
	before := restart
	restart.Duration = time.Millisecond
	t.Cleanup(func() { restart = before })
}

// waiting is a command that waits for a committed operation. Its reads of the operation return the outcomes one after
// another, the last one again and again, and its watches break.
func waiting(outcomes ...any) *operating {
	down := apierrors.NewServiceUnavailable("it restarts")
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			outcome := outcomes[0]
			if len(outcomes) > 1 {
				outcomes = outcomes[1:]
			}
			if err, failed := outcome.(error); failed {
				return err
			}
			o.(*v1alpha1.TriageOperation).Status.Phase = outcome.(v1alpha1.OperationPhase)
			return nil
		},
		Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
			return nil, down
		},
	}).Build()
	return &operating{
		triageOptions: &triageOptions{shell: shell{streams: genericiooptions.NewTestIOStreamsDiscard()}, quiet: true},
		session:       &session{client: c, namespace: "org-acme"},
		operation:     builder.TriageOperation("mute", "G1").In("org-acme").Build(),
	}
}

// A restart of the API server takes a few attempts; a long operation outlasts many.
func TestAWaitOutlastsManyRestarts(t *testing.T) {
	hasty(t)
	down := apierrors.NewServiceUnavailable("it restarts")
	var outcomes []any
	for range restart.Steps {
		outcomes = append(outcomes, down, down, v1alpha1.OperationRunning)
	}
	if err := waiting(append(outcomes, v1alpha1.OperationCompleted)...).finish(t.Context()); err != nil {
		t.Errorf("it ends with %v", err)
	}
}

func TestAWaitThatFailsSaysThatTheOperationGoesOn(t *testing.T) {
	hasty(t)
	for reason, tc := range map[string]struct {
		outcome any
		goesOn  bool
	}{
		"the API server is gone":   {apierrors.NewServiceUnavailable("it is gone"), true},
		"the user may not read":    {apierrors.NewForbidden(schema.GroupResource{}, "mute", nil), true},
		"it is recorded as failed": {v1alpha1.OperationFailed, false},
		"somebody has removed it":  {apierrors.NewNotFound(schema.GroupResource{}, "mute"), false},
	} {
		err := waiting(tc.outcome).finish(t.Context())
		if err == nil {
			t.Errorf("%s: the wait succeeds", reason)
			continue
		}
		for _, says := range []string{"operation mute goes on in the cluster", "kubectl findings triage --undo mute -n org-acme"} {
			if strings.Contains(err.Error(), says) != tc.goesOn {
				t.Errorf("%s: it says %q, want %q in it: %t", reason, err, says, tc.goesOn)
			}
		}
	}
}
