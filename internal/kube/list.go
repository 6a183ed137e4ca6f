package kube

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// decodeList reads a JSON list of the Kubernetes API to its end, and calls each with every object. A
// truncated list is an error.
func decodeList(from io.Reader, kind Kind, each func(runtime.Object) error) (meta metav1.ListMeta, err error) {
	decoder := newListDecoder(from, kind)
	if err := decoder.expect(json.Delim('{')); err != nil {
		return meta, err
	}
	for decoder.More() {
		member, err := decoder.Token()
		if err != nil {
			return meta, err
		}
		switch member {
		case "metadata":
			err = decoder.Decode(&meta)
		case "items":
			err = decoder.items(each)
		default:
			err = decoder.Decode(&json.RawMessage{})
		}
		if err != nil {
			return meta, err
		}
	}
	return meta, decoder.expect(json.Delim('}'))
}

// listDecoder decodes a list, and keeps the bytes of the last decoded value.
type listDecoder struct {
	*json.Decoder
	kind Kind
	read *recorder
}

func newListDecoder(from io.Reader, kind Kind) *listDecoder {
	read := &recorder{from: from}
	return &listDecoder{json.NewDecoder(read), kind, read}
}

func (d *listDecoder) items(each func(runtime.Object) error) error {
	begin, err := d.Token()
	if err != nil || begin == nil { // null is an empty list too
		return err
	}
	if begin != json.Delim('[') {
		return fmt.Errorf("got %v, want a list of items", begin)
	}
	for d.More() {
		object, err := d.item()
		if err != nil {
			return err
		}
		if err := each(object); err != nil {
			return err
		}
	}
	return d.expect(json.Delim(']'))
}

// item decodes the next object, or returns an Unreadable if its Go type cannot hold it or must not ignore a part of it.
func (d *listDecoder) item() (runtime.Object, error) {
	begin := d.InputOffset()
	d.read.forget(begin)
	object := d.kind.New()
	err := d.Decode(object)
	// A decoder that fails or meets the end of its input stays where it is; otherwise, the value has been read.
	raw := bytes.TrimLeft(d.read.between(begin, d.InputOffset()), ", \t\r\n")
	if err == nil {
		err = refuseUnknown(d.kind.Name, raw)
	}
	if err == nil {
		return object, nil
	}
	if len(raw) == 0 {
		return nil, err
	}
	return unreadable(d.kind.Name, raw, err)
}

func (d *listDecoder) expect(want json.Delim) error {
	got, err := d.Token()
	switch {
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	case err != nil:
		return err
	case got != want:
		return fmt.Errorf("got %v, want %v", got, want)
	}
	return nil
}

// recorder keeps the bytes read from a reader until it is told to forget them.
type recorder struct {
	from io.Reader
	// kept begins at this offset of all that was read.
	start int64
	kept  []byte
}

// forgetAt is how many unneeded bytes are kept at most: discarding them after each object would cost more than
// decoding it.
const forgetAt = 1 << 20

// Read implements io.Reader.
func (r *recorder) Read(into []byte) (int, error) {
	n, err := r.from.Read(into)
	r.kept = append(r.kept, into[:n]...)
	return n, err
}

// forget discards the bytes before an offset, now or later.
func (r *recorder) forget(before int64) {
	if done := before - r.start; done > forgetAt {
		r.kept = append(r.kept[:0], r.kept[done:]...)
		r.start = before
	}
}

func (r *recorder) between(begin, end int64) []byte { return r.kept[begin-r.start : end-r.start] }
