// Package handlers holds the operations of the REST API, one a file. A handler gets a request
// that is known to be within the contract and returns bytes that are ready to be sent, or an
// error; it knows neither HTTP nor Gin.
package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/cursor"
	"github.com/appsec-dev/findings-operator/apiserver/deliveries"
	"github.com/appsec-dev/findings-operator/apiserver/etag"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/apiserver/triage"
)

// Request is a request of a key's holder, checked against the contract.
type Request struct {
	// Organization that the key belongs to. Nothing of another is ever looked at.
	Organization string
	// KeyName is the name of the APIKey.
	KeyName string

	Path  openapi.Parameters
	Query openapi.Parameters
	Body  openapi.Body
	// IfMatch is the state that a change is conditional on; the zero value is any.
	IfMatch etag.Condition
}

// Handle answers a request. An error that is no problem.Problem is internal.
type Handle func(context.Context, Request) (Response, error)

// Backend is what the operations work on. Each is a method of it, in a file of its own.
type Backend struct {
	Model   *readmodel.Model
	Cursors *cursor.Codec
	Triage  *triage.Writer
	// Deliveries are read anew where what the model holds of one does not settle the matter.
	Deliveries *deliveries.Reader
}

var _ Contract = (*Backend)(nil)

// Operations returns everything that is served, by operationId.
func Operations(backend *Backend) map[string]Handle { return operationsOf(backend) }
