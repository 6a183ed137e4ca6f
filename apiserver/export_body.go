package apiserver

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"mime"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/appsec-dev/findings-operator/apiserver/handlers"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
)

// streamedBytes is how much of a streamed response is buffered for a slow client.
const streamedBytes = 64 << 10

// streamedPace is how many bytes per second a client must read on average, once it has used up writeTimeout. Otherwise
// a few clients that read next to nothing would occupy all places for days.
const streamedPace = 16 << 10

// sendStreamed sends a body while it is produced, compressed if the client accepts that. If the body cannot be
// completed, the connection is aborted, because a partial response must not look complete. readmit is called before
// each chunk, because a slow client may read for an hour; its error ends the body.
func sendStreamed(c *gin.Context, body *handlers.Streamed, readmit func() error) {
	defer body.Close()
	header := c.Writer.Header()
	header.Set("Content-Type", body.MediaType)
	header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": body.FileName}))
	header["Vary"] = onAcceptedEncoding
	write := body.Write
	if acceptsGzip(c.Request.Header.Values("Accept-Encoding")) {
		header["Content-Encoding"] = gzipEncoding
		write = func(w io.Writer) error { return compressing(w, body.Write) }
	}
	c.Status(http.StatusOK)
	if c.Request.Method == http.MethodHead {
		c.Writer.WriteHeaderNow()
		return
	}
	// No response has a Content-Length, not even a short one or one to HEAD.
	c.Writer.Flush()
	client := &pacedWriter{
		to: c.Writer, control: http.NewResponseController(c.Writer), patience: writeTimeout, readmit: readmit,
		pace: streamedPace, allowance: writeTimeout,
	}
	out := &produced{to: client, ctx: c.Request.Context(), organization: stateOf(c).identity.Organization}
	defer out.endTurn()
	chunk := bufio.NewWriterSize(out, streamedBytes)
	err := out.takeTurn()
	if err == nil {
		err = write(chunk)
	}
	if err == nil {
		err = chunk.Flush()
	}
	if err != nil {
		cut := problem.Internal("the answer was cut off", err)
		if own, is := errors.AsType[*problem.Problem](client.err); is && own.Status >= http.StatusInternalServerError {
			cut.Status = own.Status // it is unknown whether the client is still admitted
		} else if cmp.Or(client.err, c.Request.Context().Err()) != nil { // gone, not reading, or no longer admitted
			cut.Status = http.StatusOK
		}
		stateOf(c).err = cut
		if !c.Request.ProtoAtLeast(1, 1) {
			reset(c.Request)
		}
		panic(http.ErrAbortHandler)
	}
}
