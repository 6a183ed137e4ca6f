package webhookdelivery

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// message is a received request.
type message struct {
	header http.Header
	body   string
}

// receiver is a server that records its requests and answers as configured.
type receiver struct {
	URL string

	mu       sync.Mutex
	messages []message
}

func newReceiver(t *testing.T, answer http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{}
	r.URL = harness.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		harness.NoError(t, "read a request", err)
		harness.Same(t, "the method", http.MethodPost, request.Method)
		r.mu.Lock()
		r.messages = append(r.messages, message{header: request.Header.Clone(), body: string(body)})
		r.mu.Unlock()
		answer(w, request)
	}))
	return r
}

func answers(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

// hold delays a response until it is released or the request is canceled: a failed test must not
// hang because of its own receiver.
func hold(request *http.Request, release <-chan struct{}) {
	select {
	case <-release:
	case <-request.Context().Done():
	}
}

func (r *receiver) got() []message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]message(nil), r.messages...)
}

// verifies checks one message by the text of Standard Webhooks 1.0.0, without a library. It returns
// the index of the signature made with the secret; -1 for none.
func verifies(m message, secret string) int {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return -1
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(m.header.Get("webhook-id") + "." + m.header.Get("webhook-timestamp") + "." + m.body))
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for i, given := range strings.Split(m.header.Get("webhook-signature"), " ") {
		if hmac.Equal([]byte(given), []byte(want)) {
			return i
		}
	}
	return -1
}

// secretOf reads the signing secret that was made for the endpoint.
func secretOf(t *testing.T, endpoint *v1alpha1.WebhookEndpoint) string {
	t.Helper()
	secret := &corev1.Secret{}
	harness.Eventually(t, func(g Gomega) {
		g.Expect(env.Client.Get(t.Context(), client.ObjectKey{Namespace: endpoint.Namespace, Name: endpoint.Name + "-webhook"}, secret)).To(Succeed())
	})
	return string(secret.Data[v1alpha1.WebhookSecretKey])
}
