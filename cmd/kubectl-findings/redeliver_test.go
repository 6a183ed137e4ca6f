package main

import (
	"context"
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

func TestWhenARedeliveryHasEnded(t *testing.T) {
	const mine, other = "mine", "other"
	const again = "somebody has requested it again in the meantime: wait for that redelivery with: " +
		"kubectl get webhookdeliveries -n org-acme --watch"
	for reason, tc := range map[string]struct {
		asked, begun string
		phase        v1alpha1.WebhookDeliveryPhase
		ended        bool
		err          string
	}{
		"it has not begun":             {mine, "", v1alpha1.WebhookDeliveryFailed, false, ""},
		"it is under way":              {mine, mine, v1alpha1.WebhookDeliveryPending, false, ""},
		"it succeeded":                 {mine, mine, v1alpha1.WebhookDeliveryDelivered, true, ""},
		"it failed":                    {mine, mine, v1alpha1.WebhookDeliveryFailed, false, "it failed again: no attempt was made"},
		"another was requested before": {other, "", v1alpha1.WebhookDeliveryFailed, false, again},
		"another has replaced it":      {other, mine, v1alpha1.WebhookDeliveryPending, false, again},
		"another succeeded":            {other, other, v1alpha1.WebhookDeliveryDelivered, false, again},
		"another follows its success":  {other, mine, v1alpha1.WebhookDeliveryDelivered, true, ""},
		"its request was removed":      {"", other, v1alpha1.WebhookDeliveryDelivered, false, errNoLongerAsked.Error()},
		"and it is under way":          {"", mine, v1alpha1.WebhookDeliveryPending, false, ""},
	} {
		d := &v1alpha1.WebhookDelivery{}
		d.Namespace = "org-acme"
		d.Annotations = map[string]string{v1alpha1.RedeliverAnnotation: tc.asked}
		d.Status.Phase = tc.phase
		if tc.begun != "" {
			d.Status.Redelivery = &v1alpha1.WebhookRedelivery{Value: tc.begun}
		}
		ended, err := isRedelivered(d, mine)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if ended != tc.ended || text != tc.err {
			t.Errorf("%s: ended %t with %q, want %t with %q", reason, ended, text, tc.ended, tc.err)
		}
	}
}

func TestARedeliveryGoesOnIfItCannotBeWaitedFor(t *testing.T) {
	hasty(t)
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return down
		},
	}).Build()
	err := awaitDelivery(t.Context(), &session{client: c, namespace: "org-acme"}, "d-1", "mine")
	if !errors.Is(err, errStillPending) || !errors.Is(err, down) {
		t.Errorf("the wait ends with %v, want that it continues, and why", err)
	}
}
