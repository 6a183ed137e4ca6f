// Package rivals provides the handlers that the service is compared with: one writes bytes from
// memory, which is the upper limit for anything written with Gin, and one reads them from
// PostgreSQL.
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

// maxBody is larger than any page.
const maxBody = 16 << 20

// Ceiling is a Gin handler that answers GET /<name> with the body of the last PUT /<name>, without
// keys, limits and logs.
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

// Serve serves on a port of the loopback interface until the input ends, which happens when the
// parent process ends. It writes the address as the first line.
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
