package webhookdelivery

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func at(since time.Duration) *v1alpha1.Time { return &v1alpha1.Time{Time: noon.Add(since)} }

func TestWhatAnAttemptChangesInTheEndpointsStatus(t *testing.T) {
	const day = 24 * time.Hour
	type status = v1alpha1.WebhookEndpointStatus
	disabled := func(reason v1alpha1.WebhookDisabledReason, message string, generation int64) *v1alpha1.WebhookDisabled {
		return &v1alpha1.WebhookDisabled{At: *at(time.Second), Reason: reason, Message: message, Generation: generation}
	}
	const late = 10 * time.Minute // an outage of the API server delays the count
	ok := result{outcome: v1alpha1.WebhookAttemptSucceeded, code: 200}
	bad, gone := failedWith(500), failedWith(410)
	cases := []struct {
		reason string
		before status
		made   result
		sent   int64 // generation that the attempt was made for; the endpoint's is 2
		want   status
	}{
		{"the first success", status{}, ok, 2, status{LastSuccessAt: at(0)}},
		{"a success within a minute is no news", status{LastSuccessAt: at(-59 * time.Second)}, ok, 2, status{LastSuccessAt: at(-59 * time.Second)}},
		{"after a minute it is", status{LastSuccessAt: at(-time.Minute)}, ok, 2, status{LastSuccessAt: at(0)}},
		{"a success ends failing", status{LastSuccessAt: at(-time.Second), ConsecutiveFailures: 7, FailingSince: at(-time.Second)}, ok, 2, status{LastSuccessAt: at(0)}},
		{"a late success does not go backwards", status{LastSuccessAt: at(time.Minute), ConsecutiveFailures: 1}, ok, 2, status{LastSuccessAt: at(time.Minute)}},
		{"nor one that is counted late", status{LastSuccessAt: at(late)}, ok, 2, status{LastSuccessAt: at(late)}},
		{"a success after one by a clock that was ahead", status{LastSuccessAt: at(14 * day)}, ok, 2, status{LastSuccessAt: at(0)}},
		{"a success with what the spec was before", status{}, ok, 1, status{LastSuccessAt: at(0)}},
		{"the first failure", status{}, bad, 2, status{ConsecutiveFailures: 1, FailingSince: at(0)}},
		{"another", status{ConsecutiveFailures: 1, FailingSince: at(-day)}, bad, 2, status{ConsecutiveFailures: 2, FailingSince: at(-day)}},
		{"one that began before a success", status{LastSuccessAt: at(time.Second)}, bad, 2, status{LastSuccessAt: at(time.Second)}},
		{"and that is counted late", status{LastSuccessAt: at(late)}, bad, 2, status{LastSuccessAt: at(late)}},
		{"one after a success by a clock that was ahead", status{LastSuccessAt: at(14 * day)}, bad, 2,
			status{ConsecutiveFailures: 1, FailingSince: at(0)}},
		{"one that began before the first", status{ConsecutiveFailures: 1, FailingSince: at(time.Minute)}, bad, 2, status{ConsecutiveFailures: 2, FailingSince: at(0)}},
		{"with what the spec was before", status{}, bad, 1, status{}},
		{"it is counted up to a bound", status{ConsecutiveFailures: 100, FailingSince: at(-day)}, bad, 2, status{ConsecutiveFailures: 100, FailingSince: at(-day)}},
		{"five days", status{ObservedGeneration: 2, ConsecutiveFailures: 100, FailingSince: at(-5 * day)}, bad, 2,
			status{ObservedGeneration: 2, ConsecutiveFailures: 100, FailingSince: at(-5 * day), Disabled: disabled("FailingTooLong", failingMessage, 2)}},
		{"a second less", status{ObservedGeneration: 2, FailingSince: at(time.Second - 5*day)}, bad, 2,
			status{ObservedGeneration: 2, ConsecutiveFailures: 1, FailingSince: at(time.Second - 5*day)}},
		{"five days of what the spec was before", status{ObservedGeneration: 1, FailingSince: at(-5 * day)}, bad, 2,
			status{ObservedGeneration: 1, ConsecutiveFailures: 1, FailingSince: at(-5 * day)}},
		{"gone", status{}, gone, 2, status{ConsecutiveFailures: 1, FailingSince: at(0), Disabled: disabled("Gone", goneMessage, 2)}},
		{"gone, by what the spec was before", status{}, gone, 1, status{}},
		{"gone, before a later attempt succeeded", status{LastSuccessAt: at(time.Second)}, gone, 2, status{LastSuccessAt: at(time.Second)}},
		{"gone, before a later attempt succeeded, and counted late", status{LastSuccessAt: at(late)}, gone, 2, status{LastSuccessAt: at(late)}},
		{"gone, known before", status{ConsecutiveFailures: 1, FailingSince: at(0), Disabled: disabled("FailingTooLong", "x", 2)}, gone, 2,
			status{ConsecutiveFailures: 2, FailingSince: at(0), Disabled: disabled("FailingTooLong", "x", 2)}},
		{"gone again after a change of the spec", status{Disabled: disabled("Gone", goneMessage, 1)}, gone, 2,
			status{ConsecutiveFailures: 1, FailingSince: at(0), Disabled: disabled("Gone", goneMessage, 2)}},
	}
	for _, c := range cases {
		endpoint := &v1alpha1.WebhookEndpoint{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: c.before}
		before := *c.before.DeepCopy()
		made := attempted{result: c.made, at: noon, ended: noon.Add(time.Second), generation: c.sent, last: true}
		changed := count(endpoint, made, noon.Add(late))
		harness.Same(t, c.reason, c.want, endpoint.Status)
		harness.Same(t, c.reason+": whether it reports that the status differs", !cmp.Equal(before, endpoint.Status), changed)
	}
}

// A ping that failed, a week without events and one failed attempt are no five days of failures.
func TestAnEndpointIsGivenUpOnlyAfterManyAttempts(t *testing.T) {
	for reason, c := range map[string]struct {
		before int32
		last   bool
		want   bool
	}{
		"two attempts, days apart":       {1, false, false},
		"a delivery used up its own":     {1, true, true},
		"a hundred, of other deliveries": {maxFailures - 1, false, true},
	} {
		endpoint := &v1alpha1.WebhookEndpoint{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		endpoint.Status.ObservedGeneration, endpoint.Status.FailingSince = 2, at(-7*24*time.Hour)
		endpoint.Status.ConsecutiveFailures = c.before
		count(endpoint, attempted{result: failedWith(502), at: noon, ended: noon, generation: 2, last: c.last}, noon)
		if endpoint.IsDisabled() != c.want {
			t.Errorf("%s: disabled %+v", reason, endpoint.Status.Disabled)
		}
	}
}

func failedWith(code int32) result {
	return result{outcome: v1alpha1.WebhookAttemptFailed, code: code}
}

func TestAttemptsAreCountedByOutcomeAlone(t *testing.T) {
	registry := prometheus.NewRegistry()
	c := newAttemptsCounter(registry)
	if n, err := testutil.GatherAndCount(registry); err != nil || n != 3 {
		t.Errorf("%d series before the first attempt, %v: an alert needs a 0 to rise from", n, err)
	}
	c.count(v1alpha1.WebhookAttemptFailed)
	c.count(v1alpha1.WebhookAttemptFailed)
	c.count(v1alpha1.WebhookAttemptUnknown)
	for outcome, want := range map[string]float64{"succeeded": 0, "failed": 2, "unknown": 1} {
		harness.Same(t, outcome, want, testutil.ToFloat64(c.WithLabelValues(outcome)))
	}
}
