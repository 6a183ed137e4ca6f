package apiserver

import (
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// healthHandler serves /healthz, /readyz and /metrics. They have a separate port, because they need no key and
// clients should not reach them.
func (s *Server) healthHandler(registry *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "ok") //nolint:errcheck // the probe may be gone
	})
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{Registry: registry}))
	return mux
}

// readyz reports for each part whether it is ready, and which kinds are silent. A replica that was ready once
// stays ready until it stops.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	parts := []struct {
		name  string
		ready bool
	}{
		{"keys", s.auth.Synced()},
		{"read model", s.model.Ready()},
		{"not stopping", !s.draining.Load()},
	}
	status, report := http.StatusOK, ""
	for _, part := range parts {
		mark := "+"
		if !part.ready {
			mark, status = "-", http.StatusServiceUnavailable
		}
		report += fmt.Sprintf("[%s] %s\n", mark, part.name)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprint(w, report+s.silenceReport()) //nolint:errcheck // the probe may be gone
}
