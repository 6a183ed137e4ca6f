// Package cursor encodes and decodes the cursors of list endpoints: opaque strings that identify the
// last row of a page and are valid for one list only.
package cursor

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
)

// MaxLength bounds a cursor, in bytes.
const MaxLength = 4096

// maxText bounds a position, in bytes, so that its cursor stays under MaxLength.
const maxText = 3000

// version is the first byte of a cursor's content. A cursor of another version is invalid.
const version = 1

// ErrInvalid is returned for every string that Encode did not produce for the same list with a current key: for a
// cursor that was altered, truncated, invented, or taken from another list.
var ErrInvalid = errors.New("the cursor is not valid for this list; start again without it")

var encoding = base64.RawURLEncoding.Strict()

// Position is where a page ended: the row's id, and its value of the field that the list is sorted by.
type Position struct {
	Value string
	ID    string
}

// List is the list that a cursor is bound to. The page size is not part of it.
type List struct {
	// Organization that the caller belongs to.
	Organization string
	// Endpoint as a stable word, for example "v1/findings".
	Endpoint string
	// Sort is the field sorted by, with defaults filled in.
	Sort string
	// Order is asc or desc, with defaults filled in.
	Order string
	// Filters by the name of the parameter, each value in its canonical spelling; filters that were not given
	// are left out.
	Filters map[string]string
}

// Codec makes and reads cursors. It is safe for concurrent use.
type Codec struct {
	// folder of the keys; empty for a random key.
	folder string
	// keys are the keys that verify, the newest first.
	keys atomic.Pointer[[][]byte]
}

// Encode returns the cursor that continues list after position. It returns an error if the position is too
// long.
func (c *Codec) Encode(list List, position Position) (string, error) {
	if size := len(position.Value) + len(position.ID); size > maxText {
		return "", fmt.Errorf("a cursor carries at most %d bytes of value and id, got %d", maxText, size)
	}
	payload := []byte{version}
	payload = appendText(payload, position.Value)
	payload = appendText(payload, position.ID)
	payload = append(payload, sign(c.verifying()[0], list, payload)...)
	return encoding.EncodeToString(payload), nil
}

// Decode returns the position in a cursor that Encode produced for the same list. For every other string it
// returns ErrInvalid.
func (c *Codec) Decode(list List, token string) (Position, error) {
	// The decoder skips line breaks, but a cursor must have only one spelling.
	if len(token) > MaxLength || strings.ContainsAny(token, "\r\n") {
		return Position{}, ErrInvalid
	}
	content, err := encoding.DecodeString(token)
	if err != nil || len(content) <= sha256.Size || content[0] != version {
		return Position{}, ErrInvalid
	}
	payload, signature := content[:len(content)-sha256.Size], content[len(content)-sha256.Size:]
	if !c.signed(list, payload, signature) {
		return Position{}, ErrInvalid
	}
	value, rest, ok := cutText(payload[1:])
	if !ok {
		return Position{}, ErrInvalid
	}
	id, rest, ok := cutText(rest)
	if !ok || len(rest) != 0 {
		return Position{}, ErrInvalid
	}
	return Position{Value: value, ID: id}, nil
}

func (c *Codec) signed(list List, payload, signature []byte) bool {
	return slices.ContainsFunc(c.verifying(), func(key []byte) bool {
		return hmac.Equal(signature, sign(key, list, payload))
	})
}

// sign covers the list as well as the payload. The list itself is not in the cursor: a cursor of another list
// fails only because its signature does not match.
func sign(key []byte, list List, payload []byte) []byte {
	mac := hmac.New(sha256.New, key)
	for _, text := range []string{list.Organization, list.Endpoint, list.Sort, list.Order} {
		writeText(mac, text)
	}
	for _, name := range slices.Sorted(maps.Keys(list.Filters)) {
		writeText(mac, name)
		writeText(mac, list.Filters[name])
	}
	// A filter's name is never empty, so this ends the list of filters.
	writeText(mac, "")
	mac.Write(payload)
	return mac.Sum(nil)
}

// writeText writes a length before the text, so that different sequences of texts never produce the same bytes.
func writeText(mac hash.Hash, text string) { mac.Write(appendText(nil, text)) }

func appendText(to []byte, text string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

func cutText(from []byte) (text string, rest []byte, ok bool) {
	length, size := binary.Uvarint(from)
	if size <= 0 || length > maxText || int(length) > len(from)-size {
		return "", nil, false
	}
	end := size + int(length)
	return string(from[size:end]), from[end:], true
}
