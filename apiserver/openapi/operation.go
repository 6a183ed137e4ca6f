package openapi

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Operation is an operation of the contract with the table that its requests are validated with. The table is
// built from the document once: a general validator would take longer for a list request than the list itself,
// and its error messages describe schemas.
type Operation struct {
	// ID is the operationId.
	ID string
	// Method is the HTTP method.
	Method string
	// Path is the template, for example "/v1/findings/{id}".
	Path string
	// Scope that a key needs; empty if any key is accepted.
	Scope v1alpha1.Scope
	// Beside are further scopes that the key needs; usually nil.
	Beside []v1alpha1.Scope

	path  map[string]scalar
	query map[string]scalar
	// strictQuery means that a parameter with an unknown name is an error.
	strictQuery bool
	body        *bodySchema // nil if the operation has no body, or a stream
	// stream is the media type of a body that is read as it arrives; empty if there is none.
	stream string
	// maxBytes is how long a body may be.
	maxBytes int64
	// conditions are the supported headers of conditional requests.
	conditions []string
	// follows means that the operation can resume after an event.
	follows bool
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
	if operation.Scope, operation.Beside, err = scopesOf(described); err != nil {
		return nil, err
	}
	for _, ref := range slices.Concat(shared, described.Parameters) {
		parameter := ref.Value
		schema, err := newScalar(parameter.Schema)
		if err != nil {
			return nil, fmt.Errorf("parameter %s: %w", parameter.Name, err)
		}
		switch {
		case parameter.In == openapi3.ParameterInPath:
			operation.path[parameter.Name] = schema
		case parameter.In == openapi3.ParameterInQuery && !parameter.Required:
			operation.query[parameter.Name] = schema
		case parameter.In == openapi3.ParameterInHeader && !parameter.Required &&
			slices.Contains(conditionHeaders, parameter.Name):
			operation.conditions = append(operation.conditions, parameter.Name)
		case parameter.In == openapi3.ParameterInHeader && !parameter.Required && parameter.Name == HeaderLastEventID:
			operation.follows = true
		default:
			return nil, fmt.Errorf("parameter %s: only path, optional query and condition parameters are supported",
				parameter.Name)
		}
	}
	if described.RequestBody == nil {
		return operation, nil
	}
	if operation.maxBytes, err = maxBytes(described.RequestBody.Value.Extensions); err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	if described.RequestBody.Value.Content.Get(SARIFMediaType) != nil {
		operation.stream = SARIFMediaType
		return operation, nil
	}
	content := described.RequestBody.Value.Content.Get(jsonMediaType)
	if content == nil || !described.RequestBody.Value.Required {
		return nil, fmt.Errorf("a body must be required and %s", jsonMediaType)
	}
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
func scopesOf(described *openapi3.Operation) (scope v1alpha1.Scope, beside []v1alpha1.Scope, err error) {
	if described.Security == nil || len(*described.Security) != 1 {
		return "", nil, fmt.Errorf("security must name %s alone", securityScheme)
	}
	scopes, named := (*described.Security)[0][securityScheme]
	anyKey, _ := described.Extensions[anyKeyExtension].(bool)
	switch {
	case named && anyKey && len(scopes) == 0:
		return "", nil, nil
	case len(scopes) == 0:
		return "", nil, fmt.Errorf("security must name %s with a scope, or %s be true", securityScheme, anyKeyExtension)
	}
	for _, further := range scopes[1:] {
		beside = append(beside, v1alpha1.Scope(further))
	}
	return v1alpha1.Scope(scopes[0]), beside, nil
}

// The headers of conditional requests, as the contract spells them.
const (
	HeaderIfMatch     = "if-match"
	HeaderIfNoneMatch = "if-none-match"
)

var conditionHeaders = []string{HeaderIfMatch, HeaderIfNoneMatch}

// HeaderLastEventID names the event after which a client resumes a stream.
const HeaderLastEventID = "last-event-id"

// TakesCondition reports whether the operation supports that header of a conditional request.
func (o *Operation) TakesCondition(header string) bool { return slices.Contains(o.conditions, header) }

// TakesLastEventID reports whether the operation can resume after the event that HeaderLastEventID names.
func (o *Operation) TakesLastEventID() bool { return o.follows }

// MaxBodyBytes returns how long a request's body may be.
func (o *Operation) MaxBodyBytes() int64 { return o.maxBytes }

// TakesBody reports whether the operation's requests have a body.
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
