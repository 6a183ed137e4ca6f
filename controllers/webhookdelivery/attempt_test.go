package webhookdelivery

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/signatures"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/handlertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestAnAttemptDoesNotWaitForeverForTheAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := interceptor.NewClient(nil, interceptor.Funcs{
			Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
				<-ctx.Done()
				return ctx.Err()
			},
		})
		r := &Reconciler{Base: reconcile.Base{Live: silent, Clock: clock.RealClock{}}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		_, err := r.attempt(ctx, types.NamespacedName{Namespace: "org-acme", Name: "d-1"})
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > prepareTimeout {
			t.Errorf("it ended after %s with error %v, want an end after %s", took, err, prepareTimeout)
		}
	})
}

// standIn returns a reconciler for which read answers reads from the API server, and write those of a status; write may
// be nil if there are none.
func standIn(read func(into client.Object) error, write func() error) *Reconciler {
	r := &Reconciler{Base: reconcile.Base{Clock: clock.RealClock{}}}
	r.Client = interceptor.NewClient(fake.NewClientBuilder().WithScheme(testenv.NewScheme()).Build(), interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return write()
		},
	})
	r.Live = handlertest.Gets(func(_ client.ObjectKey, into client.Object) error { return read(into) })
	return r
}

// Each attempt that cannot be signed costs several requests to the API server, and thousands may wait.
func TestAnEndpointWhoseSecretCannotBeUsedCannotBeSentTo(t *testing.T) {
	_, replaced := signatures.NewSecret()
	for reason, secret := range map[string]map[string][]byte{
		"its controller has not observed the secret": {v1alpha1.WebhookSecretKey: []byte(replaced)},
		"the secret is damaged":                      {v1alpha1.WebhookSecretKey: []byte("x")},
	} {
		r := standIn(func(into client.Object) error {
			switch into := into.(type) {
			case *v1alpha1.WebhookEndpoint:
				builder.WebhookEndpoint("team").Build().DeepCopyInto(into)
				into.Status.SecretRef = &v1alpha1.SecretReference{Name: "team"}
			case *corev1.Secret:
				into.Data = secret
			}
			return nil
		}, nil)
		got, err := r.attempt(t.Context(), types.NamespacedName{Namespace: "org-acme", Name: "d-1"})
		if got != healthUnsendable || err == nil {
			t.Errorf("%s: health %d, error %v", reason, got, err)
		}
	}
}

// Each attempt that cannot begin costs several requests to the API server. After an error the next one waits longer.
func TestAnAttemptWhoseBeginIsDeniedIsAnError(t *testing.T) {
	secret, text := signatures.NewSecret()
	for code, isError := range map[int32]bool{http.StatusConflict: true, http.StatusNotFound: true, 0: false} {
		err := error(apierrors.NewConflict(schema.GroupResource{}, "d-1", nil))
		if isError {
			err = webhookerrors.ToStatusErr("hold.example.org", &metav1.Status{Code: code})
		}
		r := standIn(func(into client.Object) error {
			switch into := into.(type) {
			case *v1alpha1.WebhookEndpoint:
				builder.WebhookEndpoint("team").Build().DeepCopyInto(into)
				into.Status.SecretRef = &v1alpha1.SecretReference{Name: "team"}
				into.Status.Secrets = []v1alpha1.WebhookSecretStatus{{ID: secret.ID()}}
			case *corev1.Secret:
				into.Data = map[string][]byte{v1alpha1.WebhookSecretKey: []byte(text)}
			}
			return nil
		}, func() error { return err })
		_, got := r.attempt(t.Context(), types.NamespacedName{Namespace: "org-acme", Name: "d-1"})
		harness.Same(t, fmt.Sprintf("%v: it is an error", err), isError, got != nil && errors.Is(got, err))
	}
}

// A finalizer may hold it for long, and somebody has just removed its URL.
func TestNothingIsSentToAnEndpointThatIsBeingDeleted(t *testing.T) {
	for reason, prepare := range map[string]func(*scope){
		"the first attempt": func(*scope) {},
		"a retry": func(s *scope) {
			webhooks.AddAttempt(s.Status, v1alpha1.WebhookAttempt{
				At: *at(-time.Hour), EndedAt: at(-time.Hour), RetryAt: at(0), Outcome: v1alpha1.WebhookAttemptFailed,
			})
		},
		"a redelivery": func(s *scope) {
			webhooks.AddAttempt(s.Status, v1alpha1.WebhookAttempt{At: *at(-time.Hour), Outcome: v1alpha1.WebhookAttemptSucceeded})
			s.Object.Annotations = map[string]string{v1alpha1.RedeliverAnnotation: "1"}
			webhooks.TakeUpRedelivery(s.Object, noon)
		},
	} {
		s := newScope()
		s.Now, s.endpoint = noon, builder.WebhookEndpoint("team").Build()
		s.endpoint.Status.SecretRef = &v1alpha1.SecretReference{Name: "team"}
		prepare(s)
		harness.Same(t, reason+": the outlook before", outlookDue, decide(s).outlook)
		s.endpoint.DeletionTimestamp = &metav1.Time{Time: noon}
		waits := decide(s)
		harness.Same(t, reason+": the outlook", outlookWaiting, waits.outlook)
		harness.Contains(t, reason+": the message", waits.verdict.Message, "fails when the endpoint is gone")
	}
}

// Else people would be told to send it again.
func TestADeliveryThatHasFailedTellsOfItsDeletedEndpoint(t *testing.T) {
	for _, c := range []struct {
		uid     string
		phase   v1alpha1.WebhookDeliveryPhase
		outlook outlook
		reason  string
	}{
		{"u-1", v1alpha1.WebhookDeliveryPending, outlookUnconfirmed, v1alpha1.ReasonEndpointNotFound},
		{"u-1", v1alpha1.WebhookDeliveryFailed, 0, v1alpha1.ReasonEndpointNotFound},
		{"", v1alpha1.WebhookDeliveryFailed, 0, v1alpha1.ReasonDeliveryFailed},
	} {
		s := newScope()
		s.Now, s.Object.Spec.EndpointRef.UID, s.Status.Phase = noon, c.uid, c.phase
		s.Status.Attempts = slices.Repeat([]v1alpha1.WebhookAttempt{{At: *at(0), Outcome: v1alpha1.WebhookAttemptFailed}},
			webhooks.AttemptsPerRound)
		if got := decide(s); got.verdict.Reason != c.reason || got.outlook != c.outlook ||
			got.phase != v1alpha1.WebhookDeliveryFailed {
			t.Errorf("UID %q, %s: got %+v", c.uid, c.phase, got)
		}
	}
}

// Else what was signed with a leaked secret would be verified for good, once it has been replaced several times.
func TestASignatureExpiresThoughItsSecretIsNoLongerListed(t *testing.T) {
	full := []v1alpha1.WebhookSecretStatus{
		{ID: "d"}, {ID: "c", ExpiresAt: at(3 * time.Hour)}, {ID: "b", ExpiresAt: at(2 * time.Hour)}, {ID: "a", ExpiresAt: at(time.Hour)},
	}
	for _, c := range []struct {
		reason, signedWith string
		listed             []v1alpha1.WebhookSecretStatus
		signed             time.Duration
		until, want        *v1alpha1.Time
	}{
		{"it is listed", "b", full, 0, nil, at(2 * time.Hour)},
		{"others have replaced it in the list", "o", full, 0, nil, at(time.Hour)},
		{"they have replaced it before the end of its overlap", "o", full, 0, at(720 * time.Hour), at(time.Hour)},
		{"it has expired earlier", "o", full, 0, at(time.Minute), at(time.Minute)},
		{"the cache does not list it yet", "e", full, 4 * time.Hour, nil, nil},
		{"the list has room, so it was never in it", "o", full[:3], 0, nil, nil},
	} {
		s := newScope()
		s.endpoint = builder.WebhookEndpoint("team").Build()
		s.endpoint.Status.Secrets = c.listed
		s.Status.Attempts = []v1alpha1.WebhookAttempt{
			{At: *at(c.signed), Signatures: []v1alpha1.WebhookSignature{{SecretID: c.signedWith, ExpiresAt: c.until}}},
		}
		followSecrets(s)
		harness.Same(t, c.reason, c.want, s.Status.Attempts[0].Signatures[0].ExpiresAt)
	}
}

// A leader that has lost its lease still records its attempt, while its successor has closed it and makes another.
func TestAnOutcomeIsNotRecordedForAnotherControllersAttempt(t *testing.T) {
	full := func(last time.Duration) *v1alpha1.WebhookDelivery {
		d := builder.WebhookDelivery("d-1", noon).Build()
		for i := range v1alpha1.MaxWebhookAttempts {
			d.Status.Attempts = append(d.Status.Attempts, v1alpha1.WebhookAttempt{
				At: *at(last + time.Duration(i-v1alpha1.MaxWebhookAttempts+1)*time.Hour), Outcome: v1alpha1.WebhookAttemptUnknown,
			})
		}
		d.Status.Attempts[v1alpha1.MaxWebhookAttempts-1].Outcome = v1alpha1.WebhookAttemptStarted
		return d
	}
	for reason, tc := range map[string]struct {
		stored *v1alpha1.WebhookDelivery
		writes int
	}{
		"its own":     {full(0), 2},
		"another one": {full(time.Hour), 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			writes := 0
			r := standIn(func(into client.Object) error {
				switch into := into.(type) {
				case *v1alpha1.WebhookEndpoint:
					builder.WebhookEndpoint("team").Build().DeepCopyInto(into)
				case *v1alpha1.WebhookDelivery:
					tc.stored.DeepCopyInto(into)
				}
				return nil
			}, func() error {
				if writes++; writes == 1 {
					return apierrors.NewConflict(schema.GroupResource{}, "d-1", nil)
				}
				return nil
			})
			s := newScope()
			full(0).DeepCopyInto(s.Object)
			s.endpoint = builder.WebhookEndpoint("team").Build()
			s.Begin(noon)
			made := attempted{result: result{outcome: v1alpha1.WebhookAttemptSucceeded}, at: noon.Add(time.Millisecond), ended: noon}
			harness.Must(t, r.recordEnd(t.Context(), s, made))
			harness.Same(t, reason+": the writes", tc.writes, writes)
		})
	}
}

// The receiver would get again what it has answered before the outage.
func TestAnOutcomeIsKeptForTheEndOfAnOutageOfTheAPIServer(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "d-1", nil)
	begun := builder.WebhookDelivery("d-1", noon).Build()
	begun.Status.Attempts = []v1alpha1.WebhookAttempt{{At: *at(0), Outcome: v1alpha1.WebhookAttemptStarted}}
	for reason, tc := range map[string]struct {
		answer      error
		lasts, took time.Duration
		recorded    bool
	}{
		"an outage":             {syscall.ECONNREFUSED, 3 * time.Minute, 3 * time.Minute, true},
		"no route to it":        {syscall.EHOSTUNREACH, 3 * time.Minute, 3 * time.Minute, true},
		"it restarts":           {apierrors.NewServiceUnavailable("x"), 3 * time.Minute, 3 * time.Minute, true},
		"an outage without end": {syscall.ECONNREFUSED, time.Hour, outageTimeout, false},
		"a refusal by a policy": {forbidden, time.Hour, recordTimeout, false},
		"a webhook's denial with the code of what is gone": {
			webhookerrors.ToStatusErr("x", &metav1.Status{Code: http.StatusNotFound}), time.Hour, recordTimeout, false,
		},
		"a proxy's own 404": {
			harness.ProxyRefusal(http.StatusNotFound, http.MethodGet), 3 * time.Minute, 3 * time.Minute, true,
		},
		"a refusal that is over": {forbidden, recordTimeout / 2, recordTimeout / 2, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, writes := time.Now(), 0
			answer := func() error {
				if time.Since(began) < tc.lasts {
					return tc.answer
				}
				return nil
			}
			r := standIn(func(into client.Object) error {
				if d, is := into.(*v1alpha1.WebhookDelivery); is {
					begun.DeepCopyInto(d)
				}
				return answer()
			}, func() error {
				err := answer()
				if err == nil {
					writes++
				}
				return err
			})
			s := newScope()
			begun.DeepCopyInto(s.Object)
			s.endpoint = builder.WebhookEndpoint("team").Build()
			made := attempted{result: result{outcome: v1alpha1.WebhookAttemptSucceeded}, at: noon, ended: noon}
			check := func(place string, recorded bool, want time.Duration, record func() error) {
				began, writes = time.Now(), 0
				err := record()
				harness.Same(t, reason+": recorded at the "+place, recorded, err == nil && writes == 1)
				if took := time.Since(began); took < want || took > want+10*time.Second {
					t.Errorf("%s: at the %s it took %s, want %s", reason, place, took, want)
				}
			}
			check("delivery", tc.recorded, tc.took, func() error { return r.recordEnd(t.Context(), s, made) })
			// The next attempt makes up for a lost count, and the place may be missed.
			check("endpoint", tc.lasts < recordTimeout, min(tc.took, recordTimeout),
				func() error { return r.recordAtEndpoint(t.Context(), s.endpoint, made) })
		})
	}
}
