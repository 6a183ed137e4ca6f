// Package rivals are what the service is compared with: a handler that writes bytes from memory,
// above which nothing that is written with Gin can come, and one that reads them from PostgreSQL.
package rivals

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/gin-gonic/gin"
)

// maxBody is more than any page has.
const maxBody = 16 << 20

// Ceiling is a Gin handler that answers GET /<name> with what PUT /<name> has left there: no key,
// no limit, no log.
func Ceiling() http.Handler {
	var pages atomic.Pointer[map[string][]byte]
	pages.Store(&map[string][]byte{})
	engine := newEngine()
	engine.GET("/:name", func(c *gin.Context) {
		content, ok := (*pages.Load())[c.Param("name")]
		if !ok {
			c.Status(http.StatusNotFound)
			return
		}
		c.Data(http.StatusOK, "application/json", content)
	})
	engine.PUT("/:name", func(c *gin.Context) {
		content, err := io.ReadAll(io.LimitReader(c.Request.Body, maxBody))
		if err != nil {
			c.Status(http.StatusBadRequest)
			return
		}
		next := map[string][]byte{c.Param("name"): content}
		for name, content := range *pages.Load() {
			if _, ok := next[name]; !ok {
				next[name] = content
			}
		}
		pages.Store(&next)
		c.Status(http.StatusNoContent)
	})
	return engine
}

func newEngine() *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	return gin.New()
}

// Serve serves on a port of the loopback interface until the input ends, which it does with the
// process at its other end. It writes the address as the first line.
func Serve(ctx context.Context, handler http.Handler, in io.Reader, out io.Writer) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: answerTimeout}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	fmt.Fprintln(out, listener.Addr())
	if _, err := io.Copy(io.Discard, in); err != nil {
		return errors.Join(err, server.Close())
	}
	return errors.Join(server.Close(), ignoreClosed(<-ended))
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
