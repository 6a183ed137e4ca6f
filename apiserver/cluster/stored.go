package cluster

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// answerAfter is how long a response waits for the controllers.
const answerAfter = 10 * time.Second

// await returns the object once done accepts it, or as it is after ten seconds. If the watch fails, it returns
// the object as last seen.
func await[T kube.Object](ctx context.Context, c *Client, object T, done func(T) bool) T {
	if done(object) {
		return object
	}
	ctx, cancel := context.WithTimeout(ctx, answerAfter)
	defer cancel()
	seen, err := sourceOf[T](c, object.GetNamespace()).Watch(ctx, metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector("metadata.name", object.GetName()).String(),
		ResourceVersion: object.GetResourceVersion(),
	})
	if err != nil {
		return object
	}
	defer seen.Stop()
	for {
		select {
		case <-ctx.Done():
			return object
		case event, open := <-seen.ResultChan():
			next, readable := event.Object.(T)
			if !open || !readable {
				return object
			}
			if object = next; done(object) {
				return object
			}
		}
	}
}

// sourceOf returns the source of a kind's objects in a namespace.
func sourceOf[T kube.Object](c *Client, namespace string) kube.Source {
	var object T
	kind, _ := kube.KindOf(object)
	return c.reader.In(namespace, kind)
}

// listOf returns all objects of a kind in a namespace as they are stored now. Unreadable objects are left out.
func listOf[T kube.Object](ctx context.Context, c *Client, namespace, noun string) ([]T, error) {
	ctx, cancel := context.WithTimeout(ctx, kube.CallTimeout)
	defer cancel()
	var all []T
	_, err := sourceOf[T](c, namespace).List(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		if one, readable := object.(T); readable {
			all = append(all, one)
		}
		return nil
	})
	if err != nil {
		return nil, problem.TryAgain("the "+noun+" could not be read", err)
	}
	return all, nil
}
