package apiserver

import (
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/gin-gonic/gin"
)

// minCompressedBytes is the length from which a body is compressed: a body that fits into one packet
// would not arrive sooner.
const minCompressedBytes = 1400

// compressors are kept: each has tables of a few hundred KiB. The fastest level, because the
// lists of this service are text that repeats itself.
var compressors = sync.Pool{New: func() any {
	writer, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level exists
	}
	return writer
}}

// sendCompressed writes a body as one gzip stream.
func sendCompressed(c *gin.Context, body func(io.Writer) error) {
	header := c.Writer.Header()
	header["Content-Encoding"] = gzipEncoding
	if c.Request.Method == http.MethodHead {
		c.Writer.WriteHeaderNow()
		return
	}
	// If it fails the client is gone; the log has the status and the size.
	_ = compressing(c.Writer, body)
	c.Writer.WriteHeaderNow()
}

// compressing has a body written to w as one gzip stream.
func compressing(w io.Writer, body func(io.Writer) error) error {
	compressor := compressors.Get().(*gzip.Writer)
	defer compressors.Put(compressor)
	compressor.Reset(w)
	if err := body(compressor); err != nil {
		return err
	}
	return compressor.Close()
}

// acceptsGzip reads Accept-Encoding (RFC 9110, section 12.5.3). Without the header a body is
// sent as it is: it may be anything to the client.
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

// weight returns 1 if none is given, and 0 if it is invalid.
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
