// Package render turns resources, and what they show from each other, into the JSON of the REST API.
// docs/decisions/fields.md describes where each member comes from.
//
// Every documented member is always present. An unknown value is null for a time or an enumeration, else "", [], {}, 0
// or false.
package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
)

// buffers avoids growing a new buffer for each of the many items of a first list.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// JSON renders a value of the contract, without escaping <, > and &, which are frequent in source code: the
// responses are application/json and never part of a page.
func JSON(value any) ([]byte, error) {
	buffer := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buffer)
	buffer.Reset()
	if err := encodeTo(buffer, value); err != nil {
		return nil, err
	}
	return bytes.Clone(buffer.Bytes()), nil
}

// encodeNamed is JSON for an object that an error names.
func encodeNamed(kind, name string, value any) ([]byte, error) {
	content, err := JSON(value)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", kind, name, err)
	}
	return content, nil
}

// encodeTo is JSON that appends to a buffer.
func encodeTo(buffer *bytes.Buffer, value any) error {
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	buffer.Truncate(buffer.Len() - len("\n"))
	return nil
}

// mustEncode is JSON for values that always encode: texts, and lists and maps of them.
func mustEncode(value any) []byte {
	content, err := JSON(value)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", value, err))
	}
	return content
}
