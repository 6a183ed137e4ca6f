package cluster

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/slots"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// answerAfter is how long a response waits for the controllers.
const answerAfter = 10 * time.Second

const (
	// listPatience is how long a list waits for its turn.
	listPatience = 10 * time.Second
	// maxLists bounds the lists of one kind that wait in an organization.
	maxLists = 20
)

// kindOf returns the kind of T.
func kindOf[T kube.Object]() kube.Kind {
	var object T
	kind, _ := kube.KindOf(object)
	return kind
}

// empty returns an empty object.
func empty[T kube.Object]() T { return kindOf[T]().New().(T) } //nolint:forcetypeassert // the kind is T's

// read returns the named object as it is stored now.
func read[T kube.Object](ctx context.Context, client rest.Interface, namespace, name, noun string) (none T, err error) {
	if !kube.IsName(name) {
		return none, problem.NotFound(noun)
	}
	object := empty[T]()
	err = kube.Get(ctx, client, namespace, name, object)
	switch {
	case err == nil:
		return object, nil
	case kube.IsNotFound(err):
		return none, problem.NotFound(noun)
	default:
		return none, problem.TryAgain("the "+noun+" could not be read", err)
	}
}

// await returns the object once done accepts it, or as it is after ten seconds. If the watch fails, it returns
// the object as last seen. If the object is deleted before done accepts it, the error has the detail deleted.
func await[T kube.Object](ctx context.Context, c *Client, object T, done func(T) bool,
	deleted string) (none T, err error) {
	if done(object) {
		return object, nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerAfter)
	defer cancel()
	seen, err := sourceOf[T](c, object.GetNamespace()).Watch(ctx, metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector("metadata.name", object.GetName()).String(),
		ResourceVersion: object.GetResourceVersion(),
	})
	if err != nil {
		return object, nil
	}
	defer seen.Stop()
	for {
		select {
		case <-ctx.Done():
			return object, nil
		case event, open := <-seen.ResultChan():
			next, readable := event.Object.(T)
			if !open || !readable {
				return object, nil
			}
			if object = next; done(object) {
				return object, nil
			}
			if event.Type == watch.Deleted {
				return none, problem.Deleted(deleted)
			}
		}
	}
}

// sourceOf returns the source of a kind's objects in a namespace.
func sourceOf[T kube.Object](c *Client, namespace string) kube.Source {
	return c.reader.In(namespace, kindOf[T]())
}

// countOf returns the number of objects of a kind in a namespace, including unreadable ones.
func countOf[T kube.Object](ctx context.Context, c *Client, namespace string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, kube.CallTimeout)
	defer cancel()
	count := int64(0)
	list, err := sourceOf[T](c, namespace).List(ctx, metav1.ListOptions{Limit: 1}, func(runtime.Object) error {
		count++
		return nil
	})
	return count + ptr.Deref(list.RemainingItemCount, 0), err
}

// listOf is listAll for the objects that can be read.
func listOf[T kube.Object](ctx context.Context, c *Client, namespace, noun string, each func(T) error) error {
	return listAll[T](ctx, c, namespace, noun, readable(each))
}

// listAll calls each with every object of a kind in a namespace as they are stored now: a T, or an Unreadable. An error
// of each ends it, and is returned as it is. One list at a time is read per namespace and kind: it may take tens of
// megabytes.
func listAll[T kube.Object](ctx context.Context, c *Client, namespace, noun string,
	each func(runtime.Object) error) error {
	leave, err := enterList[T](ctx, c, namespace, noun)
	if err != nil {
		return err
	}
	defer leave()
	return selected[T](ctx, c, namespace, noun, metav1.ListOptions{}, each)
}

// selected is listAll for the objects that the options select, without a turn: they must be few.
func selected[T kube.Object](ctx context.Context, c *Client, namespace, noun string, options metav1.ListOptions,
	each func(runtime.Object) error) error {
	ctx, cancel := context.WithTimeout(ctx, kube.CallTimeout)
	defer cancel()
	var failed error
	_, err := sourceOf[T](c, namespace).List(ctx, options, func(object runtime.Object) error {
		failed = each(object)
		return failed
	})
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return problem.TryAgain("the "+noun+" could not be read", err)
	}
	return nil
}

// readable calls each only with objects that can be read.
func readable[T kube.Object](each func(T) error) func(runtime.Object) error {
	return func(object runtime.Object) error {
		if one, is := object.(T); is {
			return each(one)
		}
		return nil
	}
}

// enterList waits for the turn to read objects of a kind in a namespace. The caller calls leave at its end.
func enterList[T kube.Object](ctx context.Context, c *Client, namespace, noun string) (leave func(), err error) {
	leave, err = c.lists.Enter(ctx, types.NamespacedName{Namespace: namespace, Name: kindOf[T]().Resource})
	switch {
	case errors.Is(err, slots.ErrBusy):
		return nil, problem.Busy("too many requests are listing the "+noun, time.Second)
	case err != nil:
		return nil, problem.TryAgain("too many requests are listing the "+noun, err)
	}
	return leave, nil
}
