package apiserver

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"time"

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
	chunk := bufio.NewWriterSize(client, streamedBytes)
	err := write(chunk)
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

type connectionKey struct{}

// withConnection stores a connection in the context for reset, and lets the system close it if its client is lost.
func withConnection(ctx context.Context, connection net.Conn) context.Context {
	closeLost(connection, lostAfter)
	return context.WithValue(ctx, connectionKey{}, connection)
}

// reset aborts the connection of a request in a way that cannot be mistaken for a complete response. With HTTP/1.0,
// which proxies use, a normal close would mark the end of the body.
func reset(r *http.Request) {
	connection, _ := r.Context().Value(connectionKey{}).(net.Conn)
	if encrypted, is := connection.(*tls.Conn); is {
		connection = encrypted.NetConn()
	}
	if tcp, is := connection.(interface{ SetLinger(seconds int) error }); is {
		_ = tcp.SetLinger(0)
		_ = connection.Close()
	}
}

// pacedWriter gives the client time for each chunk and, if there is an end or a pace, for all of them. It disconnects a
// client that does not read them in time. The next request on the connection has the server's usual deadlines again.
type pacedWriter struct {
	to      io.Writer
	control *http.ResponseController
	// patience is how long a chunk may take.
	patience time.Duration
	// end is when all chunks must have been read; zero without such an end.
	end time.Time
	// pace is how many bytes that the client takes extend its allowance by a second; zero without an allowance.
	pace int
	// allowance is how long the client may still make the server wait, for all chunks together.
	allowance time.Duration
	// readmit returns an error if the client must get no more; nil if it may get all.
	readmit func() error
	// err is the error of the last write, or of readmit.
	err error
}

func (w *pacedWriter) Write(chunk []byte) (n int, err error) {
	if w.readmit != nil {
		if w.err = w.readmit(); w.err != nil {
			return 0, w.err
		}
	}
	began, patience := time.Now(), w.patience
	if w.pace > 0 {
		patience = min(patience, w.allowance)
	}
	deadline := began.Add(patience)
	if !w.end.IsZero() && w.end.Before(deadline) {
		deadline = w.end
	}
	// The error is ignored: a writer without deadlines has no connection.
	_ = w.control.SetWriteDeadline(deadline)
	n, w.err = w.to.Write(chunk)
	if w.pace > 0 && w.err == nil {
		w.allowance += time.Duration(n)*time.Second/time.Duration(w.pace) - time.Since(began)
		// Net/http resets an HTTP/2 stream at its deadline also while the service produces the next chunk.
		_ = w.control.SetWriteDeadline(time.Now().Add(w.patience))
	}
	return n, w.err
}
