// Package cursorkeys creates the Secret with the keys that the REST facade's replicas authenticate
// cursors with, so that no key has to be made by hand or stored in a chart's release or in Git.
package cursorkeys

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

const (
	// firstKey names the key. The facade signs with the one whose name sorts last.
	firstKey = "key-1"
	// keySize is the size in bytes of the hash that authenticates cursors.
	keySize = 32
	// requestTimeout bounds one attempt.
	requestTimeout = 10 * time.Second
	// recheckInterval is how soon a deleted Secret is created again.
	recheckInterval = time.Minute
)

// Maker creates the Secret. It is a Runnable that runs on every replica: the first one wins, and
// the facade's pods, which wait for the Secret, need not wait for an election.
type Maker struct {
	// Clock is replaced by tests.
	Clock clock.Clock

	client          kubernetes.Interface
	namespace, name string
	log             logr.Logger
}

// New returns a Maker of the named Secret; config is for the cluster that the facade runs in.
func New(config *rest.Config, namespace, name string, log logr.Logger) (*Maker, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the Secret of cursor keys: %w", err)
	}
	return &Maker{Clock: clock.RealClock{}, client: client, namespace: namespace, name: name, log: log}, nil
}

// NeedLeaderElection returns false: creating a missing Secret needs no leader.
func (*Maker) NeedLeaderElection() bool { return false }

// Start creates the Secret whenever it does not exist, until ctx ends. An existing Secret is not
// changed: users rotate the keys, and a changed key invalidates the cursors of all lists under way.
func (m *Maker) Start(ctx context.Context) error {
	first := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Steps: 6, Cap: recheckInterval}
	backoff := first
	for {
		next := recheckInterval
		if err := m.make(ctx); err == nil {
			backoff = first
		} else if ctx.Err() == nil {
			// The quota is checked first: if it is used up, the error does not tell whether the Secret exists.
			m.log.Error(err, "The Secret of cursor keys could not be made; without it, the REST API's pods wait for it")
			next = backoff.Step()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-m.Clock.After(next):
		}
	}
}

func (m *Maker) make(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	key := make([]byte, keySize)
	rand.Read(key) //nolint:errcheck // never fails: it ends the process instead
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: m.name, Namespace: m.namespace,
			Labels: map[string]string{"app.kubernetes.io/name": "findings-operator"},
		},
		Data: map[string][]byte{firstKey: key},
	}
	// Create without a Get first: the role allows creating Secrets here, but not reading them. First as a dry run: even
	// if the Secret exists, the API server adds a creation to the used quota.
	secrets := m.client.CoreV1().Secrets(m.namespace)
	options := metav1.CreateOptions{FieldManager: v1alpha1.ControllerFieldManager, DryRun: []string{metav1.DryRunAll}}
	_, err := secrets.Create(ctx, secret, options)
	if err == nil {
		options.DryRun = nil
		_, err = secrets.Create(ctx, secret, options)
	}
	switch {
	case err == nil:
		m.log.Info("Made the Secret of cursor keys", "secret", m.name)
		return nil
	case kube.IsAlreadyExists(err):
		return nil
	default:
		return fmt.Errorf("create the Secret %s/%s: %w", m.namespace, m.name, err)
	}
}
