package apiserver

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/appsec-dev/findings-operator/apiserver/auth"
	"github.com/appsec-dev/findings-operator/apiserver/handlers"
	"github.com/appsec-dev/findings-operator/internal/apitime"
)

// metrics count requests by the contract's route, never by path, because clients can invent any number of paths.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	refusals *prometheus.CounterVec
	resets   prometheus.Counter
}

func newMetrics(registry prometheus.Registerer) *metrics {
	labels := []string{"route", "method", "code"}
	factory := promauto.With(registry)
	m := &metrics{
		requests: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "findings_api_requests_total",
			Help: "Requests by status; 499 if the client left before an error of the server, 500 if it cut off the answer.",
		}, labels),
		duration: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "findings_api_request_duration_seconds",
			Help:    "Time from a request's headers to the end of its answer.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, labels),
		refusals: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "findings_api_key_refusals_total",
			Help: "Requests refused with 401, or with 403 for a missing scope, by reason.",
		}, []string{"reason"}),
		resets: factory.NewCounter(prometheus.CounterOpts{
			Name: "findings_api_event_resets_total",
			Help: "Event streams that could not resume at the requested position, or had a gap.",
		}),
	}
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

func (m *metrics) count(route, method string, code int) {
	m.requests.WithLabelValues(labelsOf(route, method, code)...).Inc()
}

func (m *metrics) observe(route, method string, code int, took time.Duration) {
	m.duration.WithLabelValues(labelsOf(route, method, code)...).Observe(took.Seconds())
}

func labelsOf(route, method string, code int) []string {
	return []string{cmp.Or(route, unmatched), methodLabel(method), strconv.Itoa(code)}
}

// methodLabel returns "other" for unknown methods: clients can invent any number of them.
func methodLabel(method string) string {
	if slices.Contains(knownMethods, method) {
		return method
	}
	return "other"
}

func (m *metrics) refused(reason auth.Reason) { m.refusals.WithLabelValues(string(reason)).Inc() }

// newOpenStreams exposes how many streams of events are open.
func newOpenStreams(streams *handlers.EventStreams) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "findings_api_event_streams",
		Help: "Streams of events that are open.",
	}, func() float64 { return float64(streams.InUse()) })
}

// newDataAge exposes the age of the authorization data: clients see it in the header x-data-age, and
// requests are refused when it becomes too high. The process began at begin.
func newDataAge(authenticator *auth.Authenticator, begin time.Time) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "findings_api_authorization_data_age_seconds",
		Help: "Age of the API key data; before the first load, the time since the process started.",
	}, func() float64 {
		now := time.Now()
		return min(authenticator.Age(now), apitime.Elapsed(begin, now)).Seconds()
	})
}
