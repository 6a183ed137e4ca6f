// Package handlers implements the operations of the REST API, one per file. A handler gets a request that was
// checked against the contract and returns bytes that are ready to be sent, or an error. It uses neither HTTP
// nor Gin.
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

// Request is a request with a valid key, checked against the contract.
type Request struct {
	// ID identifies the request in the log.
	ID string
	// Identity is the sender's. Handlers read no data of other organizations.
	auth.Identity
	// Require returns the error for a key without the scope, and records the refusal.
	Require func(v1alpha1.Scope) error
	// Origin is scheme and host under which the client reached the service, for operations whose responses
	// contain URLs; empty if not known.
	Origin string

	Path  openapi.Parameters
	Query openapi.Parameters
	Body  openapi.Body
	// Stream is the body of an operation that reads it as it arrives; nil for all others.
	Stream *Stream
	// IfMatch is the state that a change is conditional on; the zero value is any.
	IfMatch etag.Condition
	// LastEventID is the event after which a stream resumes; "" for a new stream.
	LastEventID string
}

// Stream is a body that is read as it arrives.
type Stream struct {
	// Body returns an error if the body is too long or too slow.
	Body io.Reader
	// Gzip reports whether the body is compressed.
	Gzip bool
	// Members returns the other members of the JSON body that contains Body, once Body has been read to its
	// end.
	Members func() (openapi.Body, error)
	// Readmit returns the sender's identity as of now, or an error if the request must be refused by now, for example
	// because its key was revoked. It is called once Body has been read, which may take minutes.
	Readmit func() (auth.Identity, error)
}

// Handle answers a request. An error that is not a problem.Problem is internal.
type Handle func(context.Context, Request) (Response, error)

// Backend holds the dependencies of the operations. Each operation is a method of it, in its own file.
type Backend struct {
	Model   *readmodel.Model
	Cursors *cursor.Codec
	// Cluster stores decisions, and reads stored objects where the model may be behind.
	Cluster *cluster.Client
	Uploads *uploads.Service
	// Keys holds the API keys that requests are authenticated with.
	Keys *auth.Authenticator
	// Exports limits concurrent exports.
	Exports *slots.Slots
	// EventStreams limits open streams of events.
	EventStreams *EventStreams
	// Stopping is closed when the process is about to end and long-running responses must stop.
	Stopping <-chan struct{}
}
