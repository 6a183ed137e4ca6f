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

	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/strictjson"
)

// Media types of bodies.
const (
	jsonMediaType = "application/json"
	// SARIFMediaType is the media type of a SARIF log.
	SARIFMediaType = "application/sarif+json"
)

// bodySchema is the schema of a body, or of an object in one.
type bodySchema struct {
	members  map[string]member
	required []string
	// strict means that a member with an unknown name is an error.
	strict bool
	// emptyIsRefused means that an empty text is an error; otherwise it counts as not given.
	emptyIsRefused bool
	// streamed is the member that is read as it arrives; empty if there is none.
	streamed string
	// atLeastOne of these members must be present; empty if none is required.
	atLeastOne []string
}

// maxBytesExtension is the contract's extension for the maximum length of a body: OpenAPI has no keyword for
// it.
const maxBytesExtension = "x-max-bytes"

func maxBytes(extensions map[string]any) (int64, error) {
	number, ok := extensions[maxBytesExtension].(float64)
	if !ok || number < 1 {
		return 0, fmt.Errorf("%s must say how many bytes are allowed", maxBytesExtension)
	}
	return int64(number), nil
}

// emptyIsRefusedExtension marks objects with the filters of a write, and query parameters that decide what a write
// does: an unset variable in a script must not widen it.
const emptyIsRefusedExtension = "x-empty-is-refused"

// alternativeExtension names, for such a query parameter, another one: it may be empty if the other has a value.
const alternativeExtension = "x-alternative"

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

// atLeastOne reads "if a is missing, then b is required". The contract uses it instead of anyOf, because code
// generators turn anyOf into a union that is awkward to use.
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

// Body holds the described members of a request's body, after validation.
type Body struct {
	members map[string]any
}

// Lookup returns the value of a text member, and whether it is present.
func (b Body) Lookup(name string) (value string, ok bool) {
	value, ok = b.members[name].(string)
	return value, ok
}

// Parameters returns the members of an object in the body, all of them texts, as query parameters, and whether
// the object is present.
func (b Body) Parameters(name string) (Parameters, bool) {
	object, there := b.members[name].(map[string]any)
	values := make(map[string]string, len(object))
	for name, value := range object {
		values[name], _ = value.(string)
	}
	return Parameters{values: values}, there
}

// Into decodes the body into its generated type.
func (b Body) Into(target any) error {
	content, err := json.Marshal(b.members)
	if err != nil {
		return err
	}
	return json.Unmarshal(content, target)
}

// CheckContentType refuses a body that is not declared as JSON, or as the media type of the operation's stream.
// The error is an InvalidError.
func (o *Operation) CheckContentType(header string) error {
	want := cmp.Or(o.stream, jsonMediaType)
	media, parameters, err := mime.ParseMediaType(header)
	if err != nil || media != want {
		return invalid("content-type", problem.CodeInvalid, "the header Content-Type must be %s", want)
	}
	if charset, given := parameters["charset"]; given && !strings.EqualFold(charset, "utf-8") {
		return invalid("content-type", problem.CodeInvalid, "the charset must be utf-8")
	}
	return nil
}

// ParseBody parses a body strictly. Members that the contract does not describe are ignored. An optional id
// that is empty counts as not given. Its errors are InvalidErrors.
func (o *Operation) ParseBody(content []byte) (Body, error) {
	given, err := strictjson.Object(content)
	if err != nil {
		return Body{}, o.body.unreadable(err)
	}
	if len(given) == 0 && !o.BodyIsOptional {
		return Body{}, invalid("", problem.CodeMissing, "the object is empty")
	}
	values, err := o.body.read("", given)
	return Body{members: values}, err
}

// unreadable returns an error that names the member, if a described member is the cause.
func (s *bodySchema) unreadable(err error) error {
	if repeated, is := errors.AsType[*strictjson.RepeatedError](err); is {
		if _, described := s.members[repeated.Name]; described {
			return invalid(repeated.Name, problem.CodeRepeated, "%v", err)
		}
	}
	return invalid("", problem.CodeMalformed, "%v", err)
}

func (s *bodySchema) isOptionalID(name string) bool {
	return s.members[name].kind == idValue && s.members[name].most == 0 && !slices.Contains(s.required, name)
}

func (s *bodySchema) checkPresence(within string, values map[string]any) error {
	for _, name := range s.required {
		if _, there := values[name]; !there {
			return invalid(within+name, problem.CodeMissing, "%s is required", within+name)
		}
	}
	for _, name := range s.atLeastOne {
		if _, there := values[name]; there {
			return nil
		}
	}
	if len(s.atLeastOne) > 0 {
		return invalid(within+s.atLeastOne[0], problem.CodeMissing, "at least one of %s is required",
			within+strings.Join(s.atLeastOne, ", "+within))
	}
	return nil
}
