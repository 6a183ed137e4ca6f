// Package rivals provides the handlers that the service is compared with: one writes bytes from
// memory, which is the upper limit for anything written with Gin, and one reads them from
// PostgreSQL.
package rivals

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/gin-gonic/gin"
)

// maxBody is larger than any page.
const maxBody = 16 << 20

// Ceiling is a Gin handler that answers GET /<name> with the body of the last PUT /<name>, without
// keys, limits and logs.
func Ceiling() http.Handler {
	var pages sync.Map
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.GET("/:name", func(c *gin.Context) {
		content, ok := pages.Load(c.Param("name"))
		if !ok {
			c.Status(http.StatusNotFound)
			return
		}
		c.Data(http.StatusOK, "application/json", content.([]byte))
	})
	engine.PUT("/:name", func(c *gin.Context) {
		content, err := io.ReadAll(io.LimitReader(c.Request.Body, maxBody))
		if err != nil {
			c.Status(http.StatusBadRequest)
			return
		}
		pages.Store(c.Param("name"), content)
		c.Status(http.StatusNoContent)
	})
	return engine
}

// Serve serves on a port of the loopback interface until the input ends, which happens when the
// parent process ends. It first writes the address.
func Serve(ctx context.Context, handler http.Handler, in io.Reader, out io.Writer) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: answerTimeout}
	go server.Serve(listener) //nolint:errcheck // it ends when it is closed; clients report what it does not answer
	if err := json.NewEncoder(out).Encode(listener.Addr().String()); err != nil {
		return errors.Join(err, server.Close())
	}
	_, err = io.Copy(io.Discard, in)
	return errors.Join(err, server.Close())
}
