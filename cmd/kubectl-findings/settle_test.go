package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Requests that get no answer end with the same error as the whole wait.
func TestAWaitForStatesSaysWhyItEnds(t *testing.T) {
	for reason, tc := range map[string]struct {
		timeout time.Duration
		// interrupted is when the user ends the command.
		interrupted time.Duration
		want        string
	}{
		"the API server does not answer": {time.Hour, time.Hour, "the import is complete, but scan s-1 cannot be read"},
		"the time is up":                 {time.Minute, time.Hour, "not all states were recorded within 1m0s"},
		"it is interrupted":              {time.Hour, time.Minute, "the wait until all states are recorded was interrupted"},
	} {
		check := func(t *testing.T) {
			c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
					<-ctx.Done()
					return ctx.Err()
				},
			}).Build()
			o := &importOptions{timeout: tc.timeout}
			o.streams = genericiooptions.NewTestIOStreamsDiscard()
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			time.AfterFunc(tc.interrupted, interrupt)
			err := o.awaitSettled(ctx, &session{client: c, namespace: "org-acme"}, []*importer.Summary{{Scan: "s-1"}})
			harness.ErrorContains(t, "its end", err, tc.want)
		}
		t.Run(reason, func(t *testing.T) { synctest.Test(t, check) })
	}
}
