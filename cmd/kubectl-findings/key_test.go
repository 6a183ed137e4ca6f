package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// A script that gets no token rotates again, and that ends the token which its clients use.
func TestATokenThatWasIssuedIsHandedOver(t *testing.T) {
	for reason, tc := range map[string]struct {
		failures   int
		closed     bool // standard output
		token      string
		out, error string
	}{
		"a reset":                  {1, false, "secret", "secret\n", ""},
		"an outage":                {100, false, "secret", "", "Do not rotate the key for it. Get the token with: kubectl get secret ci-token -o 'go-template={{.data.token | base64decode}}' -n org-acme"},
		"the token is not printed": {0, true, "secret", "", "Do not rotate the key for it. Get the token with: kubectl get secret ci-token -o 'go-template={{.data.token | base64decode}}' -n org-acme"},
		"the Secret is empty":      {0, false, "", "", "there is no token in Secret ci-token, although one was issued"},
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
			if tc.closed {
				reader, writer := io.Pipe()
				harness.Must(t, reader.Close())
				i.streams.Out = writer
			}
			err := i.reportToken(t.Context(), &session{client: c, namespace: "org-acme"}, key, "issued")
			if out.String() != tc.out || (err == nil) != (tc.error == "") || err != nil && !strings.Contains(err.Error(), tc.error) {
				t.Errorf("it prints %q and ends with %v", out, err)
			}
		}
		t.Run(reason, func(t *testing.T) { synctest.Test(t, check) })
	}
}

// Whoever takes another name instead leaves a valid key behind that nobody knows.
func TestAKeyWhoseCreationGotNoAnswerMayExist(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return apierrors.NewTimeoutError("the answer was lost", 0)
		},
	}).Build()
	s := &session{client: c, namespace: "org-acme"}
	err := (&keyCreateOptions{}).create(t.Context(), s, builder.APIKey("ci").In("org-acme").Build())
	harness.ErrorContains(t, "the error", err, "it is not known whether API key ci was created: Timeout: the answer was lost",
		"create that again: kubectl get apikey ci -o 'jsonpath={.status.secretRef.name}' -n org-acme")
}

// The first write is stored, and then the server is away for a moment. A second rotation would end the current token.
func TestAKeyIsRotatedOnceAlthoughTheAnswerAsksToTryAgain(t *testing.T) {
	key, patches := builder.APIKey("ci").In("org-acme").Build(), 0
	config := &rest.Config{Host: "http://nowhere.invalid"}
	harness.Between(config, func(_ http.RoundTripper, r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPatch {
			if patches++; patches == 2 {
				return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
			}
			harness.Must(t, json.NewDecoder(r.Body).Decode(key))
			if patches == 1 {
				header := http.Header{"Retry-After": {"0"}}
				return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: header, Body: http.NoBody}, nil
			}
		}
		stored := bytes.NewReader(harness.JSON(t, key))
		header := http.Header{"Content-Type": {"application/json"}}
		return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(stored)}, nil
	})
	c, err := newClient(config)
	harness.Must(t, err)
	synctest.Test(t, func(t *testing.T) {
		s := &session{client: c, namespace: "org-acme"}
		harness.Must(t, (&rotateOptions{}).request(t.Context(), s, "ci", &v1alpha1.APIKey{}))
	})
	harness.Same(t, "patches", 1, patches)
	harness.Same(t, "the serial", int64(1), key.Spec.Rotation.WantedSerial())
}

// The clock of this machine is behind: by it the new end would be over already, and end the token that clients use.
func TestTheNewEndOfAKeyIsByTheTimeOfTheAPIServer(t *testing.T) {
	ahead := 2 * time.Hour
	testenv.SetServerTime(t, time.Now())
	c := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).WithObjects(builder.APIKey("ci").In("org-acme").Build()).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				testenv.SetServerTime(t, time.Now().Add(ahead))
				return c.Get(ctx, key, o, options...)
			},
		}).Build()
	o := &rotateOptions{issuance: issuance{expiresIn: time.Hour}}
	key := &v1alpha1.APIKey{}
	harness.Must(t, o.request(t.Context(), &session{client: c, namespace: "org-acme"}, "ci", key))
	if until := time.Until(key.Spec.ExpiresAt.Time); until < ahead {
		t.Errorf("it ends in %s by the clock of this machine, want in 3h", until)
	}
}
