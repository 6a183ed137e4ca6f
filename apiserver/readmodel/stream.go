package readmodel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// Source is where a kind is listed and watched, in all namespaces.
type Source interface {
	// List calls each with the objects of a list, in their order, and returns what is said of the list.
	// It ends with the first error of each.
	List(ctx context.Context, options metav1.ListOptions, each func(runtime.Object) error) (metav1.ListMeta, error)
	// Watch begins a watch.
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// stream is a cluster's source of a kind. It decodes a list object by object, as it comes: the API server
// encodes what follows meanwhile, and there is never more than one object that nobody has rendered.
type stream struct {
	client    rest.Interface
	kind      kind
	newObject func() runtime.Object
}

func (s *stream) List(ctx context.Context, options metav1.ListOptions, each func(runtime.Object) error) (metav1.ListMeta, error) {
	body, err := s.request(options).Stream(ctx)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	defer body.Close() //nolint:errcheck // only read from
	return decodeList(body, s.newObject, each)
}

func (s *stream) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	return s.request(options).Watch(ctx)
}

func (s *stream) request(options metav1.ListOptions) *rest.Request {
	return s.client.Get().Resource(s.kind.String()).VersionedParams(&options, metav1.ParameterCodec)
}

// decodeList reads a list of the Kubernetes API in JSON to its end, and calls each with its objects. A
// list that ends too early is an error.
func decodeList(from io.Reader, newObject func() runtime.Object, each func(runtime.Object) error) (said metav1.ListMeta, err error) {
	decoder := json.NewDecoder(from)
	if err := expect(decoder, json.Delim('{')); err != nil {
		return said, err
	}
	for decoder.More() {
		member, err := decoder.Token()
		if err != nil {
			return said, err
		}
		switch member {
		case "metadata":
			err = decoder.Decode(&said)
		case "items":
			err = decodeItems(decoder, newObject, each)
		default:
			err = decoder.Decode(&json.RawMessage{})
		}
		if err != nil {
			return said, err
		}
	}
	return said, expect(decoder, json.Delim('}'))
}

func decodeItems(decoder *json.Decoder, newObject func() runtime.Object, each func(runtime.Object) error) error {
	begin, err := decoder.Token()
	if err != nil || begin == nil { // null is an empty list too
		return err
	}
	if begin != json.Delim('[') {
		return fmt.Errorf("%v in place of items", begin)
	}
	for decoder.More() {
		object := newObject()
		if err := decoder.Decode(object); err != nil {
			return err
		}
		if err := each(object); err != nil {
			return err
		}
	}
	return expect(decoder, json.Delim(']'))
}

func expect(decoder *json.Decoder, want json.Delim) error {
	got, err := decoder.Token()
	switch {
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	case err != nil:
		return err
	case got != want:
		return fmt.Errorf("%v in place of %v", got, want)
	}
	return nil
}
