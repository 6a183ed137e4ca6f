package controllers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestAnAPIServerThatDoesNotAnswerIsWaitedFor(t *testing.T) {
	address := harness.FreeAddress(t)
	tried := make(chan error, 100)
	config := &rest.Config{Host: "http://" + address, WrapTransport: func(next http.RoundTripper) http.RoundTripper {
		return harness.RoundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			tried <- err
			return response, err
		})
	}}
	ended := make(chan error, 1)
	go func() { ended <- AwaitAPIServer(t.Context(), config) }()
	if err := <-tried; err == nil {
		t.Fatal("something answers at the address")
	}

	var asked atomic.Int32
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch asked.Add(1) {
		case 1: // as a balancer without a backend does
			panic(http.ErrAbortHandler)
		case 2:
			w.Header().Set("Retry-After", "3600")
			http.Error(w, "starting", http.StatusServiceUnavailable)
		default:
			http.NotFound(w, r)
		}
	})}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	harness.Must(t, err)
	go server.Serve(listener)                //nolint:errcheck // it ends with the test
	t.Cleanup(func() { _ = server.Close() }) //nolint:errcheck // nothing depends on it
	harness.Must(t, <-ended)
	harness.Same(t, "answers until then", 3, int(asked.Load()))
}

func TestWhatAnAPIServerIsWaitedFor(t *testing.T) {
	status := func(code int) error {
		return apierrors.NewGenericServerResponse(code, "get", schema.GroupResource{}, "", "", 0, true)
	}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"ready":                        {nil, false},
		"a certificate of another":     {&url.Error{Err: &tls.CertificateVerificationError{Err: errors.New("x509")}}, false},
		"no connection":                {&url.Error{Err: syscall.ECONNREFUSED}, true},
		"no answer in time":            {fmt.Errorf("wait: %w", context.DeadlineExceeded), true},
		"an answer that breaks off":    {io.ErrUnexpectedEOF, true},
		"too many requests":            {status(http.StatusTooManyRequests), true},
		"a proxy gave up waiting":      {status(http.StatusRequestTimeout), true},
		"not ready":                    {status(http.StatusInternalServerError), true},
		"it may not be asked for that": {status(http.StatusForbidden), false},
	} {
		harness.Same(t, name, c.want, isTemporary(c.err))
	}
}
