package organization

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// countDelay is how long changes of counts are collected: the queue holds an organization
// once however often it is added, so that an import costs a write a delay at most.
const countDelay = time.Second

// requestFor names the organization whose namespace that is; false for any other namespace.
func requestFor(namespace string) (reconcile.Request, bool) {
	name, found := strings.CutPrefix(namespace, v1alpha1.NamespacePrefix)
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}, found && name != ""
}

func nameOf(object client.Object) string      { return object.GetName() }
func namespaceOf(object client.Object) string { return object.GetNamespace() }

// atOnce reconciles the organization of a namespace whenever something in it changes.
func atOnce(namespace func(client.Object) string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		if request, ok := requestFor(namespace(object)); ok {
			return []reconcile.Request{request}
		}
		return nil
	})
}

// soon reconciles the organization a while after one of its objects came, went, or changed
// in a way that counts.
func soon(counts func(before, after client.Object) bool) handler.EventHandler {
	add := func(object client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		if request, ok := requestFor(object.GetNamespace()); ok {
			q.AddAfter(request, countDelay)
		}
	}
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			if !e.IsInInitialList { // At the start every organization is reconciled on its own account.
				add(e.Object, q)
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if counts(e.ObjectOld, e.ObjectNew) {
				add(e.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { add(e.Object, q) },
	}
}

func never(client.Object, client.Object) bool { return false }

func findingsDiffer(before, after client.Object) bool {
	old, isOld := before.(*v1alpha1.Repository)
	now, isNow := after.(*v1alpha1.Repository)
	return isOld && isNow && old.Status.Counts.Findings != now.Status.Counts.Findings
}

// managed lets through what carries our label, or did until now.
var managed = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return isManaged(e.Object) },
	UpdateFunc: func(e event.UpdateEvent) bool { return isManaged(e.ObjectOld) || isManaged(e.ObjectNew) },
	DeleteFunc: func(e event.DeleteEvent) bool { return isManaged(e.Object) },
}

func isManaged(object client.Object) bool {
	return object.GetLabels()[v1alpha1.ManagedByLabel] == v1alpha1.ManagedBy
}
