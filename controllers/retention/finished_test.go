package retention

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// finding returns a closed finding that owes nothing.
func finding(change func(*v1alpha1.Finding)) *v1alpha1.Finding {
	return builder.Finding("f").In("org-x").Closed(noon, "s").Triage(v1alpha1.UserStatusOpen, "").Mutate(func(f *v1alpha1.Finding) {
		f.Generation, f.Status.ObservedGeneration = 2, 2
		f.Status.Transitions = []v1alpha1.Transition{{Seq: 1, Type: "created"}, {Seq: 2, Type: "closed"}}
		f.Status.EmittedSeq = 2
		change(f)
	}).Build()
}

func scan(change func(*v1alpha1.Scan)) *v1alpha1.Scan {
	return builder.Scan("s", noon.Add(-time.Hour)).In("org-x").Mutate(func(s *v1alpha1.Scan) {
		s.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour))
		change(s)
	}).Build()
}

// pullRequestOf returns a review that last changed at noon and owes nothing.
func pullRequestOf(change func(*v1alpha1.Review)) *v1alpha1.Review {
	return builder.Review("r").In("org-x").Reviewed("a", noon.Add(-time.Hour)).Mutate(func(r *v1alpha1.Review) {
		r.Generation, r.Status.ObservedGeneration, r.Status.UpdatedAt = 2, 2, new(v1alpha1.NewTime(noon))
		r.Status.Transitions, r.Status.EmittedSeq = []v1alpha1.Transition{{Seq: 1, Type: "updated"}}, 1
		change(r)
	}).Build()
}

func delivery(phase v1alpha1.WebhookDeliveryPhase, change func(*v1alpha1.WebhookDelivery)) *v1alpha1.WebhookDelivery {
	return builder.WebhookDelivery("d", noon).In("org-x").Mutate(func(d *v1alpha1.WebhookDelivery) {
		d.Status.Phase, d.Status.FinishedAt = phase, new(v1alpha1.NewTime(noon))
		change(d)
	}).Build()
}

// operation returns a preview.
func operation(change func(*v1alpha1.TriageOperation)) *v1alpha1.TriageOperation {
	return builder.TriageOperation("o", "G1").In("org-x").Mutate(func(o *v1alpha1.TriageOperation) {
		o.Status.SelectedAt = new(v1alpha1.NewTime(noon))
		change(o)
	}).Build()
}

func TestWhatHasFinishedAndSince(t *testing.T) {
	asIs := func(*v1alpha1.Finding) {}
	scanAsIs := func(*v1alpha1.Scan) {}
	deliveryAsIs := func(*v1alpha1.WebhookDelivery) {}
	ended := func(outcome v1alpha1.ScanOutcome) func(*v1alpha1.Scan) {
		return func(s *v1alpha1.Scan) { s.Spec.Outcome, s.Spec.CompletedAt = outcome, new(v1alpha1.NewTime(noon)) }
	}
	cases := []struct {
		reason string
		object client.Object
		want   shelf
	}{
		{"a closed finding", finding(asIs), closedFindings},
		{"one closed by a scan that started long before: the period begins when that was recorded", finding(func(f *v1alpha1.Finding) {
			f.Spec.Closed.At = v1alpha1.NewTime(noon.Add(-100 * 24 * time.Hour))
			f.Status.Transitions = []v1alpha1.Transition{
				{Seq: 1, Type: "closed", At: v1alpha1.NewTime(noon.Add(-time.Hour))}, {Seq: 2, Type: "reopened"},
				{Seq: 3, Type: "closed", At: v1alpha1.NewTime(noon)}, {Seq: 4, Type: "updated", At: v1alpha1.NewTime(noon.Add(time.Hour))},
			}
			f.Status.EmittedSeq, f.Status.UpdatedAt = 4, new(v1alpha1.NewTime(noon.Add(time.Hour)))
		}), closedFindings},
		{"one that was closed long before a decision about it was withdrawn, which can be undone as long", finding(func(f *v1alpha1.Finding) {
			long := v1alpha1.NewTime(noon.Add(-100 * 24 * time.Hour))
			f.Spec.Closed.At = long
			f.Status.Transitions = []v1alpha1.Transition{
				{Seq: 1, Type: "triaged", At: long}, {Seq: 2, Type: "closed", At: long}, {Seq: 3, Type: "triaged", At: v1alpha1.NewTime(noon)},
			}
			f.Status.EmittedSeq = 3
		}), closedFindings},
		{"one whose decision was withdrawn before it was closed", finding(func(f *v1alpha1.Finding) {
			f.Status.Transitions = []v1alpha1.Transition{
				{Seq: 1, Type: "triaged", At: v1alpha1.NewTime(noon.Add(-time.Hour))}, {Seq: 2, Type: "closed", At: v1alpha1.NewTime(noon)},
			}
		}), closedFindings},
		{"one whose history no longer shows the closure", finding(func(f *v1alpha1.Finding) {
			f.Spec.Closed.At = v1alpha1.NewTime(noon.Add(-100 * 24 * time.Hour))
			f.Status.Transitions = []v1alpha1.Transition{{Seq: 17, Type: "triaged", At: v1alpha1.NewTime(noon)}}
			f.Status.EmittedSeq, f.Status.UpdatedAt = 17, new(v1alpha1.NewTime(noon))
		}), closedFindings},
		{"one that an earlier version recorded without a history", finding(func(f *v1alpha1.Finding) {
			f.Status.Transitions, f.Status.UpdatedAt = nil, new(v1alpha1.NewTime(noon.Add(-time.Hour)))
		}), closedFindings},
		{"an open one", finding(func(f *v1alpha1.Finding) { f.Spec.Closed = nil }), ""},
		{"one confirmed by a person is confirmed again when it comes back", finding(func(f *v1alpha1.Finding) {
			f.Spec.Triage.UserStatus = v1alpha1.UserStatusActive
		}), closedFindings},
		{"a muted one", finding(func(f *v1alpha1.Finding) { f.Spec.Triage.UserStatus = v1alpha1.UserStatusMuted }), triagedFindings},
		{"one that was muted long after it was closed", finding(func(f *v1alpha1.Finding) {
			long := v1alpha1.NewTime(noon.Add(-100 * 24 * time.Hour))
			f.Spec.Closed.At, f.Spec.Triage.UserStatus = long, v1alpha1.UserStatusMuted
			f.Status.Transitions = []v1alpha1.Transition{
				{Seq: 1, Type: "closed", At: long}, {Seq: 2, Type: "triaged", At: v1alpha1.NewTime(noon)},
			}
		}), triagedFindings},
		{"a commented one", finding(func(f *v1alpha1.Finding) { f.Spec.Triage.Comments = "see #4" }), triagedFindings},
		{"one that has its closure still to be told", finding(func(f *v1alpha1.Finding) { f.Status.EmittedSeq = 1 }), ""},
		{"one whose controller has not seen its closure", finding(func(f *v1alpha1.Finding) { f.Generation = 3 }), ""},
		{"one that no controller has seen", finding(func(f *v1alpha1.Finding) { f.Status = v1alpha1.FindingStatus{} }), ""},
		{"one that goes anyhow", finding(func(f *v1alpha1.Finding) { f.DeletionTimestamp = new(metav1.NewTime(noon)) }), ""},

		{"a running scan", scan(scanAsIs), ""},
		{"one that succeeded", scan(ended(v1alpha1.ScanSucceeded)), finishedScans},
		{"one that failed", scan(ended(v1alpha1.ScanFailed)), finishedScans},
		{"one given up", scan(func(s *v1alpha1.Scan) { s.Status.Phase = v1alpha1.ScanPhaseFailed }), finishedScans},
		{"one that has its end still to be told", scan(func(s *v1alpha1.Scan) {
			ended(v1alpha1.ScanSucceeded)(s)
			s.Status.Transitions = []v1alpha1.Transition{{Seq: 1}}
		}), ""},
		{"one whose end its controller has not seen", scan(func(s *v1alpha1.Scan) {
			ended(v1alpha1.ScanSucceeded)(s)
			s.Generation = 2
		}), ""},

		{"a review that has not changed since", pullRequestOf(func(*v1alpha1.Review) {}), idleReviews},
		{"one of a merged pull request", pullRequestOf(func(r *v1alpha1.Review) { r.Spec.PRStatus = v1alpha1.PullRequestMerged }), idleReviews},
		{"one that no controller has seen", pullRequestOf(func(r *v1alpha1.Review) { r.Status = v1alpha1.ReviewStatus{} }), ""},
		{"one whose last commit its controller has not seen", pullRequestOf(func(r *v1alpha1.Review) { r.Generation = 3 }), ""},
		{"one that has its change still to be told", pullRequestOf(func(r *v1alpha1.Review) { r.Status.EmittedSeq = 0 }), ""},
		{"one that goes anyhow", pullRequestOf(func(r *v1alpha1.Review) { r.DeletionTimestamp = new(metav1.NewTime(noon)) }), ""},

		{"a delivery on its way", delivery(v1alpha1.WebhookDeliveryPending, deliveryAsIs), ""},
		{"one that no controller has seen", delivery("", deliveryAsIs), ""},
		{"one delivered", delivery(v1alpha1.WebhookDeliveryDelivered, deliveryAsIs), finishedDeliveries},
		{"one given up", delivery(v1alpha1.WebhookDeliveryFailed, deliveryAsIs), finishedDeliveries},
		{"one by the last attempt", delivery(v1alpha1.WebhookDeliveryFailed, func(d *v1alpha1.WebhookDelivery) {
			d.Status.FinishedAt = nil
			d.Status.Attempts = []v1alpha1.WebhookAttempt{{At: v1alpha1.NewTime(noon.Add(-time.Hour))}, {At: v1alpha1.NewTime(noon)}}
		}), finishedDeliveries},
		{"one never tried", delivery(v1alpha1.WebhookDeliveryFailed, func(d *v1alpha1.WebhookDelivery) {
			d.Status.FinishedAt = nil
			d.CreationTimestamp = metav1.NewTime(noon)
		}), finishedDeliveries},
		{"one that is wanted again", delivery(v1alpha1.WebhookDeliveryFailed, func(d *v1alpha1.WebhookDelivery) {
			d.Annotations = map[string]string{v1alpha1.RedeliverAnnotation: "now"}
		}), ""},
		{"one that was sent again", delivery(v1alpha1.WebhookDeliveryDelivered, func(d *v1alpha1.WebhookDelivery) {
			d.Annotations = map[string]string{v1alpha1.RedeliverAnnotation: "now"}
			d.Status.Redelivery = &v1alpha1.WebhookRedelivery{Value: "now"}
		}), finishedDeliveries},

		{"an operation that has ended", operation(func(o *v1alpha1.TriageOperation) {
			o.Spec.Commit, o.Status.CompletedAt = true, new(v1alpha1.NewTime(noon))
		}), finishedOperations},
		{"one that failed without a set", operation(func(o *v1alpha1.TriageOperation) {
			o.Status.CompletedAt, o.Status.SelectedAt = o.Status.SelectedAt, nil
		}), setlessOperations},
		{"one that nobody has committed", operation(func(*v1alpha1.TriageOperation) {}), previews},
		{"one that is at work", operation(func(o *v1alpha1.TriageOperation) { o.Spec.Commit = true }), ""},
		{"one that selects its findings", operation(func(o *v1alpha1.TriageOperation) { o.Status.SelectedAt = nil }), ""},

		{"no kind of ours", builder.Project("p").Build(), ""},
	}
	for _, c := range cases {
		at, on, ok := finished(c.object)
		if on != c.want || ok != (c.want != "") || ok && !at.Equal(noon) {
			t.Errorf("%s: got %q since %s, want %q since %s", c.reason, on, at, c.want, noon)
		}
	}
}

func TestTermsOf(t *testing.T) {
	hour, day := &metav1.Duration{Duration: time.Hour}, &metav1.Duration{Duration: 24 * time.Hour}
	operations := []term{{finishedOperations, 720 * time.Hour}, {setlessOperations, time.Hour}, {previews, 24 * time.Hour}}
	deliveries := []term{{finishedDeliveries, 168 * time.Hour}}
	// besides returns the terms together with those that apply by default.
	besides := func(terms ...term) []term { return slices.Concat(terms, operations, deliveries) }
	cases := []struct {
		reason  string
		figures *v1alpha1.Retention
		want    []term
	}{
		{"nothing said: everything is kept but deliveries and operations", nil, besides()},
		{"nothing named", &v1alpha1.Retention{}, besides()},
		{"triaged findings stay", &v1alpha1.Retention{ClosedFindings: hour}, besides(term{closedFindings, time.Hour})},
		{"unless it is said", &v1alpha1.Retention{ClosedFindings: hour, IncludeTriaged: true},
			besides(term{closedFindings, time.Hour}, term{triagedFindings, time.Hour})},
		{"that alone names no time", &v1alpha1.Retention{IncludeTriaged: true}, besides()},
		{"each figure", &v1alpha1.Retention{FinishedScans: hour, FinishedDeliveries: day},
			slices.Concat([]term{{finishedScans, time.Hour}}, operations, []term{{finishedDeliveries, 24 * time.Hour}})},
		{"reviews have a figure too", &v1alpha1.Retention{IdleReviews: hour}, besides(term{idleReviews, time.Hour})},
		{"operations have a figure too", &v1alpha1.Retention{FinishedOperations: day}, slices.Concat(
			[]term{{finishedOperations, 24 * time.Hour}, {setlessOperations, time.Hour}, {previews, 24 * time.Hour}}, deliveries)},
		{"and those without a set are kept no longer than others", &v1alpha1.Retention{FinishedOperations: &metav1.Duration{}},
			slices.Concat([]term{{finishedOperations, 0}, {setlessOperations, 0}, {previews, 24 * time.Hour}}, deliveries)},
		{"no time at all is a time", &v1alpha1.Retention{FinishedDeliveries: &metav1.Duration{}},
			slices.Concat(operations, []term{{finishedDeliveries, 0}})},
	}
	for _, c := range cases {
		if got := termsOf(c.figures); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.reason, got, c.want)
		}
	}
}
