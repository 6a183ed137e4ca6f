package apiserver

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/gin-gonic/gin"

	"github.com/appsec-dev/findings-operator/apiserver/handlers"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// streaming returns a handler that answers with a streamed body.
func streaming(write func(io.Writer) error) http.Handler {
	return routerWith(&bytes.Buffer{}, func(c *gin.Context) {
		stateOf(c).identity.Organization = c.Request.URL.Query().Get("organization")
		sendStreamed(c, &handlers.Streamed{MediaType: "text/csv", FileName: "a.csv", Write: write, Close: func() {}}, func() error { return nil })
	})
}

// asks returns the request of an organization.
func asks(organization int) *http.Request {
	return httptest.NewRequest(http.MethodGet, fmt.Sprintf("/?organization=%d", organization), http.NoBody)
}

// heldClient reads nothing until it is let.
type heldClient struct {
	*httptest.ResponseRecorder
	let <-chan struct{}
}

func (c heldClient) Write(chunk []byte) (int, error) {
	<-c.let
	return c.ResponseRecorder.Write(chunk)
}

func TestBodiesThatNobodyReadsKeepNoOtherFromBeingProduced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := streaming(func(w io.Writer) error { _, err := w.Write(chunkOf); return err })
		let := make(chan struct{})
		for i := range maxProducing {
			go body.ServeHTTP(heldClient{httptest.NewRecorder(), let}, asks(i))
		}
		synctest.Wait()
		harness.Same(t, "bytes of another", len(chunkOf), answerOf(body, asks(0)).Body.Len())
		close(let)
	})
}

func TestAFewBodiesAreProducedAtATimeAndOneOfAnOrganization(t *testing.T) {
	for _, test := range []struct{ organizations, want int }{{1, 1}, {2, 2}, {maxProducing + 1, maxProducing}} {
		synctest.Test(t, func(t *testing.T) {
			var begun atomic.Int32
			let := make(chan struct{})
			body := streaming(func(io.Writer) error {
				begun.Add(1)
				<-let
				return nil
			})
			for i := range 2 * test.organizations {
				go body.ServeHTTP(httptest.NewRecorder(), asks(i%test.organizations))
			}
			synctest.Wait()
			harness.Same(t, fmt.Sprintf("bodies produced, of %d organizations", test.organizations), test.want, int(begun.Load()))
			close(let)
		})
	}
}
