package apiserver

import (
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/handlers"
)

// fromStore are the lists that are read where they are stored: the revision of the read model does not say whether a
// page of them is as it was.
var fromStore = []string{"listTriageOperations", "listTriageOperationFindings", "listTriagePolicies", "listAPIKeys"}

// performList runs the operation of a list, unless the page is ready.
func (r *router) performList(id string, handle handlers.Handle) gin.HandlerFunc {
	anew := r.perform(handle)
	return func(c *gin.Context) {
		request := stateOf(c).request
		// Asked before the list is made: what is made is as new as this at least.
		key := pageKey{r.model.Revision(request.Organization), request.Organization, id, askedBy(c)}
		if key.revision == 0 { // nothing of the organization is shown, so nothing is kept
			anew(c)
			return
		}
		page, again := r.pages.get(key)
		of := formOf(c, page.length)
		if body := page.forms[of]; body != nil {
			sendReady(c, of, body, page.length)
			return
		}
		response, err := handle(c.Request.Context(), request)
		switch {
		case err != nil:
			fail(c, err)
		case again:
			r.sendKept(c, key, response.Body)
		default:
			send(c, http.StatusOK, response.Body...)
		}
	}
}

// askedBy is what the pages of an operation differ in: the query, and the path where that has parameters.
func askedBy(c *gin.Context) string {
	if len(c.Params) == 0 {
		return c.Request.URL.RawQuery
	}
	return c.Request.URL.EscapedPath() + "?" + c.Request.URL.RawQuery
}

// sendKept sends a page, and keeps it.
func (r *router) sendKept(c *gin.Context, key pageKey, parts []content.Part) {
	length := lengthOf(parts)
	of := formOf(c, length)
	var body []byte
	if of == compressed {
		body = compressedOf(parts)
	} else {
		body = joined(parts, length)
	}
	r.pages.keep(key, of, body, length)
	sendReady(c, of, body, length)
}

// formOf is the form in which the client is sent a body of that length.
func formOf(c *gin.Context, length int) form {
	if compresses(c, length) {
		return compressed
	}
	return plain
}

// sendReady sends a body that is in one piece; length is its length as it is.
func sendReady(c *gin.Context, of form, body []byte, length int) {
	header := c.Writer.Header()
	header["Content-Type"] = applicationJSON
	if length >= minCompressedBytes {
		header["Vary"] = onAcceptedEncoding
	}
	if of == compressed {
		header["Content-Encoding"] = gzipEncoding
	}
	header["Content-Length"] = []string{strconv.Itoa(len(body))}
	c.Status(http.StatusOK)
	if c.Request.Method == http.MethodHead {
		c.Writer.WriteHeaderNow()
		return
	}
	// If it fails the client is gone; the log has the status and the size.
	_, _ = c.Writer.Write(body)
}
