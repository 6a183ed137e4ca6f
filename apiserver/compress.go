package apiserver

import (
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/appsec-dev/findings-operator/apiserver/etag"
	"github.com/appsec-dev/findings-operator/apiserver/slots"
)

// minCompressedBytes is the length from which a body is compressed: a body that fits into one packet
// would not arrive sooner.
const minCompressedBytes = 1400

// compressors are pooled, because each takes a megabyte. They use the fastest level, because the lists of this service
// are repetitive text.
var compressors = sync.Pool{New: func() any {
	writer, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level exists
	}
	return writer
}}

// compressions limits concurrent compression, in total and per organization, because a client that does not read a long
// body occupies a compressor. Exports have a limit of their own.
var compressions = slots.New(64, 32)

// takeCompressor reports whether a body is sent compressed, and takes a place for that unless the request is HEAD. If
// none is left, the body is sent uncompressed, with its own entity tag. The caller calls free once the body is
// compressed.
func takeCompressor(c *gin.Context, length int) (free func(), compressed bool) {
	none := func() {}
	switch {
	case !compresses(c, length):
		return none, false
	case c.Request.Method == http.MethodHead:
		return none, true
	}
	free, err := compressions.Take(stateOf(c).identity.Organization)
	if err == nil {
		return free, true
	}
	header := c.Writer.Header()
	if tag := header.Get("ETag"); tag != "" {
		header.Set("ETag", etag.Plain(tag))
	}
	return none, false
}

// compressing writes a body to w as one gzip stream.
func compressing(w io.Writer, body func(io.Writer) error) error {
	compressor := compressors.Get().(*gzip.Writer)
	defer compressors.Put(compressor)
	compressor.Reset(w)
	if err := body(compressor); err != nil {
		return err
	}
	return compressor.Close()
}

// maxBuffered is how many compressed bytes are buffered before they are sent: usually enough for a thousand
// findings.
const maxBuffered = 256 << 10

// buffered buffers writes until maxBuffered is reached or flush is called, so that a client that is slow to read a page
// of usual size does not occupy a compressor.
type buffered struct {
	to   io.Writer
	kept []byte
}

func (h *buffered) Write(data []byte) (int, error) {
	if len(h.kept)+len(data) > maxBuffered {
		if err := h.flush(); err != nil {
			return 0, err
		}
	}
	h.kept = append(h.kept, data...)
	return len(data), nil
}

func (h *buffered) flush() error {
	_, err := h.to.Write(h.kept)
	h.kept = h.kept[:0]
	return err
}

// acceptsGzip reads Accept-Encoding (RFC 9110, section 12.5.3). Without the header a body is sent uncompressed,
// although any coding would be allowed.
func acceptsGzip(values []string) bool {
	star := false
	for entry := range strings.SplitSeq(strings.Join(values, ","), ",") {
		coding, parameters, _ := strings.Cut(entry, ";")
		switch strings.ToLower(strings.TrimSpace(coding)) {
		case "gzip", "x-gzip":
			return weight(parameters) > 0
		case "*":
			star = weight(parameters) > 0
		}
	}
	return star
}

// weight returns the coding's weight: 1 if none is given, and 0 if it is invalid.
func weight(parameters string) float64 {
	name, value, given := strings.Cut(parameters, "=")
	if !given || !strings.EqualFold(strings.TrimSpace(name), "q") {
		return 1
	}
	weight, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil {
		return 0
	}
	return weight
}
