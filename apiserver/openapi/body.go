package openapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/appsec-dev/findings-operator/apiserver/strictjson"
)

// Media types of bodies.
const (
	jsonMediaType = "application/json"
	// SARIFMediaType is that of a log of SARIF.
	SARIFMediaType = "application/sarif+json"
)

// bodySchema is the schema of a body, or of an object in one.
type bodySchema struct {
	members  map[string]member
	required []string
	// strict says that a member of an unknown name is an error.
	strict bool
	// emptyIsRefused says that an empty text is an error, where it would be taken for a member that is not given.
	emptyIsRefused bool
	// streamed is the member that is read as it comes; empty where there is none.
	streamed string
	// atLeastOne of these must be there; empty where nothing is asked.
	atLeastOne []string
}

// maxBytesExtension is the contract's own word for how long a body may be: OpenAPI has none.
const maxBytesExtension = "x-max-bytes"

func maxBytes(extensions map[string]any) (int64, error) {
	number, ok := extensions[maxBytesExtension].(float64)
	if !ok || number < 1 {
		return 0, fmt.Errorf("%s must say how many bytes are allowed", maxBytesExtension)
	}
	return int64(number), nil
}

// emptyIsRefusedExtension marks objects of filters for a write: a script whose variable is not set must not widen it.
const emptyIsRefusedExtension = "x-empty-is-refused"

func newBodySchema(ref *openapi3.SchemaRef) (*bodySchema, error) {
	schema := ref.Value
	if !schema.Type.Is(openapi3.TypeObject) {
		return nil, errors.New("only an object is supported")
	}
	if len(schema.OneOf)+len(schema.AnyOf)+len(schema.AllOf) > 0 || schema.Not != nil || schema.Else != nil ||
		schema.AdditionalProperties.Schema != nil || schema.MinProps != 0 || schema.MaxProps != nil {
		return nil, errors.New("a keyword of the schema is not supported for requests")
	}
	body := &bodySchema{members: map[string]member{}, required: schema.Required, streamed: streamedMember(ref)}
	if open := schema.AdditionalProperties.Has; open != nil {
		body.strict = !*open
	}
	body.emptyIsRefused, _ = schema.Extensions[emptyIsRefusedExtension].(bool)
	for name, property := range schema.Properties {
		if name == body.streamed {
			continue
		}
		var err error
		if body.members[name], err = newMember(property); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	var err error
	body.atLeastOne, err = atLeastOne(schema)
	return body, err
}

// atLeastOne reads "if a is not there, then b must be". It stands for anyOf, of which code
// generators make a union that has to be taken apart by hand.
func atLeastOne(schema *openapi3.Schema) ([]string, error) {
	if schema.If == nil && schema.Then == nil {
		return nil, nil
	}
	if schema.If == nil || schema.Then == nil || schema.If.Value.Not == nil ||
		len(schema.If.Value.Not.Value.Required) != 1 || len(schema.Then.Value.Required) != 1 {
		return nil, errors.New("if and then are supported in one form alone: if not required [a], then required [b]")
	}
	return []string{schema.If.Value.Not.Value.Required[0], schema.Then.Value.Required[0]}, nil
}

// Body holds the described members of a request's body, checked.
type Body struct {
	members map[string]any
}

// Lookup returns the value of a member that is a text, and whether it is there.
func (b Body) Lookup(name string) (value string, ok bool) {
	value, ok = b.members[name].(string)
	return value, ok
}

// Parameters returns the members of an object in the body, all of them texts, as a query's parameters, and whether the
// object is there.
func (b Body) Parameters(name string) (Parameters, bool) {
	object, there := b.members[name].(map[string]any)
	values := make(map[string]string, len(object))
	for name, value := range object {
		values[name], _ = value.(string)
	}
	return Parameters{values: values}, there
}

// Into decodes the body into the type that is generated for it.
func (b Body) Into(target any) error {
	content, err := json.Marshal(b.members)
	if err != nil {
		return err
	}
	return json.Unmarshal(content, target)
}

// CheckContentType refuses a body that does not say that it is JSON, or what a stream is of. The error is an
// InvalidError.
func (o *Operation) CheckContentType(header string) error {
	want := cmp.Or(o.stream, jsonMediaType)
	media, parameters, err := mime.ParseMediaType(header)
	if err != nil || media != want {
		return invalid("content-type", CodeInvalid, "the header Content-Type must be %s", want)
	}
	if charset, given := parameters["charset"]; given && !strings.EqualFold(charset, "utf-8") {
		return invalid("content-type", CodeInvalid, "the charset must be utf-8")
	}
	return nil
}

// ParseBody reads a body strictly. Members that the contract does not describe are ignored. An
// optional id that is empty is as if it were not given. Its errors are InvalidErrors.
func (o *Operation) ParseBody(content []byte) (Body, error) {
	given, err := strictjson.Object(content)
	if err != nil {
		return Body{}, o.body.unreadable(err)
	}
	if len(given) == 0 {
		return Body{}, invalid("", CodeMissing, "the object is empty")
	}
	values, err := o.body.read("", given)
	return Body{members: values}, err
}

// unreadable names the member where one that is described is the reason.
func (s *bodySchema) unreadable(err error) error {
	var repeated *strictjson.RepeatedError
	if errors.As(err, &repeated) {
		if _, described := s.members[repeated.Name]; described {
			return invalid(repeated.Name, CodeRepeated, "%v", err)
		}
	}
	return invalid("", CodeMalformed, "%v", err)
}

func (s *bodySchema) isOptionalID(name string) bool {
	return s.members[name].id && s.members[name].most == 0 && !slices.Contains(s.required, name)
}

func (s *bodySchema) checkPresence(within string, values map[string]any) error {
	for _, name := range s.required {
		if _, there := values[name]; !there {
			return invalid(within+name, CodeMissing, "%s is required", within+name)
		}
	}
	for _, name := range s.atLeastOne {
		if _, there := values[name]; there {
			return nil
		}
	}
	if len(s.atLeastOne) > 0 {
		return invalid(within+s.atLeastOne[0], CodeMissing, "at least one of %s is required",
			within+strings.Join(s.atLeastOne, ", "+within))
	}
	return nil
}
