// Package apiserver serves the REST API on top of the Kubernetes API: reads come from an in-memory
// model that watches feed, and decisions are patches.
package apiserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"github.com/appsec-dev/findings-operator/apiserver/auth"
	"github.com/appsec-dev/findings-operator/apiserver/cluster"
	"github.com/appsec-dev/findings-operator/apiserver/console/session"
	"github.com/appsec-dev/findings-operator/apiserver/cursor"
	"github.com/appsec-dev/findings-operator/apiserver/handlers"
	"github.com/appsec-dev/findings-operator/apiserver/ratelimit"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
	"github.com/appsec-dev/findings-operator/apiserver/uploads"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
)

// The bounds of a connection. A response may contain 1,000 findings and go to a slow client.
const (
	readHeaderTimeout = 5 * time.Second
	// readTimeout bounds the headers and the body of a request, except a streamed one.
	readTimeout  = 45 * time.Second
	writeTimeout = 2 * time.Minute
	idleTimeout  = 2 * time.Minute
	// lostAfter is when a connection is closed whose client acknowledges nothing. It is longer than writeTimeout, because
	// a client that does not read counts as lost, too.
	lostAfter      = writeTimeout + 30*time.Second
	maxHeaderBytes = 32 << 10
	// maxConcurrentStreams is how many requests an HTTP/2 connection may have open, the minimum that the protocol
	// recommends, because a client that reads no responses occupies a chunk for each.
	maxConcurrentStreams = 100
)

// shutdownTimeout is how long requests may take to finish once the server is told to stop.
const shutdownTimeout = cluster.Patience + 5*time.Second

// exportEndTimeout is how long before the end of shutdownTimeout exports are stopped, so that their connections
// can close.
const exportEndTimeout = 5 * time.Second

// uploadEndTimeout is how long before the end of shutdownTimeout imports are stopped, so that they can finish the last
// write, record their end, and release their Leases.
const uploadEndTimeout = importer.FinishTimeout + importer.EndTimeout + 3*time.Second

// flushTimeout is how much of shutdownTimeout sending the last traces may take.
const flushTimeout = 5 * time.Second

// cursorKeysInterval is how often mounted cursor keys are read again.
const cursorKeysInterval = 30 * time.Second

// Options of a Server.
type Options struct {
	// Config reaches the Kubernetes API as the facade's service account.
	Config *rest.Config
	// BindAddress is where the REST API listens, for example ":8080".
	BindAddress string
	// HealthBindAddress is where health and metrics listen.
	HealthBindAddress string
	// Namespace of the operator, where the signing keys are.
	Namespace string
	// CursorKeysDir holds the keys of cursors, shared by all replicas. If empty, a random key is used until the
	// process ends.
	CursorKeysDir string
	// KeyStaleness is how old the API key data may be before requests are refused.
	KeyStaleness time.Duration
	// DataStaleness is how long a kind may be silent before requests that depend on it are refused;
	// 0 means DefaultDataStaleness.
	DataStaleness time.Duration
	// TLSCertFile and TLSKeyFile hold the certificate of the REST API and its private key; both empty means
	// plain HTTP.
	TLSCertFile, TLSKeyFile string
	// TrustedProxies are the proxies whose X-Forwarded-For is trusted.
	TrustedProxies []netip.Prefix
	// RedisURLFile holds the URL of the Redis in which replicas share the counters of rate limits. If empty,
	// each replica counts in its own memory.
	RedisURLFile string
	// TraceEndpoint is the URL of an OpenTelemetry collector. If empty, nothing is traced.
	TraceEndpoint string
	// TraceSampleRatio is the share of requests without a traceparent that is traced.
	TraceSampleRatio float64
	// Console enables the web pages.
	Console bool
	// Uploads limits concurrent uploads; the zero value means uploads.DefaultLimits.
	Uploads uploads.Limits
	// Log receives the access log and all other messages.
	Log *slog.Logger
}

// DefaultDataStaleness is the default of Options.DataStaleness.
const DefaultDataStaleness = 10 * time.Minute

// Server serves the REST API.
type Server struct {
	log     *slog.Logger
	auth    *auth.Authenticator
	model   *readmodel.Model
	cursors *cursor.Codec
	limiter *ratelimit.Limiter
	uploads *uploads.Service
	tracer  *tracing.Tracer
	// certificates is nil for plain HTTP.
	certificates *certwatcher.CertWatcher

	listener, healthListener net.Listener
	api, health              *http.Server
	draining                 atomic.Bool
	// leaving is closed when the process begins to stop, and stopping when exports must end.
	leaving, stopping chan struct{}
}

// New returns a server that already listens, and answers requests once it runs.
func New(options Options) (*Server, error) {
	s := &Server{log: options.Log, leaving: make(chan struct{}), stopping: make(chan struct{})}
	log := logr.FromSlogHandler(options.Log.Handler())
	var err error
	registry := newRegistry()
	unreadables := kube.NewUnreadables(log.WithName("kube"), nil)
	registry.MustRegister(unreadables)
	if s.model, err = readmodel.New(readmodel.Options{
		Config: options.Config, Unreadables: unreadables, Log: log.WithName("readmodel"), Registerer: registry,
	}); err != nil {
		return nil, fmt.Errorf("make the read model: %w", err)
	}
	if s.auth, err = auth.New(auth.Options{
		Config: options.Config, Namespace: options.Namespace, Staleness: options.KeyStaleness,
		Unreadables: unreadables, Log: log.WithName("auth"),
	}); err != nil {
		return nil, fmt.Errorf("make the authenticator: %w", err)
	}
	if s.cursors, err = newCursors(options.CursorKeysDir); err != nil {
		return nil, err
	}
	backend, err := s.newBackend(options, registry)
	if err != nil {
		return nil, err
	}
	registry.MustRegister(newDataAge(s.auth, time.Now()))
	if s.limiter, err = ratelimit.New(ratelimit.Options{
		RedisURLFile: options.RedisURLFile, Logger: log.WithName("ratelimit"), Registerer: registry,
	}); err != nil {
		return nil, fmt.Errorf("make the rate limit: %w", err)
	}
	if s.certificates, err = newCertificates(options.TLSCertFile, options.TLSKeyFile); err != nil {
		return nil, err
	}
	if s.tracer, err = tracing.New(context.Background(), tracing.Options{
		Endpoint: options.TraceEndpoint, SampleRatio: options.TraceSampleRatio,
		Log: log.WithName("tracing"), Registerer: registry,
	}); err != nil {
		return nil, err
	}
	r := &router{
		auth: s.auth, model: s.model, limiter: s.limiter, tracer: s.tracer,
		metrics: newMetrics(registry), log: options.Log,
		leaving: s.leaving, trustedProxies: options.TrustedProxies,
		dataStaleness: cmp.Or(options.DataStaleness, DefaultDataStaleness),
	}
	if options.Console {
		r.sessions = &session.Sealer{Keys: s.cursors.Derive}
	}
	handler, err := r.handler(handlers.Operations(backend))
	if err != nil {
		return nil, err
	}
	s.api = s.newHTTPServer(handler)
	if s.certificates != nil {
		s.api.TLSConfig = tlsConfig(s.certificates)
	}
	s.health = s.newHTTPServer(s.healthHandler(registry))
	return s, s.listen(options.BindAddress, options.HealthBindAddress)
}

// newBackend creates the dependencies of the operations.
func (s *Server) newBackend(options Options, registry prometheus.Registerer) (*handlers.Backend, error) {
	client, err := cluster.NewClient(options.Config)
	if err != nil {
		return nil, err
	}
	if s.uploads, err = uploads.New(uploads.Options{
		Config: options.Config, Limits: options.Uploads, Log: options.Log, Registerer: registry,
	}); err != nil {
		return nil, fmt.Errorf("make the uploads: %w", err)
	}
	streams := handlers.NewEventStreams()
	registry.MustRegister(newOpenStreams(streams))
	return &handlers.Backend{
		Model: s.model, Cursors: s.cursors, Cluster: client, Uploads: s.uploads, Keys: s.auth,
		Exports: handlers.NewExports(), EventStreams: streams, Stopping: s.stopping,
	}, nil
}

func newRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

func newCursors(folder string) (*cursor.Codec, error) {
	if folder == "" {
		return cursor.NewRandom(), nil
	}
	return cursor.Load(folder)
}

func (s *Server) newHTTPServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxConcurrentStreams},
		ConnContext:       withConnection,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
		// OPTIONS * is handled like every other request: with a 401 or 404.
		DisableGeneralOptionsHandler: true,
	}
}

func (s *Server) listen(address, healthAddress string) error {
	var err error
	if s.listener, err = net.Listen("tcp", address); err != nil {
		return fmt.Errorf("listen for the REST API: %w", err)
	}
	if s.healthListener, err = net.Listen("tcp", healthAddress); err != nil {
		return errors.Join(fmt.Errorf("listen for health and metrics: %w", err), s.listener.Close())
	}
	return nil
}

// Address returns where the REST API listens.
func (s *Server) Address() string { return s.listener.Addr().String() }

// HealthAddress returns where health and metrics listen.
func (s *Server) HealthAddress() string { return s.healthListener.Addr().String() }

// Run serves until ctx ends, then finishes the requests that have begun and returns nil. It returns early, with
// an error, if a part of the server fails.
func (s *Server) Run(ctx context.Context) error {
	s.log.Info("Serving", "address", s.Address(), "tls", s.certificates != nil, "healthAddress", s.HealthAddress())
	// The parts outlive ctx, because requests that have begun need them until the end.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, running := errgroup.WithContext(running)
	group.Go(func() error { return s.model.Run(running) })
	group.Go(func() error { return s.auth.Run(running) })
	group.Go(func() error {
		s.cursors.Run(running, cursorKeysInterval, logr.FromSlogHandler(s.log.Handler()).WithName("cursor"))
		return nil
	})
	group.Go(func() error { return serve(s.health, s.healthListener) })
	group.Go(func() error { return serve(s.api, s.listener) })
	if s.certificates != nil {
		group.Go(func() error { return s.certificates.Start(running) })
	}
	group.Go(func() error {
		defer stop()
		select {
		case <-ctx.Done():
		case <-running.Done():
		}
		return s.shutdown(context.WithoutCancel(ctx))
	})
	return errors.Join(group.Wait(), s.limiter.Close())
}

func serve(server *http.Server, listener net.Listener) error {
	start := server.Serve
	if server.TLSConfig != nil {
		start = func(listener net.Listener) error { return server.ServeTLS(listener, "", "") }
	}
	if err := start(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", listener.Addr(), err)
	}
	return nil
}

// shutdown stops health last, so that probes see the server as not ready rather than dead.
func (s *Server) shutdown(ctx context.Context) error {
	s.log.Info("Stopping: answering the requests that have begun", "timeout", shutdownTimeout)
	s.draining.Store(true)
	close(s.leaving)
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	drained := s.drainUploads(ctx)
	defer time.AfterFunc(shutdownTimeout-exportEndTimeout, func() { close(s.stopping) }).Stop()
	err := s.api.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("requests were cut off: %w", err), s.api.Close())
	}
	<-drained
	s.flush(ctx)
	return errors.Join(err, s.health.Close())
}

// drainUploads gives imports the time that requests have to finish, less the time to record that an import was stopped.
// The channel is closed once no import is running.
func (s *Server) drainUploads(ctx context.Context) <-chan struct{} {
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		ctx, cancel := context.WithTimeout(ctx, shutdownTimeout-uploadEndTimeout)
		defer cancel()
		s.uploads.Close(ctx)
	}()
	return drained
}

// flush sends the last traces. Failing to reach the collector in time is not an error of the server.
func (s *Server) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	if err := s.tracer.Shutdown(ctx); err != nil {
		s.log.Warn("The last traces are lost", "error", err)
	}
}
