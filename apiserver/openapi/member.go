package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/strictjson"
)

// member is the schema of a member of a body: a text, an integer, true or false, a list of texts, or an object.
type member struct {
	scalar
	// object is nil for all other types.
	object *bodySchema
	// least and most bound the number of texts in a list; most is 0 if the member is not a list.
	least, most int
}

func newMember(ref *openapi3.SchemaRef) (m member, err error) {
	schema := ref.Value
	switch {
	case schema.Type.Is(openapi3.TypeObject):
		m.object, err = newBodySchema(ref)
		return m, err
	case schema.Type.Is(openapi3.TypeArray):
		if schema.MaxItems == nil || schema.UniqueItems {
			return m, errors.New("a list needs a bound, and no other keyword")
		}
		m.least, m.most = int(schema.MinItems), int(*schema.MaxItems) //nolint:gosec // a document of our own
		ref = schema.Items
	}
	m.scalar, err = newScalar(ref)
	noText := m.kind == booleanValue || m.kind == integerValue
	if err == nil && (schema.Type.Is(openapi3.TypeNumber) || noText && m.most > 0) {
		err = errors.New("only texts, integers, true and false are supported in bodies, and only texts in lists")
	}
	return m, err
}

// read parses the members of an object in a body; within is the path to the object.
func (s *bodySchema) read(within string, given map[string]json.RawMessage) (map[string]any, error) {
	if s.strict {
		for _, name := range sortedNames(given) {
			if _, described := s.members[name]; !described {
				return nil, invalid("", problem.CodeInvalid, "there is no member %s: the members are %s%s",
					quote(within+name), within, strings.Join(sortedNames(s.members), ", "+within))
			}
		}
	}
	values := make(map[string]any, len(s.members))
	for _, name := range sortedNames(s.members) {
		raw, there := given[name]
		empty := string(raw) == `""`
		if empty && s.emptyIsRefused {
			return nil, invalid(within+name, problem.CodeInvalid, "%s is empty: give a value, or leave the member out",
				within+name)
		}
		if !there || empty && s.isOptionalID(name) {
			continue
		}
		value, err := s.members[name].value(within+name, raw)
		if err != nil {
			return nil, err
		}
		values[name] = value
	}
	return values, s.checkPresence(within, values)
}

// value parses a member; path names it. The error is an InvalidError.
func (m member) value(path string, raw json.RawMessage) (any, error) {
	switch {
	case m.object != nil:
		var given map[string]json.RawMessage
		if json.Unmarshal(raw, &given) != nil || given == nil {
			return nil, invalid(path, problem.CodeInvalid, "%s must be an object", path)
		}
		return m.object.read(path+".", given)
	case m.most > 0:
		return m.list(path, raw)
	case m.kind == booleanValue:
		if text := string(raw); text != "true" && text != "false" {
			return nil, invalid(path, problem.CodeInvalid, "%s must be a %s", path, m.typeName())
		}
		return string(raw) == "true", nil
	case m.kind == integerValue:
		if err := m.checkInteger(path, string(raw)); err != nil {
			return nil, invalid(path, problem.CodeInvalid, "%v", err)
		}
		return raw, nil
	default:
		return m.text(path, path, raw)
	}
}

func (m member) list(path string, raw json.RawMessage) (any, error) {
	var given []json.RawMessage
	if json.Unmarshal(raw, &given) != nil || given == nil {
		return nil, invalid(path, problem.CodeInvalid, "%s must be an array", path)
	}
	if len(given) < m.least || len(given) > m.most {
		return nil, invalid(path, problem.CodeInvalid, "%s must have %d to %d items", path, m.least, m.most)
	}
	values := make([]string, len(given))
	for i, item := range given {
		var err error
		if values[i], err = m.text(path, fmt.Sprintf("%s[%d]", path, i), item); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// text parses a text; field is the member, and name how the error calls it.
func (m member) text(field, name string, raw json.RawMessage) (string, error) {
	value, ok := strictjson.String(raw)
	if !ok {
		return "", invalid(field, problem.CodeInvalid, "%s must be a %s", name, m.typeName())
	}
	value, err := m.read(name, value)
	if err != nil {
		return "", invalid(field, problem.CodeInvalid, "%v", err)
	}
	return value, nil
}
