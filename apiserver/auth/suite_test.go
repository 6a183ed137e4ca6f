package auth

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/tokens"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var env *testenv.Environment

func TestMain(m *testing.M) { testenv.Main(m, &env) }

// signer is the one signing key of all tests, published once.
var signer = sync.OnceValues(func() (tokens.SigningKey, error) {
	key := tokens.GenerateSigningKey()
	return key, publish(context.Background(), key.Public())
})

func publish(ctx context.Context, set tokens.KeySet) error {
	data, err := tokens.EncodeKeySet(set)
	if err != nil {
		return err
	}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: testenv.SystemNamespace, Name: tokens.SigningKeysConfigMap}, Data: data}
	err = env.Client.Create(ctx, configMap)
	if apierrors.IsAlreadyExists(err) {
		return env.Client.Update(ctx, configMap)
	}
	return err
}

// start runs an Authenticator with the rights that the facade has in a cluster.
func start(t *testing.T, change ...func(*Options)) *Authenticator {
	t.Helper()
	a := prepare(t, change...)
	harness.Background(t, a.Run)
	return a
}

// prepare returns the Authenticator that start runs.
func prepare(t *testing.T, change ...func(*Options)) *Authenticator {
	t.Helper()
	_, err := signer()
	harness.Must(t, err)
	config, err := env.Facade(t.Context())
	harness.Must(t, err)
	options := Options{Config: config, Namespace: testenv.SystemNamespace, Log: logr.Discard()}
	for _, c := range change {
		c(&options)
	}
	a, err := New(options)
	harness.Must(t, err)
	return a
}

// issue creates the key with a valid token, as the controllers would, and returns the header with the token.
func issue(t *testing.T, key *v1alpha1.APIKey, organization string) string {
	t.Helper()
	env.Create(t, key)
	now := time.Now().UTC().Truncate(time.Second)
	claims := tokens.Claims{KeyUID: key.UID, Organization: organization, ID: uuid.NewString(), IssuedAt: now, ExpiresAt: now.Add(time.Hour)}
	testenv.ChangeStatus(t, env, key, func(k *v1alpha1.APIKey) {
		k.Status.KeyID = claims.ID
		k.Status.IssuedAt = new(v1alpha1.NewTime(claims.IssuedAt))
		k.Status.ExpiresAt = new(v1alpha1.NewTime(claims.ExpiresAt))
	})
	return header(t, claims)
}

func header(t testing.TB, claims tokens.Claims) string {
	t.Helper()
	key, err := signer()
	harness.Must(t, err)
	token, err := key.Sign(claims)
	harness.Must(t, err)
	return "Bearer " + token
}

func setSpec(t *testing.T, key *v1alpha1.APIKey, change func(*v1alpha1.APIKeySpec)) {
	t.Helper()
	testenv.Change(t, env, key, func(k *v1alpha1.APIKey) { change(&k.Spec) })
}

func waitUntilAccepted(t *testing.T, a *Authenticator, header string) Identity {
	t.Helper()
	var identity Identity
	harness.Eventually(t, func(g Gomega) {
		var err error
		identity, err = a.Authenticate(header, time.Now())
		g.Expect(err).NotTo(HaveOccurred())
	})
	return identity
}

func waitUntilRefused(t *testing.T, a *Authenticator, header string, want Reason) {
	t.Helper()
	harness.Eventually(t, func(g Gomega) {
		_, err := a.Authenticate(header, time.Now())
		g.Expect(err).To(MatchError(ErrUnauthenticated))
		g.Expect(ReasonOf(err)).To(Equal(want))
	})
}

// acceptedKey creates an organization and a key of it that the Authenticator accepts, and returns the key and its header.
func acceptedKey(t *testing.T, a *Authenticator, organization string) (key *v1alpha1.APIKey, header string) {
	t.Helper()
	key = builder.APIKey("ci").In(env.Organization(t, organization)).Build()
	header = issue(t, key, organization)
	waitUntilAccepted(t, a, header)
	return key, header
}

// withTransport puts a round tripper around the connection to the API server.
func withTransport(wrap func(*rest.Config)) func(*Options) {
	return func(o *Options) {
		o.Config = rest.CopyConfig(o.Config)
		wrap(o.Config)
	}
}
