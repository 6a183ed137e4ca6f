package apiserver

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/etag"
	"github.com/appsec-dev/findings-operator/apiserver/handlers"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/slots"
)

// Constant header values, allocated once instead of for each response.
var (
	applicationJSON    = []string{"application/json"}
	onAcceptedEncoding = []string{"Accept-Encoding"}
	noStore            = []string{"no-store"}
	noSniff            = []string{"nosniff"}
	gzipEncoding       = []string{"gzip"}
)

// send writes rendered JSON.
func send(c *gin.Context, status int, parts ...content.Part) {
	c.Writer.Header()["Content-Type"] = applicationJSON
	sendBody(c, status, parts...)
}

// sendState is send for a resource with an entity tag. It evaluates If-None-Match.
func sendState(c *gin.Context, tag string, parts ...content.Part) {
	header := c.Writer.Header()
	header.Set("ETag", etag.Format(tag, compresses(c, lengthOf(parts))))
	if unmodified(c, tag) {
		header["Vary"] = onAcceptedEncoding
		c.Status(http.StatusNotModified)
		c.Writer.WriteHeaderNow()
		return
	}
	send(c, http.StatusOK, parts...)
}

// unmodified reports whether the client has the state with that entity tag, and wants only a later one.
func unmodified(c *gin.Context, tag string) bool {
	return c.Request.Method != http.MethodPatch && etag.IfNoneMatch(c.Request.Header.Values("If-None-Match")).Names(tag)
}

// sendBody writes a body, compressed if that is worthwhile and the client accepts it. For HEAD, net/http sends
// the headers and drops the body. If a write fails, the client is gone; the log has the status and the size.
func sendBody(c *gin.Context, status int, parts ...content.Part) {
	kept := chunks.Get().(*[]byte)
	chunk, rest := gather(*kept, divided(parts))
	header, length := c.Writer.Header(), len(chunk)+lengthOf(rest)
	if length >= minCompressedBytes {
		header["Vary"] = onAcceptedEncoding
	}
	c.Status(status)
	client := newPacedWriter(c)
	free, compressed := takeCompressor(c, length)
	if compressed {
		header["Content-Encoding"] = gzipEncoding
	} else {
		header.Set("Content-Length", strconv.Itoa(length))
	}
	switch {
	case c.Request.Method == http.MethodHead:
		chunks.Put(kept)
	case compressed:
		held := gzipped(client, free, chunk, rest)
		chunks.Put(kept)
		_ = held.flush()
	default:
		_ = write(client, chunk, rest)
		chunks.Put(kept)
	}
	c.Writer.WriteHeaderNow()
}

// gzipped compresses a body and then calls free. What does not fit into the returned buffer is sent meanwhile. The
// caller flushes the buffer after it has given back the chunk, because the client may be slow to read.
func gzipped(client io.Writer, free func(), chunk []byte, rest []content.Part) *buffered {
	defer free()
	held := &buffered{to: client}
	_ = compressing(held, func(w io.Writer) error { return write(w, chunk, rest) })
	return held
}

func compresses(c *gin.Context, length int) bool {
	return length >= minCompressedBytes && acceptsGzip(c.Request.Header.Values("Accept-Encoding"))
}

func lengthOf(parts []content.Part) (length int) {
	for _, part := range parts {
		length += part.Len()
	}
	return length
}

// chunkBytes is how much of a body is assembled for one write. A client that does not read occupies one chunk per
// request, and the rest of a body that nothing else holds: see ownBodies. Each further write wakes the client, which
// has a cost: a page of 100 findings, 225 kB, takes a tenth more processor time in chunks of 128 KiB, and a fifth more
// in chunks of 64.
const chunkBytes = 256 << 10

// chunkPatience is how long a client may take to read a chunk. Each client that reads nothing occupies one for that
// long, and a key may send hundreds of requests in a minute.
const chunkPatience = 20 * time.Second

// chunks is a pool without the chunks that a long finding has made larger.
var chunks = sync.Pool{New: func() any { return new(make([]byte, 0, chunkBytes+pieceBytes)) }}

// ownBodies limits how many bodies longer than a chunk are sent at a time, in total and per organization, if only their
// responses hold them: a page may have 8 MiB, and its client two minutes.
var ownBodies = slots.New(16, 4)

// ownBodyRetryAfter is when to try again for a place: a client that reads nothing is disconnected by then.
const ownBodyRetryAfter = chunkPatience

// takeOwnBody takes a place for the response's body if it needs one. The caller frees it once the body is sent. The
// console needs none, because it reads at once.
func takeOwnBody(c *gin.Context, response handlers.Response) (free func(), err error) {
	long := response.Own && lengthOf(response.Body) > chunkBytes
	if !long || isHeader(c, response.Tag) || fromInside(c.Request.Context()) {
		return func() {}, nil
	}
	if free, err = ownBodies.Take(stateOf(c).identity.Organization); err != nil {
		return nil, problem.Busy("too many long answers are being sent; those of at most 256 KiB are not limited: "+
			"lower size or values, if the request has one", ownBodyRetryAfter)
	}
	return free, nil
}

// isHeader reports whether the response is sent without its body. Its tag is empty if it is no resource.
func isHeader(c *gin.Context, tag string) bool {
	return c.Request.Method == http.MethodHead || tag != "" && unmodified(c, tag)
}

// pieceBytes is the length of the pieces that long parts are sent in. A chunk has room for one beyond chunkBytes.
const pieceBytes = chunkBytes / 4

// divided replaces each long part that is already rendered by pieces of it, without a copy. Otherwise a client that
// does not read would occupy a copy of the whole part, and one that reads slowly would have one chunk's time for it.
func divided(parts []content.Part) []content.Part {
	if !slices.ContainsFunc(parts, isLong) {
		return parts
	}
	pieces := make([]content.Part, 0, len(parts)+lengthOf(parts)/pieceBytes)
	for _, part := range parts {
		if !isLong(part) {
			pieces = append(pieces, part)
			continue
		}
		for piece := range slices.Chunk(*part.(*content.Bytes), pieceBytes) {
			pieces = append(pieces, content.Of(piece))
		}
	}
	return pieces
}

func isLong(part content.Part) bool {
	_, rendered := part.(*content.Bytes)
	return rendered && part.Len() > pieceBytes
}

// gather appends parts until the chunk is full, and returns the remaining parts.
func gather(chunk []byte, parts []content.Part) ([]byte, []content.Part) {
	for i, part := range parts {
		if len(chunk) >= chunkBytes {
			return chunk, parts[i:]
		}
		chunk = part.AppendTo(chunk)
	}
	return chunk, nil
}

// write writes a chunk to w, and then the remaining parts.
func write(w io.Writer, chunk []byte, rest []content.Part) error {
	for {
		if _, err := w.Write(chunk); err != nil || len(rest) == 0 {
			return err
		}
		chunk, rest = gather(chunk[:0], rest)
	}
}
