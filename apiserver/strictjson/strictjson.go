// Package strictjson refuses JSON that two parsers could interpret differently: encoding/json takes the last of
// two equal names, accepts a name in the wrong case, and replaces invalid Unicode by U+FFFD.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"
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
	case hasLoneSurrogate(content):
		return nil, errors.New("the body escapes half of a surrogate pair")
	case bytes.TrimLeft(content, " \t\r\n")[0] != '{':
		return nil, errors.New("the body is not a JSON object")
	}
	if err := refuseDuplicates(content); err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(content, &members); err != nil {
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

// level is an object or an array that is being parsed.
type level struct {
	names    map[string]bool // nil for an array
	wantName bool
}

// refuseDuplicates returns an error if an object has a repeated name. It expects valid JSON.
func refuseDuplicates(content []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	var levels []level
	for {
		token, err := decoder.Token()
		if err != nil {
			return nil //nolint:nilerr // the end: the content is known to be valid
		}
		if delim, ok := token.(json.Delim); ok && (delim == '}' || delim == ']') {
			levels = levels[:len(levels)-1]
			continue
		}
		if len(levels) > 0 {
			top := &levels[len(levels)-1]
			if top.wantName {
				name, _ := token.(string)
				if top.names[name] {
					return &RepeatedError{Name: name}
				}
				top.names[name] = true
				top.wantName = false
				continue
			}
			top.wantName = top.names != nil
		}
		switch token {
		case json.Delim('{'):
			levels = append(levels, level{names: map[string]bool{}, wantName: true})
		case json.Delim('['):
			levels = append(levels, level{})
		}
	}
}

// shorten quotes a client's text for an error, and bounds its length.
func shorten(text string) string {
	const most = 64
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "..."
	}
	return strconv.Quote(text)
}

// hasLoneSurrogate reports whether a \u escape of a surrogate is not part of a pair, that is a first half
// followed directly by a second half. It expects valid JSON.
func hasLoneSurrogate(content []byte) bool {
	for i := 0; i < len(content); i++ {
		if content[i] != '\\' { // JSON has backslashes only inside of strings
			continue
		}
		i++
		if content[i] != 'u' {
			continue
		}
		unit := hex4(content[i+1:])
		i += 4
		switch {
		case unit < 0xD800 || unit > 0xDFFF:
		case unit > 0xDBFF:
			return true
		case i+6 < len(content) && content[i+1] == '\\' && content[i+2] == 'u' && isLowSurrogate(hex4(content[i+3:])):
			i += 6
		default:
			return true
		}
	}
	return false
}

func isLowSurrogate(unit uint64) bool { return unit >= 0xDC00 && unit <= 0xDFFF }

// hex4 parses four hexadecimal digits; valid JSON has them after every \u.
func hex4(digits []byte) uint64 {
	value, _ := strconv.ParseUint(string(digits[:4]), 16, 16)
	return value
}
