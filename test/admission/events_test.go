package admission_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// People and programs trust Events.
func TestTheFacadeAnnouncesRefusedKeysAndNothingElse(t *testing.T) {
	c := newCast(t, "said")
	cases := []struct {
		reason  string
		change  func(*eventsv1.Event)
		allowed bool
	}{
		{"on a key of an organization", func(*eventsv1.Event) {}, true},
		{"on another kind", func(e *eventsv1.Event) { e.Regarding.Kind = "Finding" }, false},
		{"on another group's kind of the same name", func(e *eventsv1.Event) { e.Regarding.APIVersion = "example.com/v1" }, false},
		{"on nothing", func(e *eventsv1.Event) { e.Regarding = corev1.ObjectReference{Namespace: e.Namespace} }, false},
		{"in another's name", func(e *eventsv1.Event) { e.ReportingController = "findings-controller" }, false},
		{"outside organizations", func(e *eventsv1.Event) { e.Namespace, e.Regarding.Namespace = "default", "default" }, false},
	}
	for _, tc := range cases {
		event := &eventsv1.Event{
			ObjectMeta:          metav1.ObjectMeta{Namespace: c.namespace, Name: "ci.1"},
			Regarding:           corev1.ObjectReference{APIVersion: "appsec.dev/v1alpha1", Kind: "APIKey", Namespace: c.namespace, Name: "ci"},
			Type:                corev1.EventTypeWarning,
			Reason:              "RefusedDisabled",
			Action:              "RefuseRequest",
			EventTime:           metav1.NowMicro(),
			ReportingController: "findings-api",
			ReportingInstance:   "a-pod",
		}
		tc.change(event)
		wantAnswer(t, c.as(facade).Create(t.Context(), event, client.DryRunAll), tc.allowed, tc.reason)
	}
}
