package apiserver

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"mime"
	"net"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/appsec-dev/findings-operator/apiserver/handlers"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
)

// streamedBytes is how much of a body that is made while it is sent waits for a client that reads slowly.
const streamedBytes = 64 << 10

// sendStreamed sends a body while it is made, compressed if the client accepts that. If it cannot be made or sent to
// its end the connection is aborted: half an answer must not look like a whole one.
func sendStreamed(c *gin.Context, body *handlers.Streamed) {
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
	// The length is told of no answer, be it short or asked for by HEAD.
	c.Writer.Flush()
	client := &pacedWriter{to: c.Writer, control: http.NewResponseController(c.Writer), patience: writeTimeout}
	chunk := bufio.NewWriterSize(client, streamedBytes)
	err := write(chunk)
	if err == nil {
		err = chunk.Flush()
	}
	if err != nil {
		cut := problem.Internal("the answer was cut off", err)
		if cmp.Or(client.err, c.Request.Context().Err()) != nil { // the client is gone, or does not read
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

// withConnection keeps a connection for reset.
func withConnection(ctx context.Context, connection net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, connection)
}

// reset ends the connection of a request as no answer ends. To HTTP/1.0, which proxies speak, its plain end is that
// of the body.
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

// pacedWriter gives the client time for each chunk, however long all of them take: one that reads nothing meanwhile
// is given up. The connection's next request has the server's own deadlines again.
type pacedWriter struct {
	to      io.Writer
	control *http.ResponseController
	// patience is how long a chunk may take.
	patience time.Duration
	// err is why the client got no more.
	err error
}

func (w *pacedWriter) Write(chunk []byte) (n int, err error) {
	// A writer without deadlines is not a connection's.
	_ = w.control.SetWriteDeadline(time.Now().Add(w.patience))
	n, w.err = w.to.Write(chunk)
	return n, w.err
}
