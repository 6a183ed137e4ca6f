// Package handlers holds the operations of the REST API, one a file. A handler gets a request
// that is known to be within the contract and returns bytes that are ready to be sent, or an
// error; it knows neither HTTP nor Gin.
package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/cursor"
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

// Operation is an operation of the contract that is served.
type Operation struct {
	// ID is the operationId.
	ID string
	// Scope that a key needs which has any.
	Scope v1alpha1.Scope
	// Handle answers a request. An error that is no problem.Problem is internal.
	Handle func(context.Context, Request) (Response, error)
}

// Backend is what the operations work on.
type Backend struct {
	Model   *readmodel.Model
	Cursors *cursor.Codec
	Triage  *triage.Writer
}

// Operations returns everything that is served. A new operation is a file and a line here.
func Operations(backend Backend) []Operation {
	return []Operation{
		listFindingsV1(backend),
		listFindingsV2(backend),
		getFindingV2(backend),
		updateFindingV1(backend),
		updateFindingV2(backend),
		listRepositories(backend),
		getProject(backend),
		getReviewIssue(backend),
		listReviews(backend),
		verifyWebhookDelivery(backend),
	}
}
