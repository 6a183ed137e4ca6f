package apiserver

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/appsec-dev/findings-operator/apiserver/auth"
)

// metrics count requests by the contract's route, never by path: a client could make up any
// number of paths.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	refusals *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) *metrics {
	labels := []string{"route", "method", "code"}
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "findings_api_requests_total",
			Help: "Requests that were answered.",
		}, labels),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "findings_api_request_duration_seconds",
			Help:    "Time from a request's headers to the end of its answer.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, labels),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "findings_api_key_refusals_total",
			Help: "Requests that were answered with 401, or for a scope that the key lacks with 403, by what was wrong with their key.",
		}, []string{"reason"}),
	}
	registry.MustRegister(m.requests, m.duration, m.refusals)
	// Created up front: rate() misses the first increment of a new series.
	for _, reason := range auth.Reasons {
		m.refusals.WithLabelValues(string(reason))
	}
	return m
}

// unmatched is the route of requests for unknown paths.
const unmatched = "unmatched"

var knownMethods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
	http.MethodDelete, http.MethodOptions,
}

func (m *metrics) observe(route, method string, code int, took time.Duration) {
	if route == "" {
		route = unmatched
	}
	labels := []string{route, methodLabel(method), strconv.Itoa(code)}
	m.requests.WithLabelValues(labels...).Inc()
	m.duration.WithLabelValues(labels...).Observe(took.Seconds())
}

// methodLabel keeps clients from making up any number of methods.
func methodLabel(method string) string {
	if slices.Contains(knownMethods, method) {
		return method
	}
	return "other"
}

func (m *metrics) refused(reason auth.Reason) { m.refusals.WithLabelValues(string(reason)).Inc() }

// newDataAge exposes the age of the authorization data: clients see it in the header x-data-age, and
// requests are refused when it becomes too high.
func newDataAge(authenticator *auth.Authenticator) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "findings_api_authorization_data_age_seconds",
		Help: "Age of what is known of API keys; very large while nothing is known.",
	}, func() float64 { return authenticator.Age(time.Now()).Seconds() })
}
