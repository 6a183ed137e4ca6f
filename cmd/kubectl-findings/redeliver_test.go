package main

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

func TestWhenARedeliveryHasEnded(t *testing.T) {
	const mine, other = "mine", "other"
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
		"another was requested before": {other, "", v1alpha1.WebhookDeliveryFailed, false, errAskedAgain.Error()},
		"another has replaced it":      {other, mine, v1alpha1.WebhookDeliveryPending, false, errAskedAgain.Error()},
		"another succeeded":            {other, other, v1alpha1.WebhookDeliveryDelivered, false, errAskedAgain.Error()},
		"another follows its success":  {other, mine, v1alpha1.WebhookDeliveryDelivered, true, ""},
	} {
		d := &v1alpha1.WebhookDelivery{}
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
	down := apierrors.NewServiceUnavailable("it restarts")
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
