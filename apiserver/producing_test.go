package apiserver

import (
	"bytes"
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
		sendStreamed(c, &handlers.Streamed{MediaType: "text/csv", FileName: "a.csv", Write: write, Close: func() {}}, func() error { return nil })
	})
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
		ask := func() *http.Request { return httptest.NewRequest(http.MethodGet, "/", http.NoBody) }
		let := make(chan struct{})
		for range maxProducing {
			go body.ServeHTTP(heldClient{httptest.NewRecorder(), let}, ask())
		}
		synctest.Wait()
		harness.Same(t, "bytes of another", len(chunkOf), answerOf(body, ask()).Body.Len())
		close(let)
	})
}

func TestAFewBodiesAreProducedAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun atomic.Int32
		let := make(chan struct{})
		body := streaming(func(io.Writer) error {
			begun.Add(1)
			<-let
			return nil
		})
		for range maxProducing + 1 {
			go body.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", http.NoBody))
		}
		synctest.Wait()
		harness.Same(t, "bodies that are produced", maxProducing, int(begun.Load()))
		close(let)
	})
}
