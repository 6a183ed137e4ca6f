package apiserver

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/appsec-dev/findings-operator/apiserver/auth"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/slots"
)

// takeBody reads the body and then authenticates again, or leaves both to the operation if the body is a stream.
func (r *router) takeBody(c *gin.Context, described *openapi.Operation) (err error) {
	request := &stateOf(c).request
	if described.IsStream() {
		if request.Stream, err = openStream(c, described); err != nil {
			return named(problem.InvalidBody, err)
		}
		request.Stream.Readmit = func() (auth.Identity, error) { return r.readmit(c) }
		return nil
	}
	if request.Body, err = receiveBody(c, described); err != nil {
		return err
	}
	request.Identity, err = r.readmit(c)
	return err
}

// longBody is the length from which a body needs a place in longBodies.
const longBody = 64 << 10

// longBodyRetryAfter is when to try again for a place: a body usually arrives at once.
const longBodyRetryAfter = time.Second

// longBodies limits how many long bodies are received at a time, in total and per organization, because a client that
// does not send the end of one occupies memory until readTimeout.
var longBodies = slots.New(128, 32)

// receive takes a place for a body of at most that many bytes, or of unknown length, which may be long. The caller
// frees it once the body is read.
func receive(c *gin.Context, most int64) (free func(), err error) {
	if length := c.Request.ContentLength; most <= longBody || 0 <= length && length <= longBody {
		return func() {}, nil
	}
	if free, err = longBodies.Take(stateOf(c).identity.Organization); err != nil {
		return nil, problem.Busy("too many long bodies are being received", longBodyRetryAfter)
	}
	return free, nil
}

// receiveBody is readBody with a place for the body.
func receiveBody(c *gin.Context, described *openapi.Operation) (openapi.Body, error) {
	free, err := receive(c, described.MaxBodyBytes)
	if err != nil {
		return openapi.Body{}, err
	}
	defer free()
	body, err := readBody(c, described)
	if err != nil {
		return openapi.Body{}, named(problem.InvalidBody, err)
	}
	return body, nil
}

// contentCoding returns the coding of the request's body in lower case, "" if it has none.
func contentCoding(c *gin.Context) string {
	coding := strings.ToLower(c.GetHeader("Content-Encoding"))
	if coding == "identity" {
		return ""
	}
	return coding
}

func invalidEncoding(text string) error {
	return &openapi.InvalidError{Field: "content-encoding", Code: problem.CodeInvalid, Text: text}
}

// readBody parses a request's body. Its errors are safe to show to a client.
func readBody(c *gin.Context, described *openapi.Operation) (openapi.Body, error) {
	limit := described.MaxBodyBytes
	body := bufio.NewReader(http.MaxBytesReader(c.Writer, c.Request.Body, limit))
	if described.BodyIsOptional {
		if _, err := body.Peek(1); errors.Is(err, io.EOF) {
			return openapi.Body{}, nil
		}
	}
	if err := described.CheckContentType(c.GetHeader("Content-Type")); err != nil {
		return openapi.Body{}, err
	}
	if contentCoding(c) != "" {
		return openapi.Body{}, invalidEncoding("the body must not be compressed")
	}
	content, err := io.ReadAll(body)
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
		return openapi.Body{}, &openapi.InvalidError{Code: problem.CodeTooLong,
			Text: fmt.Sprintf("the body must be at most %d bytes", limit)}
	case err != nil:
		return openapi.Body{}, &openapi.InvalidError{Code: problem.CodeMalformed,
			Text: "the body could not be read to its end"}
	}
	return described.ParseBody(content)
}
