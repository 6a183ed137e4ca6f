package kube

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// Source is where a kind is listed and watched, in all namespaces.
type Source interface {
	// List calls each with the objects of a list, in their order, and returns what is said of the list.
	// It ends with the first error of each. An object that cannot be read is passed as an *Unreadable.
	List(ctx context.Context, options metav1.ListOptions, each func(runtime.Object) error) (metav1.ListMeta, error)
	// Watch begins a watch. It sends an object that cannot be read as an *Unreadable.
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// Reader lists and watches at an API server.
type Reader struct {
	client rest.Interface
}

// Source returns the source of a kind.
func (r *Reader) Source(kind Kind) Source { return &source{r.client, kind} }

// source decodes a list object by object, as it comes: the API server encodes what follows meanwhile, and
// there is never more than one object that nobody has looked at.
type source struct {
	client rest.Interface
	kind   Kind
}

func (s *source) List(ctx context.Context, options metav1.ListOptions, each func(runtime.Object) error) (metav1.ListMeta, error) {
	body, err := s.request(options).Stream(ctx)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	defer body.Close() //nolint:errcheck // only read from
	return decodeList(body, s.kind, each)
}

func (s *source) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	return s.request(options).Watch(ctx)
}

func (s *source) request(options metav1.ListOptions) *rest.Request {
	return s.client.Get().Resource(s.kind.Resource).VersionedParams(&options, metav1.ParameterCodec)
}
