// Package render turns resources, and what they show of each other, into the JSON of the REST
// API. docs/decisions/fields.md says which member comes from where.
//
// Every documented member is always there. What is not known is null where it is a time or
// one of a fixed set of words, else "", [], {}, 0 or false.
package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
)

// buffers spare a growing buffer for each of the many items of a first list.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// encode writes JSON without escaping <, > and &, which source code is full of: the answers
// are application/json and never part of a page.
func encode(value any) ([]byte, error) {
	buffer := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buffer)
	buffer.Reset()
	if err := encodeTo(buffer, value); err != nil {
		return nil, err
	}
	return bytes.Clone(buffer.Bytes()), nil
}

// JSON renders a value of the contract that is made for one answer.
func JSON(value any) ([]byte, error) { return encode(value) }

// encodeTo is encode to the end of a buffer.
func encodeTo(buffer *bytes.Buffer, value any) error {
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	buffer.Truncate(buffer.Len() - len("\n"))
	return nil
}

// mustEncode is encode of what always encodes: texts, lists and maps of them.
func mustEncode(value any) []byte {
	content, err := encode(value)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", value, err))
	}
	return content
}
