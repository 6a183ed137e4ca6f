package cluster

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestAClockThatIsAheadTakesNothingFromADecisionInForce(t *testing.T) {
	testenv.SetServerTime(t, time.Now().Add(-4*time.Minute))
	var sent string
	client := answering(t, func(request *http.Request) string {
		body, err := io.ReadAll(request.Body)
		harness.Must(t, err)
		sent = string(body)
		return `{"kind":"Finding","apiVersion":"appsec.dev/v1alpha1","metadata":{"name":"f"}}`
	})
	muted := v1alpha1.UserStatusMuted
	finding := builder.Finding("f").Mutate(func(f *v1alpha1.Finding) {
		f.ResourceVersion = "7"
		f.Spec.Triage = v1alpha1.FindingTriage{
			UserStatus: muted, Reason: v1alpha1.DecisionAcceptedRisk,
			ExpiresAt: new(v1alpha1.NewTime(time.Now().Add(-2 * time.Minute))), // only by the local clock it has come
		}
		f.Status.UserStatus = muted
	}).Build()
	_, err := client.Findings.Triage(t.Context(), Known[*v1alpha1.Finding]{Object: finding, Standing: findingstate.StandingOf(finding)},
		func(Known[*v1alpha1.Finding]) error { return nil }, Decision{Decision: findingstate.Decision{UserStatus: &muted}})
	harness.Must(t, err)
	harness.Same(t, "the patch", `{"metadata":{"resourceVersion":"7"},"spec":{}}`, sent)
}

// No request takes any time here, so the time of the write runs out while it waits after a conflict.
func TestAWriteThatRunsOutOfTimeAsItWaitsMayBeTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries, message := 0, ""
		client := answering(t, func(request *http.Request) string {
			if request.Method == http.MethodGet {
				return `{"kind":"Finding","apiVersion":"appsec.dev/v1alpha1","metadata":{"name":"f"}}`
			}
			tries++
			return `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,"message":"` + message + `"}`
		})
		client.Findings.pace.set(maxTry)
		known := Known[*v1alpha1.Finding]{Object: builder.Finding("f").In("org-acme").Build()}
		always := func(Known[*v1alpha1.Finding]) error { return nil }
		decision := Decision{Decision: findingstate.Decision{UserStatus: new(v1alpha1.UserStatusMuted)}}
		begun := time.Now()
		_, err := client.Findings.Triage(t.Context(), known, always, decision)
		p, took := problem.Of(err), time.Since(begun)
		if tries < 2 || took != Patience || !strings.HasSuffix(p.Detail, "same time; try again") || p.RetryAfter == 0 {
			t.Errorf("after %d tries in %s: %v", tries, took, err)
		}
		tries, message = 0, `admission webhook \"hold.example.org\" denied the request: a legal hold`
		_, err = client.Findings.Triage(t.Context(), known, always, decision)
		if tries != 1 || !strings.HasPrefix(problem.Of(err).Detail, "the change could not be stored") {
			t.Errorf("what a webhook denies with the code of a conflict ends after %d tries with %v", tries, err)
		}
	})
}
