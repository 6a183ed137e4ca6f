package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// A field that is dropped would leave a decision without its end, and an operation with more findings.
func TestAWriteThatTheCRDsDoNotUnderstandIsRefused(t *testing.T) {
	client, err := NewClient(&rest.Config{Host: "http://nowhere.invalid", Transport: harness.RoundTripper(
		func(request *http.Request) (*http.Response, error) {
			answer := httptest.NewRecorder()
			answer.Header().Set("Content-Type", "application/json")
			if request.URL.Query().Get("fieldValidation") != "Strict" {
				_, _ = answer.WriteString(`{"kind":"Finding","apiVersion":"appsec.dev/v1alpha1"}`) // without the field
				return answer.Result(), nil
			}
			refused := apierrors.NewBadRequest(`strict decoding error: unknown field "spec.select.policy"`).Status()
			refused.Kind, refused.APIVersion = "Status", "v1"
			answer.WriteHeader(int(refused.Code))
			err := json.NewEncoder(answer).Encode(refused)
			return answer.Result(), err
		})})
	harness.Must(t, err)
	_, created := client.CreateOperation(t.Context(), builder.TriageOperation("mute", "G1").In("org-acme").Build())
	_, patched := client.Redeliver(t.Context(), "org-acme", "d-1", "ada")
	for method, err := range map[string]error{"create": created, "patch": patched} {
		if err == nil || !strings.Contains(problem.Of(err).Detail, "CRDs of this installation are older than its REST API") {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// Whatever the second request is answered, an operation that the first has stored is the one that was asked for: if the
// client had to send another, that would decide about what people have decided meanwhile.
func TestAChangeThatAWebhookDeniesWithTheCodeOfAConflictIsNotRepeated(t *testing.T) {
	ctx, enough := context.WithCancel(t.Context())
	tries := 0
	client := answering(t, func(request *http.Request) string {
		if request.Method == http.MethodGet {
			return `{"kind":"Finding","apiVersion":"appsec.dev/v1alpha1","metadata":{"name":"f"}}`
		}
		if tries++; tries == 2 {
			enough()
		}
		return `{"kind":"Status","apiVersion":"v1","status":"Failure","code":409,` +
			`"message":"admission webhook \"hold.example.org\" denied the request: a legal hold"}`
	})
	_, err := change(ctx, client, "org-acme", "f", "finding",
		func(*v1alpha1.Finding) (map[string]any, error) { return map[string]any{"tool": "t"}, nil })
	harness.ErrorContains(t, "the change", err, "a legal hold")
	harness.Same(t, "tries", 1, tries)
}

func TestACreationIsSentOnceMoreOnlyAfterAnOutageHadTimeToEnd(t *testing.T) {
	mine := builder.TriagePolicy("mute", "true").In("org-acme").Build()
	mine.APIVersion, mine.Kind = v1alpha1.GroupVersion.String(), "TriagePolicy"
	for _, c := range []struct {
		first error
		want  time.Duration
	}{{apierrors.NewServiceUnavailable("overloaded"), pauseInOutage}, {context.DeadlineExceeded, 0}} {
		synctest.Test(t, func(t *testing.T) {
			client, posts := creating(t, c.first, mine, nil)
			begun := time.Now()
			_, err := client.CreatePolicy(t.Context(), mine.DeepCopy())
			harness.Must(t, err)
			harness.Same(t, "times that it was sent", 2, *posts)
			harness.Same(t, c.first.Error()+": pause", c.want, time.Since(begun))
		})
	}
}

func TestACreationWhoseOutcomeIsUnknownIsSentOnceMore(t *testing.T) {
	mine := builder.TriagePolicy("mute", "true").In("org-acme").Build()
	mine.APIVersion, mine.Kind, mine.Spec.By = v1alpha1.GroupVersion.String(), "TriagePolicy", "apikey/ci"
	mine.Spec.ValidUntil = new(v1alpha1.NewTime(time.Now()))
	others := mine.DeepCopy()
	others.Spec.By = "apikey/other"
	resource := v1alpha1.GroupVersion.WithResource("triagepolicies").GroupResource()
	exists := apierrors.NewAlreadyExists(resource, mine.Name)
	quota := apierrors.NewForbidden(resource, mine.Name, errors.New("exceeded quota: findings"))
	missing := apierrors.NewNotFound(resource, mine.Name)
	for name, c := range map[string]struct {
		second error // nil: it is stored
		stored any
		want   string
	}{
		"the second is stored":            {nil, missing, ""},
		"the first was stored":            {exists, mine, ""},
		"the first reached the quota":     {quota, mine, ""},
		"both were lost, one was stored":  {context.DeadlineExceeded, mine, ""},
		"the name is taken":               {exists, others, "another triage policy is called mute"},
		"none is allowed":                 {quota, missing, "as its quota allows"},
		"both were lost":                  {context.DeadlineExceeded, missing, "not known whether the triage policy mute was stored"},
		"what is stored cannot be read":   {exists, context.DeadlineExceeded, "not known whether the triage policy mute was stored"},
		"the quota is reached, or unread": {quota, context.DeadlineExceeded, "not known whether the triage policy mute was stored"},
	} {
		t.Run(name, func(t *testing.T) {
			client, posts := creating(t, context.DeadlineExceeded, cmp.Or[any](c.second, mine), c.stored)
			created, err := client.CreatePolicy(t.Context(), mine.DeepCopy())
			harness.Same(t, "times that it was sent", 2, *posts)
			switch {
			case c.want == "" && (err != nil || created.Spec.By != mine.Spec.By):
				t.Errorf("got %v, %v", created, err)
			case c.want != "" && (err == nil || !strings.Contains(problem.Of(err).Detail, c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			case strings.HasPrefix(c.want, "not known") &&
				(problem.Of(err).Code != problem.CodeInternal || problem.Of(err).RetryAfter != 0):
				t.Errorf("programs are told to try again: %+v", problem.Of(err))
			}
		})
	}
}

// Its name is random: another one would decide again, so that its spec may have changed meanwhile.
func TestAnOperationThatWasStoredIsReturnedThoughItHasChanged(t *testing.T) {
	operation := builder.TriageOperation("op-1", "G1").In("org-acme").Build()
	committed := operation.DeepCopy()
	committed.APIVersion, committed.Kind = v1alpha1.GroupVersion.String(), "TriageOperation"
	committed.Spec.Commit, committed.Spec.CommittedBy = true, "apikey/other"
	reset := errors.New("stream error: stream ID 5; INTERNAL_ERROR; received from peer") // HTTP/2, not a connection's
	client, _ := creating(t, reset, reset, committed)
	created, err := client.CreateOperation(t.Context(), operation)
	if err != nil || !created.Spec.Commit {
		t.Errorf("got %v, %v", created, err)
	}
}

func TestACreationThatIsRefusedForCertainIsSentOnce(t *testing.T) {
	denied := webhookerrors.ToStatusErr("hold.example.org", &metav1.Status{Code: http.StatusServiceUnavailable})
	for reason, first := range map[string]error{
		"a webhook has the code of an outage": denied,
		"a webhook is down": apierrors.NewInternalError(
			errors.New(`failed calling webhook "hold.example.org": no route to host`)),
		"there is no connection": &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ETIMEDOUT},
	} {
		client, posts := creating(t, first, first, apierrors.NewNotFound(schema.GroupResource{}, "op-1"))
		_, err := client.CreateOperation(t.Context(), builder.TriageOperation("op-1", "G1").In("org-acme").Build())
		harness.Same(t, reason+": times that it was sent", 1, *posts)
		if !strings.Contains(problem.Of(err).Detail, "the change could not be stored; try again") {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// creating returns a client of an API server that answers so: the first request to create something, each later one,
// and those to read it. It also returns the number of requests to create.
func creating(t *testing.T, first, later, read any) (client *Client, posts *int) {
	t.Helper()
	posts = new(int)
	client, err := NewClient(&rest.Config{Host: "http://nowhere.invalid", Transport: harness.RoundTripper(
		func(request *http.Request) (*http.Response, error) {
			switch {
			case request.Method == http.MethodPost:
				if *posts++; *posts == 1 {
					return answered(t, first)
				}
				return answered(t, later)
			case strings.HasSuffix(request.URL.Path, "/triagepolicies"): // they are counted
				return answered(t, map[string]any{
					"kind": "TriagePolicyList", "apiVersion": v1alpha1.GroupVersion.String(), "items": []any{},
				})
			}
			return answered(t, read)
		})})
	harness.Must(t, err)
	return client, posts
}

// answered returns a response with the object, or with the status of an error of the API server, or fails.
func answered(t *testing.T, what any) (*http.Response, error) {
	t.Helper()
	answer := httptest.NewRecorder()
	answer.Header().Set("Content-Type", "application/json")
	err, failed := what.(error)
	refused, is := errors.AsType[*apierrors.StatusError](err)
	switch {
	case failed && !is:
		return nil, err
	case is:
		status := refused.Status()
		status.Kind, status.APIVersion = "Status", "v1"
		answer.WriteHeader(int(status.Code))
		what = status
	}
	_, err = answer.Write(harness.JSON(t, what))
	return answer.Result(), err
}
