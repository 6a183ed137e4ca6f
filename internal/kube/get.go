package kube

import (
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Get reads the named object from the API server into object. For an unreadable one it returns NotFound, because lists
// leave it out, too.
func Get(ctx context.Context, client rest.Interface, namespace, name string, object Object) error {
	kind, _ := KindOf(object)
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	content, err := read(ctx, client, namespace, name, kind)
	if err != nil {
		return err
	}
	if decode(kind, content, object) != nil {
		return apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource(kind.Resource).GroupResource(), name)
	}
	return nil
}

// Read returns the named object, or an *Unreadable if it cannot be read.
func (r *Reader) Read(ctx context.Context, namespace, name string, kind Kind) (runtime.Object, error) {
	content, err := read(ctx, r.client, namespace, name, kind)
	if err != nil {
		return nil, err
	}
	object := kind.New()
	if err := decode(kind, content, object); err != nil {
		return result(unreadable(kind.Name, content, err))
	}
	return object, nil
}

// decode returns an error if the object's Go type cannot hold the content or must not ignore a part of it.
func decode(kind Kind, content []byte, object Object) error {
	if err := json.Unmarshal(content, object); err != nil {
		return err
	}
	return refuseUnknown(kind.Name, content)
}

// read returns the named object as the API server sends it.
func read(ctx context.Context, client rest.Interface, namespace, name string, kind Kind) ([]byte, error) {
	answer := client.Get().Namespace(namespace).Resource(kind.Resource).Name(name).Do(ctx)
	if err := answer.Error(); err != nil { // the error of Raw would count as unexpected, which callers retry
		return nil, err
	}
	return answer.Raw()
}
