package cluster

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// strict makes the API server refuse fields that its CRDs do not have. Otherwise it drops them: decisions would be
// stored without their expiry, and triage operations without a filter.
const strict = metav1.FieldValidationStrict

// pauseInOutage is the Retry-After that API servers and proxies usually ask for.
const pauseInOutage = time.Second

// create stores an object and returns it as stored. If the outcome is unknown, it sends the object once more, under the
// same name: a client that did so itself would create another one. An existing object of that name counts as stored if
// isSame accepts it.
func create[T kube.Object](ctx context.Context, c *Client, object T, noun string,
	isSame func(stored, sent T) bool) (T, error) {
	created, err := post(ctx, c, object)
	if !kube.IsOutcomeUnknown(err) || ctx.Err() != nil {
		return created, err
	}
	if kube.StatusOf(err).Code != 0 { // an outage, which would not be over yet
		select {
		case <-ctx.Done():
		case <-time.After(pauseInOutage):
		}
	}
	created, err = post(ctx, c, object)
	if err == nil {
		return created, nil
	}
	stored := empty[T]()
	unread := kube.Get(ctx, c.rest, object.GetNamespace(), object.GetName(), stored)
	switch {
	case unread == nil && isSame(stored, object):
		return stored, nil
	case unread == nil, kube.IsNotFound(unread) && !kube.IsOutcomeUnknown(err):
		return created, err
	}
	cause := unread
	if kube.IsNotFound(unread) {
		cause = err
	}
	// A client that follows the code try_again would create another one.
	return created, problem.Internal(fmt.Sprintf("it is not known whether the %s %s was stored: look for it before you "+
		"repeat the request", noun, object.GetName()), cause)
}

// post sends an object to be stored, once, and returns it as it was stored.
func post[T kube.Object](ctx context.Context, c *Client, object T) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, kube.CallTimeout)
	defer cancel()
	created := empty[T]()
	return created, c.rest.Post().Namespace(object.GetNamespace()).Resource(kindOf[T]().Resource).
		Param("fieldManager", v1alpha1.APIFieldManager).Param("fieldValidation", strict).Body(object).Do(ctx).Into(created)
}

// patch applies a JSON merge patch to the named object and returns the result.
func patch[T kube.Object](ctx context.Context, client rest.Interface, namespace, name string,
	content []byte) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, kube.CallTimeout)
	defer cancel()
	patched := empty[T]()
	return patched, client.Patch(types.MergePatchType).Namespace(namespace).Resource(kindOf[T]().Resource).Name(name).
		Param("fieldManager", v1alpha1.APIFieldManager).Param("fieldValidation", strict).Body(content).
		Do(ctx).Into(patched)
}

// change reads the named object, writes the members of its spec that members returns, and returns the result. It begins
// again if another writer comes in between. Without members the object stays as it is.
func change[T kube.Object](ctx context.Context, c *Client, namespace, name, noun string,
	members func(T) (map[string]any, error)) (none T, err error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	var conflict error
	for {
		object, err := read[T](ctx, c.rest, namespace, name, noun)
		if conflict != nil && ctx.Err() != nil {
			return none, conflict
		}
		if err != nil {
			return none, err
		}
		spec, err := members(object)
		if err != nil {
			return none, err
		}
		if len(spec) == 0 {
			return object, nil
		}
		changed, err := patchSpec(ctx, c, object, spec)
		if err == nil {
			return changed, nil
		}
		if !kube.IsConflict(err) {
			return none, err
		}
		conflict = err
	}
}

// checkUID refuses an object that was created again under its name since the client read it. An empty uid allows any.
func checkUID(object kube.Object, uid types.UID, noun string) error {
	if uid == "" || uid == object.GetUID() {
		return nil
	}
	return problem.PreconditionFailed("the " + noun + " was created again since: look at it as it is now").In("uid")
}

// patchSpec writes members of an object's spec, if the object is still as it was read, and returns the result.
func patchSpec[T kube.Object](ctx context.Context, c *Client, object T, spec map[string]any) (none T, err error) {
	content, err := kube.MergePatch(object.GetResourceVersion(), "spec", spec)
	if err != nil {
		return none, err
	}
	return patch[T](ctx, c.rest, object.GetNamespace(), object.GetName(), content)
}
