package openapi

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Operation is an operation of the contract with the table by which its requests are
// checked. The table is made of the document once: to ask a general validator for each
// request costs a list more than the list itself, and its errors speak of schemas.
type Operation struct {
	// ID is the operationId.
	ID string
	// Method is the HTTP method.
	Method string
	// Path is the template, for example "/v1/findings/{id}".
	Path string
	// Scope that a key needs; empty where any key will do.
	Scope v1alpha1.Scope
	// Beside are scopes that it needs as well; nil for most.
	Beside []v1alpha1.Scope

	path  map[string]scalar
	query map[string]scalar
	// strictQuery says that a parameter of an unknown name is an error.
	strictQuery bool
	body        *bodySchema // nil where the operation takes none, or a stream
	// stream is the media type of a body that is read as it comes; empty where there is none.
	stream string
	// maxBytes is how long a body may be.
	maxBytes int64
	// conditions are the headers that make the request a conditional one.
	conditions []string
	// follows says that it goes on after an event.
	follows bool
}

// Operations makes the table of every operation, by operationId. It fails for a document
// that describes requests in a way that the table cannot hold.
func Operations(spec *openapi3.T) (map[string]*Operation, error) {
	operations := map[string]*Operation{}
	for path, item := range spec.Paths.Map() {
		for method, described := range item.Operations() {
			operation, err := newOperation(method, path, described, item.Parameters)
			if err != nil {
				return nil, fmt.Errorf("openapi.yaml: %s %s: %w", method, path, err)
			}
			if operations[operation.ID] != nil {
				return nil, fmt.Errorf("openapi.yaml: operationId %q is there twice", operation.ID)
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

// anyKeyExtension marks an operation that needs a key, and no scope.
const anyKeyExtension = "x-any-key"

// scopesOf wants a scope, so that no operation is open to every key by an oversight. Where there are more, a key needs
// all of them.
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

// The headers of a conditional request, as the contract writes them.
const (
	HeaderIfMatch     = "if-match"
	HeaderIfNoneMatch = "if-none-match"
)

var conditionHeaders = []string{HeaderIfMatch, HeaderIfNoneMatch}

// HeaderLastEventID names the place from which a client goes on with a stream of events.
const HeaderLastEventID = "last-event-id"

// TakesCondition reports whether the operation supports that header of a conditional request.
func (o *Operation) TakesCondition(header string) bool { return slices.Contains(o.conditions, header) }

// TakesLastEventID reports whether the operation goes on after the event that HeaderLastEventID names.
func (o *Operation) TakesLastEventID() bool { return o.follows }

// MaxBodyBytes is how long a request's body may be.
func (o *Operation) MaxBodyBytes() int64 { return o.maxBytes }

// TakesBody reports whether the operation's requests have a body.
func (o *Operation) TakesBody() bool { return o.body != nil || o.IsStream() }

// IsStream reports whether the body is read as it comes, by the operation itself.
func (o *Operation) IsStream() bool { return o.stream != "" || o.IsEnvelope() }

// IsEnvelope reports whether the body is JSON with a member that is read as it comes.
func (o *Operation) IsEnvelope() bool { return o.body != nil && o.body.streamed != "" }

// Methods returns the methods under which the operation is served: HEAD is there wherever GET is.
func (o *Operation) Methods() []string {
	if o.Method == http.MethodGet {
		return []string{http.MethodGet, http.MethodHead}
	}
	return []string{o.Method}
}
