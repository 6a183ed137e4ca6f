package apiserver

import (
	"io"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

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

// newPacedWriter returns a writer to the client that has chunkPatience for each chunk, and writeTimeout for all.
func newPacedWriter(c *gin.Context) *pacedWriter {
	return &pacedWriter{
		to: c.Writer, control: http.NewResponseController(c.Writer),
		patience: chunkPatience, end: time.Now().Add(writeTimeout),
	}
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
