package openapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Operation is an operation of the contract with the table that validates its requests. The table is built from the
// document once: a general validator would take longer for a list request than the list itself, and its error messages
// describe schemas.
type Operation struct {
	// ID is the operationId.
	ID string
	// Method is the HTTP method.
	Method string
	// Path is the template, for example "/v1/findings/{id}".
	Path string
	// Scopes that a key needs, first that of the operation's own resources; empty if any key is accepted.
	Scopes []v1alpha1.Scope
	// MaxBodyBytes is how long a request's body may be.
	MaxBodyBytes int64
	// BodyIsOptional means that a request may come without a body, or with an empty object.
	BodyIsOptional bool

	path  map[string]scalar
	query map[string]scalar
	// strictQuery means that a parameter with an unknown name is an error.
	strictQuery bool
	body        *bodySchema // nil if the operation has no body, or a stream
	// stream is the media type of a body that is read as it arrives; empty if there is none.
	stream string
	// headers are the optional headers that the operation supports.
	headers []string
}

// Operations builds the table of every operation, by operationId. It fails if the document describes requests
// in a way that the table cannot represent.
func Operations(spec *openapi3.T) (map[string]*Operation, error) {
	operations := map[string]*Operation{}
	for path, item := range spec.Paths.Map() {
		for method, described := range item.Operations() {
			operation, err := newOperation(method, path, described, item.Parameters)
			if err != nil {
				return nil, fmt.Errorf("openapi.yaml: %s %s: %w", method, path, err)
			}
			if operations[operation.ID] != nil {
				return nil, fmt.Errorf("openapi.yaml: operationId %q occurs twice", operation.ID)
			}
			operations[operation.ID] = operation
		}
	}
	return operations, nil
}

func newOperation(method, path string, described *openapi3.Operation, shared openapi3.Parameters) (*Operation, error) {
	operation := &Operation{
		ID: described.OperationID, Method: method, Path: path,
		path: map[string]scalar{}, query: map[string]scalar{},
	}
	operation.strictQuery, _ = described.Extensions[strictQueryExtension].(bool)
	var err error
	if operation.Scopes, err = scopesOf(described); err != nil {
		return nil, err
	}
	for _, ref := range slices.Concat(shared, described.Parameters) {
		parameter := ref.Value
		schema, err := newScalar(parameter.Schema)
		if err != nil {
			return nil, fmt.Errorf("parameter %s: %w", parameter.Name, err)
		}
		schema.emptyIsRefused, _ = parameter.Extensions[emptyIsRefusedExtension].(bool)
		schema.alternative, _ = parameter.Extensions[alternativeExtension].(string)
		switch {
		case parameter.In == openapi3.ParameterInPath:
			operation.path[parameter.Name] = schema
		case parameter.In == openapi3.ParameterInQuery && !parameter.Required:
			operation.query[parameter.Name] = schema
		case parameter.In == openapi3.ParameterInHeader && !parameter.Required &&
			slices.Contains(supportedHeaders, parameter.Name):
			operation.headers = append(operation.headers, parameter.Name)
		default:
			return nil, fmt.Errorf("parameter %s: only parameters in the path, optional ones in the query, and the headers %s "+
				"are supported", parameter.Name, strings.Join(supportedHeaders, ", "))
		}
	}
	if described.RequestBody == nil {
		return operation, nil
	}
	if operation.MaxBodyBytes, err = maxBytes(described.RequestBody.Value.Extensions); err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	if described.RequestBody.Value.Content.Get(SARIFMediaType) != nil {
		operation.stream = SARIFMediaType
		return operation, nil
	}
	content := described.RequestBody.Value.Content.Get(jsonMediaType)
	if content == nil {
		return nil, fmt.Errorf("a body must be %s", jsonMediaType)
	}
	operation.BodyIsOptional = !described.RequestBody.Value.Required
	body, err := newBodySchema(content.Schema)
	if err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	operation.body = body
	return operation, nil
}

// securityScheme is the contract's name for API keys.
const securityScheme = "bearerAuth"

// anyKeyExtension marks an operation that needs a key but no scope.
const anyKeyExtension = "x-any-key"

// scopesOf requires a scope, so that no operation is open to every key by mistake. If several are listed, a key
// needs all of them.
func scopesOf(described *openapi3.Operation) (scopes []v1alpha1.Scope, err error) {
	if described.Security == nil || len(*described.Security) != 1 {
		return nil, fmt.Errorf("security must name %s alone", securityScheme)
	}
	names, named := (*described.Security)[0][securityScheme]
	anyKey, _ := described.Extensions[anyKeyExtension].(bool)
	switch {
	case named && anyKey && len(names) == 0:
		return nil, nil
	case len(names) == 0:
		return nil, fmt.Errorf("security must name %s with a scope, or %s be true", securityScheme, anyKeyExtension)
	}
	for _, name := range names {
		scopes = append(scopes, v1alpha1.Scope(name))
	}
	return scopes, nil
}

// The headers that an operation may support, as the contract spells them: those of conditional requests, and the one
// that names the event after which a client resumes a stream.
const (
	HeaderIfMatch     = "if-match"
	HeaderIfNoneMatch = "if-none-match"
	HeaderLastEventID = "last-event-id"
)

var supportedHeaders = []string{HeaderIfMatch, HeaderIfNoneMatch, HeaderLastEventID}

// Takes reports whether the operation supports that header.
func (o *Operation) Takes(header string) bool { return slices.Contains(o.headers, header) }

// TakesBody reports whether the operation's requests have a body, or may have one.
func (o *Operation) TakesBody() bool { return o.body != nil || o.IsStream() }

// IsStream reports whether the operation itself reads the body as it arrives.
func (o *Operation) IsStream() bool { return o.stream != "" || o.IsEnvelope() }

// IsEnvelope reports whether the body is JSON with a member that is read as it arrives.
func (o *Operation) IsEnvelope() bool { return o.body != nil && o.body.streamed != "" }

// Methods returns the methods under which the operation is served: HEAD is served wherever GET is.
func (o *Operation) Methods() []string {
	if o.Method == http.MethodGet {
		return []string{http.MethodGet, http.MethodHead}
	}
	return []string{o.Method}
}
