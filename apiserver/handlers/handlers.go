// Package handlers holds the operations of the REST API, one a file. A handler gets a request
// that is known to be within the contract and returns bytes that are ready to be sent, or an
// error; it knows neither HTTP nor Gin.
package handlers

import (
	"context"
	"io"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/auth"
	"github.com/appsec-dev/findings-operator/apiserver/cluster"
	"github.com/appsec-dev/findings-operator/apiserver/cursor"
	"github.com/appsec-dev/findings-operator/apiserver/etag"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/apiserver/slots"
	"github.com/appsec-dev/findings-operator/apiserver/uploads"
)

// Request is a request of a key's holder, checked against the contract.
type Request struct {
	// Organization that the key belongs to. Nothing of another is ever looked at.
	Organization string
	// KeyName is the name of the APIKey.
	KeyName string
	// Key is all that is known of it.
	Key auth.Identity
	// Origin is scheme and host under which the client reached the service, for operations whose answers hold
	// addresses; empty where that is not known.
	Origin string

	Path  openapi.Parameters
	Query openapi.Parameters
	Body  openapi.Body
	// Stream is the body of an operation that takes it as it comes; nil for every other.
	Stream *Stream
	// IfMatch is the state that a change is conditional on; the zero value is any.
	IfMatch etag.Condition
	// LastEventID is where a stream of events goes on; "" where it begins.
	LastEventID string
}

// Stream is a body that is read while it comes.
type Stream struct {
	// Body ends with an error where it is too long or too slow.
	Body io.Reader
	// Gzip says that it is compressed.
	Gzip bool
	// Members returns the other members of a JSON body of which Body is one, once that has been read to its end.
	Members func() (openapi.Body, error)
}

// Handle answers a request. An error that is no problem.Problem is internal.
type Handle func(context.Context, Request) (Response, error)

// Backend is what the operations work on. Each is a method of it, in a file of its own.
type Backend struct {
	Model   *readmodel.Model
	Cursors *cursor.Codec
	// Cluster stores decisions, and returns what is stored where the model may be behind.
	Cluster *cluster.Client
	Uploads *uploads.Service
	// Keys are the API keys by which requests are decided.
	Keys Keys
	// Exports are those that may be under way.
	Exports *slots.Slots
	// Streams are those that may be open.
	Streams *Streams
	// Stopping is closed when the process ends so soon that what lasts must end.
	Stopping <-chan struct{}
}

// Keys are API keys.
type Keys interface {
	// In returns those of a namespace. They must not be changed.
	In(namespace string) []*v1alpha1.APIKey
}

var _ Contract = (*Backend)(nil)

// Operations returns everything that is served, by operationId.
func Operations(backend *Backend) map[string]Handle { return operationsOf(backend) }
