package uploads

import (
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
)

// reason is why an upload's import did not start.
type reason string

const (
	reasonOrganizationLimit  reason = "organization_limit"
	reasonReplicaLimit       reason = "replica_limit"
	reasonOrganizationMemory reason = "organization_memory"
	reasonReplicaMemory      reason = "replica_memory"
	reasonTooLong            reason = "too_long"
	reasonTooSlow            reason = "too_slow"
	reasonInterrupted        reason = "interrupted"
	reasonMalformed          reason = "malformed"
	reasonNotAdmitted        reason = "not_admitted"
	reasonStopping           reason = "stopping"
)

var reasons = []reason{
	reasonOrganizationLimit, reasonReplicaLimit, reasonOrganizationMemory, reasonReplicaMemory,
	reasonTooLong, reasonTooSlow, reasonInterrupted, reasonMalformed, reasonNotAdmitted, reasonStopping,
}

// refusal is the problem of an upload whose import did not start, with the reason.
type refusal struct {
	*problem.Problem
	reason reason
}

// Unwrap returns the problem.
func (r *refusal) Unwrap() error { return r.Problem }

// outcome is how an import ended.
type outcome string

const (
	// outcomeCompleted is an import that is stored completely, outcomePreviewed a dry run.
	outcomeCompleted outcome = "completed"
	outcomePreviewed outcome = "previewed"
	// outcomeRefused is for the client to fix. outcomeBusy waited too long for other imports. outcomeStopped ended with
	// the process.
	outcomeRefused outcome = "refused"
	outcomeBusy    outcome = "busy"
	outcomeStopped outcome = "stopped"
	// outcomeFailed is not the client's fault.
	outcomeFailed outcome = "failed"
)

var outcomes = []outcome{
	outcomeCompleted, outcomePreviewed, outcomeRefused, outcomeBusy, outcomeStopped, outcomeFailed,
}

// outcomeOf returns the outcome of a job that is done.
func outcomeOf(j *job) outcome {
	switch {
	case j.err == nil && j.DryRun:
		return outcomePreviewed
	case j.err == nil:
		return outcomeCompleted
	case errors.Is(j.err, errStopping):
		return outcomeStopped
	}
	switch status := problem.Of(explain(j.err)).Status; {
	case status == http.StatusTooManyRequests:
		return outcomeBusy
	case status < http.StatusInternalServerError:
		return outcomeRefused
	default:
		return outcomeFailed
	}
}

// metrics count uploads. No label value comes from a client.
type metrics struct {
	accepted prometheus.Counter
	refused  *prometheus.CounterVec
	ended    *prometheus.CounterVec
	running  prometheus.Gauge
	waiting  prometheus.Gauge
	duration prometheus.Histogram
	bytes    prometheus.Counter
	results  *prometheus.CounterVec
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	factory := promauto.With(registerer)
	m := &metrics{
		accepted: factory.NewCounter(prometheus.CounterOpts{
			Name: "findings_uploads_accepted_total",
			Help: "Uploads that were read to their end and whose import began, dry runs included.",
		}),
		refused: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "findings_uploads_refused_total",
			Help: "Uploads whose import did not start, by reason; without requests that are refused earlier.",
		}, []string{"reason"}),
		ended: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "findings_uploads_ended_total",
			Help: "Uploads whose import ended, by outcome.",
		}, []string{"outcome"}),
		running: factory.NewGauge(prometheus.GaugeOpts{
			Name: "findings_uploads_running",
			Help: "Uploads whose import is under way.",
		}),
		waiting: factory.NewGauge(prometheus.GaugeOpts{
			Name: "findings_uploads_waiting",
			Help: "Running uploads that wait until others are compared with existing findings.",
		}),
		duration: factory.NewHistogram(prometheus.HistogramOpts{
			Name:    "findings_upload_duration_seconds",
			Help:    "Time from the end of an upload's body to the end of its import.",
			Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800},
		}),
		bytes: factory.NewCounter(prometheus.CounterOpts{
			Name: "findings_upload_bytes_total",
			Help: "Bytes of SARIF that were read from uploads, decompressed.",
		}),
		results: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "findings_upload_results_total",
			Help: "Results of completed uploads of the scan branch, and findings that they closed, by outcome.",
		}, []string{"action"}),
	}
	// Created up front: rate() misses the first increment of a new series.
	for _, r := range reasons {
		m.refused.WithLabelValues(string(r))
	}
	for _, o := range outcomes {
		m.ended.WithLabelValues(string(o))
	}
	m.count(&importer.Summary{})
	return m
}

// refuse counts an upload whose import did not start.
func (m *metrics) refuse(err error) {
	if refused, is := errors.AsType[*refusal](err); is {
		m.refused.WithLabelValues(string(refused.reason)).Inc()
	}
}

// begin counts the start of an import, and returns a function that counts its end.
func (m *metrics) begin() (end func(*job)) {
	begun := time.Now()
	m.accepted.Inc()
	m.running.Inc()
	return func(j *job) {
		m.running.Dec()
		m.duration.Observe(time.Since(begun).Seconds())
		how := outcomeOf(j)
		m.ended.WithLabelValues(string(how)).Inc()
		if how != outcomeCompleted {
			return
		}
		for _, summary := range j.summaries {
			m.count(summary)
		}
	}
}

func (m *metrics) count(s *importer.Summary) {
	for action, n := range map[string]int{
		"created": s.Created, "updated": s.Updated, "reopened": s.Reopened,
		"unchanged": s.Unchanged, "closed": s.Closed, "skipped": s.Skipped,
	} {
		m.results.WithLabelValues(action).Add(float64(n))
	}
}
