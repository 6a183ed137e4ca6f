package controllers

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// maxWaitingEvents bounds the unreadable objects that are kept until this replica leads and can send Events about them.
const maxWaitingEvents = 1000

// Informers creates the informers for this project's kinds. In controller-runtime's informers one unreadable object
// blocks its whole kind; these skip it, count it, and send an Event about it.
type Informers struct {
	reader      *kube.Reader
	unreadables *kube.Unreadables
	contact     *kube.Contact
	found       chan *kube.Unreadable
	recorder    events.EventRecorder
}

// NewInformers returns informers that read from the API server that config names.
func NewInformers(config *rest.Config) (*Informers, error) {
	reader, err := kube.NewReader(config)
	if err != nil {
		return nil, err
	}
	i := &Informers{reader: reader, contact: kube.NewContact("findings_controller_heard_seconds", clock.RealClock{}),
		found: make(chan *kube.Unreadable, maxWaitingEvents)}
	i.unreadables = kube.NewUnreadables(ctrl.Log.WithName("kube"), i.note)
	return i, nil
}

// Use makes a manager's cache use these informers. Fields that the cache's transform drops are dropped while listing,
// too.
func (i *Informers) Use(options cache.Options) cache.Options {
	options.NewInformer = func(lw toolscache.ListerWatcher, object runtime.Object, resync time.Duration,
		indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		var held toolscache.Store
		if kind, ok := kube.KindOf(object); ok {
			lw = kube.NewListWatch(kube.ListWatchOptions{
				Kind: kind, From: i.reader.Source(kind), Unreadables: i.unreadables,
				Trim: trim(transformOf(options, object)), OnContact: i.contact.Watch(kind.Resource),
				Last: func(name types.NamespacedName) kube.Object { return last(held, name) },
			})
		}
		informer := toolscache.NewSharedIndexInformer(lw, object, resync, indexers)
		held = informer.GetStore()
		return informer
	}
	return options
}

func last(held toolscache.Store, name types.NamespacedName) kube.Object {
	object, _, _ := held.GetByKey(toolscache.NewObjectName(name.Namespace, name.Name).String())
	known, _ := object.(kube.Object)
	return known
}

// Register adds the metrics, and the sender of Events to the manager.
func (i *Informers) Register(mgr ctrl.Manager, registerer prometheus.Registerer) error {
	for _, collector := range []prometheus.Collector{i.unreadables, i.contact} {
		if err := registerer.Register(collector); err != nil {
			return fmt.Errorf("register the metrics of the informers: %w", err)
		}
	}
	i.recorder = reconcile.NewRecorder(mgr)
	return mgr.Add(i)
}

// Start sends the Events until the context ends. It runs only on the leader.
func (i *Informers) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case u := <-i.found:
			if !i.unreadables.Knows(u) {
				continue // it was repaired before this replica became the leader
			}
			i.recorder.Eventf(&u.PartialObjectMetadata, nil, corev1.EventTypeWarning, v1alpha1.ReasonUnreadable, "Read",
				"The object cannot be read, and is treated as if it did not exist; upgrade if a newer version wrote it, "+
					"else correct or delete it: %.512s", u.Err)
		}
	}
}

// note never blocks, because a reflector calls it.
func (i *Informers) note(u *kube.Unreadable) {
	select {
	case i.found <- u:
	default:
	}
}

func transformOf(options cache.Options, object runtime.Object) toolscache.TransformFunc {
	for of, its := range options.ByObject {
		if its.Transform != nil && reflect.TypeOf(of) == reflect.TypeOf(object) {
			return its.Transform
		}
	}
	return options.DefaultTransform
}

// trim applies the informer's transform to each object of a list as it arrives, before the list is complete.
func trim(transform toolscache.TransformFunc) func(kube.Object) runtime.Object {
	return func(object kube.Object) runtime.Object {
		transformed, err := transform(object)
		if trimmed, ok := transformed.(runtime.Object); ok && err == nil {
			return trimmed
		}
		return object
	}
}
