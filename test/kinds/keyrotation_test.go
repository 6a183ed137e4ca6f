package kinds

import (
	"log/slog"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver"
	"github.com/appsec-dev/findings-operator/controllers/apikey"
	"github.com/appsec-dev/findings-operator/internal/tokens"
	"github.com/appsec-dev/findings-operator/test/apiclient"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func startFacade(t *testing.T) *apiserver.Server {
	t.Helper()
	config, err := env.Facade(t.Context())
	harness.Must(t, err)
	server, err := apiserver.New(apiserver.Options{
		Config: config, BindAddress: "127.0.0.1:0", HealthBindAddress: "127.0.0.1:0",
		Namespace: testenv.SystemNamespace, KeyStaleness: time.Minute, Log: slog.New(slog.DiscardHandler),
	})
	harness.Must(t, err)
	harness.Background(t, server.Run)
	return server
}

// ask sends a request with the token, and returns the status of the answer.
func ask(t *testing.T, server *apiserver.Server, token string) int {
	t.Helper()
	rest := &apiclient.Client{Base: "http://" + server.Address(), Token: token}
	answer, err := rest.Do(t.Context(), http.MethodGet, "/v1/findings", "")
	harness.Must(t, err)
	return answer.Status
}

// Clients keep using their token, and each replica accepts the new one as soon as it can be read.
func TestSigningKeyIsRotatedUnderTraffic(t *testing.T) {
	controllertest.Start(t, env, apikey.Settings{
		Namespace: testenv.SystemNamespace, PublicationNotice: 6 * time.Second,
	}.SetupWithManager)
	replicas := []*apiserver.Server{startFacade(t), startFacade(t)}
	namespace := env.Organization(t, "rotated")
	key := builder.APIKey("ci").In(namespace).Mutate(func(k *v1alpha1.APIKey) {
		k.Spec.RateLimit = &v1alpha1.RateLimit{RequestsPerMinute: new(int32(100_000))}
	}).Build()
	env.Create(t, key)
	var before string
	harness.Eventually(t, func(g Gomega) {
		before = env.TokenNow(t, key)
		g.Expect(before).NotTo(BeEmpty())
		for _, replica := range replicas {
			g.Expect(ask(t, replica, before)).To(Equal(http.StatusOK))
		}
		testenv.Get(t, g, env, key)
	})
	settled := key.Status.DeepCopy()

	const overlap = 4 * time.Second
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: testenv.SystemNamespace, Name: tokens.SigningKeysConfigMap}}
	env.Patch(t, configMap, `{"metadata":{"annotations":{"appsec.dev/rotate-signing-key":"1","appsec.dev/signing-key-overlap":"4s"}}}`)

	after := waitForAnother(t, key, before, replicas)
	handedOut := time.Now()
	for i, replica := range replicas {
		if status := ask(t, replica, after); status != http.StatusOK {
			t.Fatalf("replica %d answers %d to a token that has just been handed out", i, status)
		}
	}
	refusedAt := waitUntilRefused(t, before, after, replicas)
	// The overlap is counted in whole seconds, and does not start exactly at handedOut.
	if lasted := refusedAt.Sub(handedOut); lasted < overlap-2*time.Second {
		t.Errorf("the previous token was good for another %v, want %v", lasted, overlap)
	}
	harness.Eventually(t, func(g Gomega) {
		g.Expect(testenv.Get(t, g, env, configMap).Data).To(HaveLen(1))
		testenv.Get(t, g, env, key)
		g.Expect(configMap.Data).To(HaveKey(key.Status.SigningKeyID + ".pem"))
	})
	// A rotation of the signing key alone changes neither the key's lifetime nor its ID.
	g := NewWithT(t)
	g.Expect(key.Status.SigningKeyID).NotTo(Equal(settled.SigningKeyID))
	g.Expect(key.Status.KeyID).To(Equal(settled.KeyID))
	g.Expect(key.Status.ExpiresAt).To(Equal(settled.ExpiresAt))
	g.Expect(key.Status.IssuedAt).To(Equal(settled.IssuedAt))
}

// pause is the time between two rounds of requests: many for each second of the overlap, and yet no load.
const pause = 20 * time.Millisecond

// waitForAnother keeps using the token until the Secret holds another one, which it returns.
func waitForAnother(t *testing.T, key *v1alpha1.APIKey, before string, replicas []*apiserver.Server) (after string) {
	t.Helper()
	ticker := time.NewTicker(pause / 5) // the next token is used as soon as it can be read
	defer ticker.Stop()
	for deadline := time.Now().Add(harness.Patience); time.Now().Before(deadline); <-ticker.C {
		if after = env.TokenNow(t, key); after != before {
			return after
		}
		for i, replica := range replicas {
			if status := ask(t, replica, before); status != http.StatusOK {
				t.Fatalf("replica %d answers %d while there is no other token", i, status)
			}
		}
	}
	t.Fatal("the token is not signed anew")
	return ""
}

// waitUntilRefused keeps using both tokens until every replica refuses the first, and returns when
// the first replica did.
func waitUntilRefused(t *testing.T, before, after string, replicas []*apiserver.Server) (first time.Time) {
	t.Helper()
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for deadline := time.Now().Add(harness.Patience); time.Now().Before(deadline); <-ticker.C {
		refused := 0
		for i, replica := range replicas {
			if status := ask(t, replica, after); status != http.StatusOK {
				t.Fatalf("replica %d answers %d to the new token", i, status)
			}
			switch status := ask(t, replica, before); status {
			case http.StatusOK:
			case http.StatusUnauthorized:
				refused++
				if first.IsZero() {
					first = time.Now()
				}
			default:
				t.Fatalf("replica %d answers %d to the previous token", i, status)
			}
		}
		if refused == len(replicas) {
			return first
		}
	}
	t.Fatal("the previous token is still accepted")
	return first
}
