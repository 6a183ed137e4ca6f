package apiserver

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strconv"

	"github.com/gin-gonic/gin"
)

// file is a body that is the same for everybody. Files need no key, so a file is compressed once, at startup, and sent
// without a copy: a client that does not read it occupies only its connection.
type file struct{ plain, compressed []byte }

func newFile(plain []byte) *file {
	var compressed bytes.Buffer
	_ = compressing(&compressed, func(w io.Writer) error { // a buffer never fails
		_, err := w.Write(plain)
		return err
	})
	return &file{plain, compressed.Bytes()}
}

// send writes the file, compressed if that is worthwhile and the client accepts it. The caller sets the other headers.
func (f *file) send(c *gin.Context) {
	header, body := c.Writer.Header(), f.plain
	if len(f.plain) >= minCompressedBytes {
		header["Vary"] = onAcceptedEncoding
	}
	if compresses(c, len(f.plain)) {
		header["Content-Encoding"] = gzipEncoding
		body = f.compressed
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	c.Status(http.StatusOK)
	c.Writer.WriteHeaderNow()
	if c.Request.Method == http.MethodHead {
		return
	}
	client := newPacedWriter(c)
	for chunk := range slices.Chunk(body, chunkBytes) {
		if _, err := client.Write(chunk); err != nil {
			return
		}
	}
}
