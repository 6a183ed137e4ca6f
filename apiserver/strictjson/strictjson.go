// Package strictjson refuses JSON that two parsers could interpret differently: encoding/json takes the last of
// two equal names, accepts a name in the wrong case, and replaces invalid Unicode by U+FFFD.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/appsec-dev/findings-operator/internal/truncate"
)

// Object parses exactly one JSON object and returns its members. Names are compared byte by byte. It returns an
// error, whose text is safe to show to a client, for invalid JSON, a value that is not an object, trailing
// data, a repeated name in one object at any depth, invalid UTF-8, and escapes of unpaired surrogates.
func Object(content []byte) (map[string]json.RawMessage, error) {
	switch {
	case len(bytes.TrimSpace(content)) == 0:
		return nil, errors.New("the body is empty; a JSON object is needed")
	case !utf8.Valid(content):
		return nil, errors.New("the body is not valid UTF-8")
	case !json.Valid(content):
		return nil, errors.New("the body is not exactly one JSON value")
	case !jsontext.Value(content).IsValid(jsontext.AllowDuplicateNames(true)):
		return nil, errors.New("the body escapes half of a surrogate pair")
	case bytes.TrimLeft(content, " \t\r\n")[0] != '{':
		return nil, errors.New("the body is not a JSON object")
	}
	var members map[string]json.RawMessage
	err := jsonv2.Unmarshal(content, &members)
	if wrong, is := errors.AsType[*jsontext.SyntacticError](err); is && errors.Is(err, jsontext.ErrDuplicateName) {
		return nil, &RepeatedError{Name: wrong.JSONPointer.LastToken()}
	}
	if err != nil {
		return nil, errors.New("the body is not a JSON object")
	}
	return members, nil
}

// String returns the string in raw; ok is false for any other value, including null.
func String(raw json.RawMessage) (value string, ok bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	return value, json.Unmarshal(raw, &value) == nil
}

// RepeatedError is for a name that occurs twice in one object.
type RepeatedError struct{ Name string }

// Error quotes the name, shortened if it is long.
func (e *RepeatedError) Error() string { return "the member " + shorten(e.Name) + " is given twice" }

// shorten quotes a client's text for an error, and bounds its length.
func shorten(text string) string { return strconv.Quote(truncate.Marked(text, 64, "...")) }
