package apiserver

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/appsec-dev/findings-operator/apiserver/handlers"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
)

// How long a streamed request body may take: in total, and without receiving a byte. The package uploads names both in
// a message, and docs/rest.md too.
const (
	streamTimeout = 10 * time.Minute
	streamIdle    = 20 * time.Second
)

// openStream lets the operation read the body, for longer than other routes allow. The next request on the
// connection has the server's usual deadlines again.
func openStream(c *gin.Context, described *openapi.Operation) (*handlers.Stream, error) {
	stream := &handlers.Stream{}
	switch coding := contentCoding(c); {
	case coding == "":
	case described.IsEnvelope():
		return nil, invalidEncoding("the body must not be compressed: its member is")
	case coding == "gzip" || coding == "x-gzip":
		stream.Gzip = true
	default:
		return nil, invalidEncoding("the header Content-Encoding must be gzip, or absent")
	}
	// curl declares the JSON that it sends as a form, which GitHub accepts.
	if !described.IsEnvelope() {
		if err := described.CheckContentType(c.GetHeader("Content-Type")); err != nil {
			return nil, err
		}
	}
	body := &pacedBody{
		body:    http.MaxBytesReader(c.Writer, c.Request.Body, described.MaxBodyBytes),
		control: http.NewResponseController(c.Writer),
		end:     time.Now().Add(streamTimeout),
	}
	// The response follows the body. The error is ignored: a writer without deadlines has no connection.
	_ = body.control.SetWriteDeadline(body.end.Add(writeTimeout))
	stream.Body = body
	if described.IsEnvelope() {
		envelope := described.OpenEnvelope(body)
		stream.Body, stream.Members = envelope, envelope.Body
	}
	return stream, nil
}

// pacedBody returns an error if its client is too slow.
type pacedBody struct {
	body    io.Reader
	control *http.ResponseController
	end     time.Time
}

func (b *pacedBody) Read(p []byte) (int, error) {
	deadline := time.Now().Add(streamIdle)
	if deadline.After(b.end) {
		deadline = b.end
	}
	_ = b.control.SetReadDeadline(deadline)
	n, err := b.body.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		// Until the response, which may wait for other imports, net/http keeps reading to notice a disconnect, and a deadline
		// would look like one.
		_ = b.control.SetReadDeadline(time.Time{})
		_ = b.control.SetWriteDeadline(time.Now().Add(streamTimeout))
	case err != nil:
		// Before the response, net/http reads what is left of the body.
		_ = b.control.SetReadDeadline(time.Now().Add(streamIdle))
		_ = b.control.SetWriteDeadline(time.Now().Add(streamIdle + writeTimeout))
	}
	return n, err
}
