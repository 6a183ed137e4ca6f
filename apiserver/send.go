package apiserver

import (
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"github.com/appsec-dev/findings-operator/apiserver/etag"
)

// send writes JSON whose parts are ready.
func send(c *gin.Context, status int, parts ...[]byte) {
	c.Writer.Header().Set("Content-Type", "application/json")
	sendBody(c, status, parts...)
}

// sendState is send for a resource whose state has a tag.
func sendState(c *gin.Context, tag string, parts ...[]byte) {
	header := c.Writer.Header()
	header.Set("ETag", etag.Format(tag, compresses(c, lengthOf(parts))))
	if c.Request.Method != http.MethodPatch && etag.IfNoneMatch(c.Request.Header.Values("If-None-Match")).Names(tag) {
		header.Set("Vary", "Accept-Encoding")
		c.Status(http.StatusNotModified)
		c.Writer.WriteHeaderNow()
		return
	}
	send(c, http.StatusOK, parts...)
}

// sendBody writes a body, compressed where that pays and the client takes it. For HEAD,
// net/http keeps the headers and drops the body.
func sendBody(c *gin.Context, status int, parts ...[]byte) {
	header, length := c.Writer.Header(), lengthOf(parts)
	if length >= minCompressedBytes {
		header.Set("Vary", "Accept-Encoding")
	}
	c.Status(status)
	if compresses(c, length) {
		header.Set("Content-Encoding", "gzip")
		if c.Request.Method != http.MethodHead {
			// If it fails the client is gone; the log has the status and the size.
			_ = compress(c.Writer, parts)
		}
		c.Writer.WriteHeaderNow()
		return
	}
	header.Set("Content-Length", strconv.Itoa(length))
	for _, part := range parts {
		if _, err := c.Writer.Write(part); err != nil {
			return
		}
	}
}

func compresses(c *gin.Context, length int) bool {
	return length >= minCompressedBytes && acceptsGzip(c.Request.Header.Values("Accept-Encoding"))
}

func lengthOf(parts [][]byte) (length int) {
	for _, part := range parts {
		length += len(part)
	}
	return length
}
