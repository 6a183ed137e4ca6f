// Package auth identifies the sender of a request. A token's signature proves which APIKey it was issued
// for; whether the key is valid now is read from a view of the APIKeys and
// Organizations that is at most about a second behind the API server.
package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/apitime"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/tokens"
)

// listInterval is how often everything is listed.
const listInterval = time.Second

// cacheSize is how many tokens' signatures are remembered.
const cacheSize = 4096

// dialTimeout and keepAlive are client-go's defaults.
const (
	dialTimeout = 30 * time.Second
	keepAlive   = 30 * time.Second
)

// Options of an Authenticator. Zero values mean the defaults.
type Options struct {
	// Config reaches the API server with the rights of the facade.
	Config *rest.Config
	// Namespace is the operator's own, which holds the public signing keys.
	Namespace string
	// Staleness is how old the key data may be before requests are refused.
	Staleness time.Duration
	// Unreadables records objects that cannot be read; may be nil.
	Unreadables *kube.Unreadables
	// Log receives what an operator should know, but never a token.
	Log logr.Logger
}

// Authenticator identifies requests. It is safe for concurrent use.
type Authenticator struct {
	staleness time.Duration
	interval  time.Duration
	log       logr.Logger

	keys          *view[*v1alpha1.APIKey]
	organizations *view[*v1alpha1.Organization]
	signingKeys   atomic.Pointer[tokens.KeySet]
	signatures    *signatures
	usage         *usage
	refusals      *refusals
	feeds         []*feed
	changed       bell

	writer client.WithWatch
}

// New returns an Authenticator that knows nothing until it runs.
func New(options Options) (*Authenticator, error) {
	if options.Config == nil || options.Namespace == "" {
		return nil, errors.New("auth: the API server's config and the operator's namespace are required")
	}
	if options.Unreadables == nil {
		options.Unreadables = kube.NewUnreadables(options.Log, nil)
	}
	a := &Authenticator{
		staleness:  cmp.Or(options.Staleness, tokens.DefaultKeyStaleness),
		interval:   listInterval,
		log:        options.Log,
		signatures: newSignatures(cacheSize),
		usage:      newUsage(),
		refusals:   newRefusals(),
	}
	a.signingKeys.Store(&tokens.KeySet{})
	a.keys = newView(func(*v1alpha1.APIKey) string { return "" }, keysDecideAlike,
		func(map[types.NamespacedName]*v1alpha1.APIKey) { a.changed.ring() })
	a.organizations = newView(
		func(o *v1alpha1.Organization) string { return o.Status.Namespace }, organizationsDecideAlike,
		func(map[types.NamespacedName]*v1alpha1.Organization) { a.changed.ring() })
	return a, a.connect(options)
}

func (a *Authenticator) connect(options Options) error {
	clientOptions, err := knownKinds()
	if err != nil {
		return err
	}
	config := rest.CopyConfig(options.Config)
	// Each user of this client bounds its own requests; with a shared limit one part could starve another.
	config.QPS = -1
	if a.writer, err = client.NewWithWatch(config, clientOptions); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	watches, err := kube.NewReader(config)
	if err != nil {
		return err
	}
	configMaps := newView(func(*corev1.ConfigMap) string { return "" }, nil, a.useSigningKeys)
	signingKeys := client.ObjectKey{Namespace: options.Namespace, Name: tokens.SigningKeysConfigMap}
	keys, keysErr := newFeed(&v1alpha1.APIKey{}, watches, config, options.Unreadables, a.keys)
	organizations, organizationsErr := newFeed(&v1alpha1.Organization{}, watches, config, options.Unreadables,
		a.organizations)
	public, publicErr := newConfigMapFeed(signingKeys, a.writer, config, clientOptions, configMaps)
	a.feeds = []*feed{keys, organizations, public}
	return errors.Join(keysErr, organizationsErr, publicErr)
}

// knownKinds returns the options that spare the clients API discovery.
func knownKinds() (client.Options, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), eventsv1.AddToScheme(scheme),
		v1alpha1.AddToScheme(scheme)); err != nil {
		return client.Options{}, err
	}
	mapper := kube.NewMapper()
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(eventsv1.SchemeGroupVersion.WithKind("Event"), meta.RESTScopeNamespace)
	return client.Options{Scheme: scheme, Mapper: mapper}, nil
}

// Run keeps the view up to date until the context ends, and then returns nil. It returns early if the Kubernetes API
// shows an earlier state than before: anything that this process knows may have been lost.
func (a *Authenticator) Run(ctx context.Context) error {
	running, ctx := errgroup.WithContext(ctx)
	forever := func(run func()) { running.Go(func() error { run(); return nil }) }
	for _, f := range a.feeds {
		forever(func() { f.watch(ctx, a.log) })
		running.Go(func() error { return f.poll(ctx, a.interval, listTimeout(a.staleness), a.log) })
	}
	forever(func() { a.usage.write(ctx, a.writer, a.keys, a.log) })
	forever(func() { a.refusals.write(ctx, a.writer, a.keys, a.log) })
	return running.Wait()
}

// useSigningKeys starts using the keys of the one ConfigMap that is watched.
func (a *Authenticator) useSigningKeys(configMaps map[types.NamespacedName]*corev1.ConfigMap) {
	set := tokens.KeySet{}
	for _, configMap := range configMaps {
		var err error
		if set, err = tokens.DecodeKeySet(configMap.Data); err != nil {
			a.log.Error(err, "Some public signing keys are unusable; tokens signed by them are refused",
				"configMap", tokens.SigningKeysConfigMap)
		}
	}
	a.signingKeys.Store(&set)
	a.changed.ring()
}

// Authenticate returns the sender of a request with this Authorization header. The error is ErrUnauthenticated
// or ErrStale.
//
// With ErrStale it returns the sender according to the last known data, or the zero Identity. Use that only for
// counting the request.
func (a *Authenticator) Authenticate(header string, now time.Time) (Identity, error) {
	token, err := bearer(header)
	if err != nil {
		return Identity{}, err
	}
	identity, err := a.lookUp(token, now)
	if a.stale(now) {
		return identity, ErrStale
	}
	return identity, err
}

// lookUp identifies the sender from the available data, however old it is.
func (a *Authenticator) lookUp(token string, now time.Time) (Identity, error) {
	claims, err := a.signatures.verify(*a.signingKeys.Load(), token)
	if err != nil {
		return Identity{}, err
	}
	key, _ := a.keys.get(claims.KeyUID)
	var organization *v1alpha1.Organization
	if key != nil {
		organization, _ = a.organizations.find(key.Namespace)
	}
	return admit(claims, key, organization, now)
}

// In returns the keys of a namespace, valid or not, in no order. They must not be changed.
func (a *Authenticator) In(namespace string) []*v1alpha1.APIKey { return a.keys.in(namespace) }

// MarkUsed records in the APIKey's status that it was used now, at most once per minute. It never blocks, and
// drops the record if it cannot be written.
func (a *Authenticator) MarkUsed(identity Identity) {
	if key, ok := a.keys.get(identity.KeyUID); ok {
		a.usage.note(key, apitime.Now())
	}
}

// MarkRefused publishes an Event about a refusal on the key that the request was sent with, if that key exists,
// at most every ten minutes per reason. It never waits.
func (a *Authenticator) MarkRefused(err error) {
	if r, is := errors.AsType[*refusal](err); is {
		a.refusals.note(refused{refusedFor: refusedFor{key: r.key, reason: r.reason}, at: time.Now()})
	}
}

// MarkForbidden is MarkRefused for a valid key that lacks the scope.
func (a *Authenticator) MarkForbidden(identity Identity, scope v1alpha1.Scope) {
	a.refusals.note(refused{refusedFor: refusedFor{key: identity.KeyUID, reason: ReasonScope}, scope: scope,
		at: time.Now()})
}

// Age returns the maximum age of the key data; math.MaxInt64 until everything was listed once.
func (a *Authenticator) Age(now time.Time) time.Duration {
	var oldest time.Duration
	for _, f := range a.feeds {
		oldest = max(oldest, f.age(now))
	}
	return oldest
}

// Synced reports whether everything was listed once, so that requests can be decided. It stays true.
func (a *Authenticator) Synced() bool { return a.Age(time.Now()) != math.MaxInt64 }

func (a *Authenticator) stale(now time.Time) bool { return a.Age(now) > a.staleness }
