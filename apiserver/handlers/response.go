package handlers

import (
	"io"
	"net/http"

	"github.com/appsec-dev/findings-operator/apiserver/changes"
	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
)

// Response is a successful response.
type Response struct {
	// Status of 0 means 200.
	Status int
	// Location is the URL of the resource that the request created; usually empty.
	Location string
	// Body of the response, in parts.
	Body []content.Part
	// Own means that Body may be long and is held by this response alone. Then it may be refused with 429.
	Own bool
	// Tag is the entity tag of a resource, for conditional requests; empty if the response is not a single
	// resource.
	Tag string
	// Streamed is sent instead of Body; usually nil.
	Streamed *Streamed
	// Events are sent instead of Body; usually nil.
	Events *Events
}

// Events are changes that are sent as they come.
type Events struct {
	Reader *changes.Reader
	// Kinds of the changes that the reader reads.
	Kinds changes.Set
	// ID returns the event id with which a client resumes after a position.
	ID func(changes.Position) string
	// Once ends the stream after the changes that are available now.
	Once bool
	// Close releases the stream's resources. It is called once, last.
	Close func()
}

// Streamed is a body that is produced while it is sent.
type Streamed struct {
	// MediaType of the body, and FileName to save it under.
	MediaType, FileName string
	// Write writes the body. After an error the body is incomplete, and the client must be able to tell. Write
	// is not called if no body is wanted.
	Write func(io.Writer) error
	// Close releases the body's resources. It is called once, last.
	Close func()
}

// single returns a resource that has only one shape.
func single(shown []byte) Response {
	return Response{Body: []content.Part{content.Of(shown)}, Tag: readmodel.TagOf(shown)}
}

// rendered is single for a resource that may be long and is rendered for this response alone.
func rendered(shown []byte) Response {
	response := single(shown)
	response.Own = true
	return response
}

// untagged returns a response that is not the state of a resource.
func untagged(status int, shown []byte) Response {
	return Response{Status: status, Body: []content.Part{content.Of(shown)}}
}

// located returns a response about a resource; it has the address if the request has created the resource, or has begun
// work on it.
func located(status int, address string, shown []byte) Response {
	response := untagged(status, shown)
	if status == http.StatusCreated || status == http.StatusAccepted {
		response.Location = address
	}
	return response
}

// tagged returns one of the shapes of an item. All shapes share the item's tag.
func tagged(item interface{ Tag() string }, shape content.Part) Response {
	return Response{Body: []content.Part{shape}, Tag: item.Tag()}
}
