package apikey

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/tokens"
)

// signingKeysCache returns a cache, run by the manager, that holds only the signing key's Secret
// and the ConfigMap of public keys.
func signingKeysCache(ctx context.Context, mgr ctrl.Manager, namespace string) (cache.Cache, error) {
	only := func(name string) cache.ByObject {
		return cache.ByObject{Field: fields.OneTermEqualSelector(metav1.ObjectNameField, name)}
	}
	own, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme:            mgr.GetScheme(),
		Mapper:            mgr.GetRESTMapper(),
		HTTPClient:        mgr.GetHTTPClient(),
		DefaultNamespaces: map[string]cache.Config{namespace: {}},
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}:    only(tokens.SigningKeySecret),
			&corev1.ConfigMap{}: only(tokens.SigningKeysConfigMap),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make a cache of the signing keys: %w", err)
	}
	for _, kind := range signingKeyKinds() {
		if _, err := own.GetInformer(ctx, kind); err != nil {
			return nil, fmt.Errorf("watch the signing keys: %w", err)
		}
	}
	if err := mgr.Add(withCache{own}); err != nil {
		return nil, fmt.Errorf("add the cache of the signing keys: %w", err)
	}
	return own, nil
}

// signingKeyKinds returns the kinds in that cache, with only their metadata, which keeps the private key out of it.
func signingKeyKinds() []client.Object {
	core := corev1.SchemeGroupVersion
	return []client.Object{kube.MetadataOf(core.WithKind("Secret")), kube.MetadataOf(core.WithKind("ConfigMap"))}
}

// signingKeyChanges returns sources that report changes of either object.
func signingKeyChanges(own cache.Cache, enqueue handler.EventHandler) []source.Source {
	var sources []source.Source
	for _, kind := range signingKeyKinds() {
		sources = append(sources,
			source.Kind(own, kind, enqueue, watch.NewSinceStart, predicate.ResourceVersionChangedPredicate{}))
	}
	return sources
}

// setup adds the controller of the signing keys to the manager. It has one worker.
func (k signingKeys) setup(mgr ctrl.Manager, options controller.Options, own cache.Cache) error {
	options.MaxConcurrentReconciles, options.RateLimiter = 1, controllers.NewRateLimiter()
	only := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: k.namespace, Name: tokens.SigningKeySecret}}
	enqueue := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{only}
	})
	b := ctrl.NewControllerManagedBy(mgr).Named("signingkey").WithOptions(options).
		// At startup the Secret may not exist, and the watch would report nothing.
		WatchesRawSource(source.Func(func(_ context.Context,
			queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			queue.Add(only)
			return nil
		}))
	for _, change := range signingKeyChanges(own, enqueue) {
		b = b.WatchesRawSource(change)
	}
	return b.Complete(k)
}

// withCache makes the manager start a cache together with its own, before leader election, so that it is filled on a
// standby replica.
type withCache struct{ cache.Cache }

// GetCache marks this runnable as a cache for the manager.
func (c withCache) GetCache() cache.Cache { return c.Cache }

// allKeys returns every key, because all depend on the signing key.
func (r *Reconciler) allKeys(ctx context.Context, _ client.Object) []reconcile.Request {
	return watch.List(ctx, r.Client, &v1alpha1.APIKeyList{})
}

// keysOf returns the keys in the organization's namespace.
func (r *Reconciler) keysOf(ctx context.Context, organization client.Object) []reconcile.Request {
	return watch.List(ctx, r.Client, &v1alpha1.APIKeyList{},
		client.InNamespace(v1alpha1.NamespacePrefix+organization.GetName()))
}

// concernsKeys selects changes of an organization's spec, which bounds the lifetime of keys, and of its namespace.
var concernsKeys = watch.Updates(func(before, after *v1alpha1.Organization) bool {
	return before.Generation != after.Generation || before.Status.Namespace != after.Status.Namespace
})
