package handlers

import (
	"io"

	"github.com/appsec-dev/findings-operator/apiserver/changes"

	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
)

// Response is an answer that is no error.
type Response struct {
	// Status is 200 where it is 0.
	Status int
	// Location is where to ask for what the request has made; empty for most.
	Location string
	// Body in parts.
	Body []content.Part
	// Tag names the state of a resource, for conditional requests; empty for what is no
	// single resource.
	Tag string
	// Streamed is sent in place of Body; nil for most.
	Streamed *Streamed
	// Events are sent in place of Body; nil for most.
	Events *Events
}

// Events are changes that are sent as they come.
type Events struct {
	Reader *changes.Reader
	// ID returns the text from which a client goes on after a position.
	ID func(changes.Position) string
	// Once ends with what there is.
	Once bool
	// Close frees what the stream needs. It is called once, last.
	Close func()
}

// Streamed is a body that is made while it is sent.
type Streamed struct {
	// MediaType of the body, and FileName under which it is saved.
	MediaType, FileName string
	// Write writes the body. With an error it is not whole, and its receiver must see that. It is not called where the
	// body is not wanted.
	Write func(io.Writer) error
	// Close frees what the body needs. It is called once, last.
	Close func()
}

// single answers with a resource that has one shape.
func single(shown []byte) Response {
	return Response{Body: []content.Part{content.Of(shown)}, Tag: readmodel.TagOf(shown)}
}

// tagged answers with one of the shapes of an item, whose tag they have in common.
func tagged(item interface{ Tag() string }, shape content.Part) Response {
	return Response{Body: []content.Part{shape}, Tag: item.Tag()}
}
