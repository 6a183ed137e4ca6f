package kube

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// tolerant makes decoders that return an Unreadable for an object that cannot be decoded. A decoding error would end
// the watch for all other objects, too.
type tolerant struct {
	runtime.NegotiatedSerializer
	scheme *runtime.Scheme
}

func (t tolerant) DecoderToVersion(decoder runtime.Decoder, version runtime.GroupVersioner) runtime.Decoder {
	return tolerantDecoder{t.NegotiatedSerializer.DecoderToVersion(decoder, version), t.scheme}
}

type tolerantDecoder struct {
	runtime.Decoder
	scheme *runtime.Scheme
}

func (d tolerantDecoder) Decode(data []byte, defaults *schema.GroupVersionKind,
	into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	object, kind, err := d.Decoder.Decode(data, defaults, into)
	if err == nil && kind != nil {
		err = refuseUnknown(kind.Kind, data)
	}
	if err == nil || kind == nil || !d.scheme.Recognizes(*kind) {
		return object, kind, err
	}
	stand, err := unreadable(kind.Kind, data, err)
	if err != nil {
		return object, kind, err
	}
	return stand, kind, nil
}
