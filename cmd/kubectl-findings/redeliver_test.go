package main

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestWhenARedeliveryHasEnded(t *testing.T) {
	const mine, other = "mine", "other"
	again := errAskedAgain.Error()
	for reason, tc := range map[string]struct {
		asked, begun string
		phase        v1alpha1.WebhookDeliveryPhase
		ended        bool
		err          string
	}{
		"it has not begun":             {mine, "", v1alpha1.WebhookDeliveryFailed, false, ""},
		"it is under way":              {mine, mine, v1alpha1.WebhookDeliveryPending, false, ""},
		"it succeeded":                 {mine, mine, v1alpha1.WebhookDeliveryDelivered, true, ""},
		"it failed":                    {mine, mine, v1alpha1.WebhookDeliveryFailed, false, "it was not sent again: no attempt was made"},
		"another was requested before": {other, "", v1alpha1.WebhookDeliveryFailed, false, again},
		"another has replaced it":      {other, mine, v1alpha1.WebhookDeliveryPending, false, again},
		"another succeeded":            {other, other, v1alpha1.WebhookDeliveryDelivered, false, again},
		"another follows its success":  {other, mine, v1alpha1.WebhookDeliveryDelivered, true, ""},
		"its request was removed":      {"", other, v1alpha1.WebhookDeliveryDelivered, false, errNoLongerAsked.Error()},
		"and it is under way":          {"", mine, v1alpha1.WebhookDeliveryPending, false, ""},
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

func TestARedeliveryThatWasNotSentBlamesNoReceiver(t *testing.T) {
	const answer = "the receiver answered with a status other than 200 to 299"
	d := &v1alpha1.WebhookDelivery{}
	d.Status.Phase = v1alpha1.WebhookDeliveryFailed
	d.Status.Attempts = []v1alpha1.WebhookAttempt{{Code: 503, Message: answer}}
	d.Status.Conditions = []v1alpha1.Condition{{Type: v1alpha1.ConditionReady, Message: "The endpoint was deleted."}}
	for attempts, want := range []string{
		"it was not sent again: The endpoint was deleted.", "it failed again: " + answer + " (status 503)",
	} {
		d.Status.Redelivery = &v1alpha1.WebhookRedelivery{Value: "mine", Attempts: int32(attempts)}
		if _, err := isRedelivered(d, "mine"); err == nil || err.Error() != want {
			t.Errorf("after %d attempts: %v, want %q", attempts, err, want)
		}
	}
	d.Status.Phase, d.Status.Redelivery.Attempts = v1alpha1.WebhookDeliveryPending, 0
	err := stillPending(d, "mine")
	harness.Same(t, "while it waits", errStillPending.Error()+"; not sent yet: The endpoint was deleted.", err.Error())
	d.Status.Redelivery.Attempts = 1
	sent := d.DeepCopy()
	sent.Status.Attempts = append(sent.Status.Attempts, v1alpha1.WebhookAttempt{Outcome: v1alpha1.WebhookAttemptStarted})
	harness.ErrorContains(t, "while the receiver is silent", stillPending(sent, "mine"), "; the last attempt: it is in progress")
	d.Status.Conditions[0].Reason, d.Status.Conditions[0].Message = v1alpha1.ReasonEndpointDisabled, "It is disabled."
	for attempts, want := range []string{
		"requested, but not sent: It is disabled.", "it failed again: " + answer + " (status 503). It is disabled.",
	} {
		d.Status.Redelivery.Attempts = int32(attempts)
		_, err = isRedelivered(d, "mine")
		harness.ErrorContains(t, "a disabled endpoint", err, want)
	}
}

func TestEachRedeliveryIsReadUntilItHasEndedOrTheTimeIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		phases := map[string]v1alpha1.WebhookDeliveryPhase{
			"pending": v1alpha1.WebhookDeliveryPending, "delivered": v1alpha1.WebhookDeliveryDelivered,
			"waiting": v1alpha1.WebhookDeliveryPending, "failed": v1alpha1.WebhookDeliveryFailed,
			"late": v1alpha1.WebhookDeliveryPending, "lost": v1alpha1.WebhookDeliveryPending,
		}
		c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
			Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
				d := o.(*v1alpha1.WebhookDelivery)
				d.Annotations = map[string]string{v1alpha1.RedeliverAnnotation: "mine"}
				d.Status.Phase, d.Status.Redelivery = phases[key.Name], &v1alpha1.WebhookRedelivery{Value: "mine", Attempts: 1}
				d.Status.Attempts = []v1alpha1.WebhookAttempt{{Message: "connection refused"}}
				isLate := time.Since(begun) > 2*time.Minute
				switch {
				case key.Name == "late" && isLate:
					d.Status.Phase = v1alpha1.WebhookDeliveryDelivered
				case key.Name == "unread", key.Name == "lost" && isLate:
					return down
				case key.Name == "replaced":
					d.Annotations[v1alpha1.RedeliverAnnotation] = "other"
				}
				return nil
			},
		}).Build()
		outcomes := []outcome{{tried: true}, {tried: true}, {tried: true}, {tried: true}, {}, {tried: true}, {tried: true},
			{tried: true}, {tried: true}}
		o := &redeliverOptions{concurrency: 1, timeout: 5 * time.Minute}
		o.await(t.Context(), &session{client: c, namespace: "org-acme"},
			[]string{"pending", "delivered", "waiting", "failed", "interrupted", "late", "unread", "lost", "replaced"}, outcomes, "mine")
		harness.Same(t, "the wait took", 5*time.Minute, time.Since(begun))
		pending := errStillPending.Error() + "; the last attempt: connection refused"
		for i, want := range []string{pending, "", pending, "it failed again: connection refused", "", "",
			errNotRead.Error() + ": it restarts", pending + ": it restarts",
			errAskedAgain.Error() + ": wait for that redelivery with: kubectl get webhookdeliveries -n org-acme --watch"} {
			if got := outcomes[i].err; (got != nil || want != "") && (got == nil || got.Error() != want) {
				t.Errorf("number %d: %v, want %q", i, got, want)
			}
		}
	})
}

func TestARedeliveryGoesOnIfItCannotBeWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return down
			},
		}).Build()
		outcomes := []outcome{{tried: true}}
		o := &redeliverOptions{concurrency: 1, timeout: time.Hour}
		o.await(t.Context(), &session{client: c, namespace: "org-acme"}, []string{"d-1"}, outcomes, "mine")
		if err := outcomes[0].err; !errors.Is(err, errNotRead) || !errors.Is(err, down) {
			t.Errorf("the wait ends with %v, want that it continues, and why", err)
		}
	})
}

// The real client decodes into what was read before.
func TestARequestThatIsRemovedDuringAWaitIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := []string{
			`{"metadata":{"name":"d-1","resourceVersion":"1","annotations":{"` + v1alpha1.RedeliverAnnotation + `":"mine"}}}`,
			`{"metadata":{"name":"d-1","resourceVersion":"2"}}`,
		}
		c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
			Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
				answer := answers[0]
				answers = append(answers[1:], answer)
				return json.Unmarshal([]byte(answer), o)
			},
		}).Build()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		d, s := &v1alpha1.WebhookDelivery{}, &session{client: c, namespace: "org-acme"}
		err := s.await(ctx, d, func() (bool, error) { return isRedelivered(d, "mine") })
		if !errors.Is(err, errNoLongerAsked) {
			t.Errorf("the wait ends with %v", err)
		}
	})
}

// More reads would load the API server; fewer would notice the end late.
func TestAWaitReadsEachSecondAndPausesAsLongAsItReads(t *testing.T) {
	for takes, want := range map[time.Duration]int{0: 62, 5 * time.Second: 6} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 59*time.Second)
			defer cancel()
			reads := 0
			err := poll(ctx, func() (bool, error) {
				reads++
				<-time.After(takes)
				return false, nil
			})
			if reads != want || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%d reads of %s, want %d; the wait ends with %v", reads, takes, want, err)
			}
		})
	}
}

func TestAnInterruptBlamesNoAPIServer(t *testing.T) {
	for reason, tc := range map[string]struct {
		try  func(context.Context, *session) error
		want error
	}{
		"a selection": {func(ctx context.Context, s *session) error {
			_, _, err := (&redeliverOptions{failed: true}).choose(ctx, s)
			return err
		}, errInterrupted},
		"a list": {func(ctx context.Context, s *session) error {
			_, err := s.all(ctx, need{kind: "APIKey"})
			return err
		}, context.Canceled},
		"one object": {func(ctx context.Context, s *session) error {
			return s.get(ctx, "f-1", &v1alpha1.Finding{})
		}, context.Canceled},
		"an import": {func(ctx context.Context, s *session) error {
			key := client.ObjectKey{Namespace: s.namespace, Name: "r"}
			return importer.Require(ctx, s.client, "repository", key, &v1alpha1.Repository{})
		}, context.Canceled},
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		interrupted := func() error {
			interrupt()
			return errors.New("unexpected error when reading response body. Please retry")
		}
		c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
				return interrupted()
			},
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return interrupted()
			},
		}).Build()
		if err := tc.try(ctx, &session{client: c, namespace: "org-acme"}); !errors.Is(err, tc.want) {
			t.Errorf("%s: it ends with %v", reason, err)
		}
	}
}
