package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
)

// A script that gets no token rotates again, and that ends the token which its clients use.
func TestATokenThatWasIssuedIsHandedOver(t *testing.T) {
	for reason, tc := range map[string]struct {
		failures   int
		token      string
		out, error string
	}{
		"a reset":             {1, "secret", "secret\n", ""},
		"an outage":           {100, "secret", "", "Do not rotate the key for it. Get the token with: kubectl get secret ci-token -n org-acme"},
		"the Secret is empty": {0, "", "", "there is no token in Secret ci-token, although one was issued"},
	} {
		check := func(t *testing.T) {
			streams, _, out, _ := genericiooptions.NewTestIOStreams()
			c := fake.NewClientBuilder().WithObjects(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "org-acme", Name: "ci-token"},
				Data:       map[string][]byte{v1alpha1.APIKeyTokenKey: []byte(tc.token)},
			}).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					if tc.failures--; tc.failures >= 0 {
						return down
					}
					return c.Get(ctx, key, o, options...)
				},
			}).Build()
			key := builder.APIKey("ci").In("org-acme").Build()
			key.Status.SecretRef = &v1alpha1.SecretReference{Name: "ci-token"}
			i := &issuance{cli: cli{streams: streams}, showToken: true}
			err := i.reportToken(t.Context(), &session{client: c, namespace: "org-acme"}, key, "issued")
			if out.String() != tc.out || (err == nil) != (tc.error == "") || err != nil && !strings.Contains(err.Error(), tc.error) {
				t.Errorf("it prints %q and ends with %v", out, err)
			}
		}
		t.Run(reason, func(t *testing.T) { synctest.Test(t, check) })
	}
}
