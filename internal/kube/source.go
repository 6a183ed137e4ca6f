package kube

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// Source lists and watches one kind.
type Source interface {
	// List calls each with every object of a list, in order, and returns the list's metadata.
	// It stops at the first error of each. An object that cannot be read is passed as an *Unreadable.
	List(ctx context.Context, options metav1.ListOptions, each func(runtime.Object) error) (metav1.ListMeta, error)
	// Watch begins a watch. It sends an object that cannot be read as an *Unreadable.
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// Reader lists and watches at an API server.
type Reader struct {
	client rest.Interface
}

// Source returns the source of a kind, in all namespaces.
func (r *Reader) Source(kind Kind) Source { return r.In("", kind) }

// In returns the source of a kind in a namespace.
func (r *Reader) In(namespace string, kind Kind) Source { return &source{r.client, namespace, kind} }

// source decodes a list object by object as it arrives: the API server encodes the rest meanwhile, and never more
// than one unprocessed object is in memory.
type source struct {
	client    rest.Interface
	namespace string
	kind      Kind
}

func (s *source) List(ctx context.Context, options metav1.ListOptions,
	each func(runtime.Object) error) (metav1.ListMeta, error) {
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
	return s.client.Get().Namespace(s.namespace).Resource(s.kind.Resource).VersionedParams(&options, metav1.ParameterCodec)
}
