package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// storedFinding answers like an API server that has one finding.
type storedFinding struct {
	v1alpha1.Finding
	calls []string
}

func (s *storedFinding) RoundTrip(request *http.Request) (*http.Response, error) {
	s.calls = append(s.calls, request.Method)
	if path.Base(request.URL.Path) != s.Name {
		return nothingStored{}.RoundTrip(request)
	}
	answer := httptest.NewRecorder()
	answer.Header().Set("Content-Type", "application/json")
	if request.Method == http.MethodPatch {
		patch := v1alpha1.Finding{}
		if err := json.NewDecoder(request.Body).Decode(&patch); err != nil {
			return nil, err
		}
		if patch.ResourceVersion != s.ResourceVersion {
			answer.WriteHeader(http.StatusConflict)
			fmt.Fprint(answer, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`) //nolint:errcheck // a recorder takes all
			return answer.Result(), nil
		}
		s.Spec.Triage, s.ResourceVersion = patch.Spec.Triage, s.ResourceVersion+"0"
	}
	err := json.NewEncoder(answer).Encode(s.Finding)
	return answer.Result(), err
}

// A client may have read at one replica what another has yet to hear of: its decision is about what it has read.
func TestADecisionAtAReplicaThatIsBehind(t *testing.T) {
	finding := func(severity v1alpha1.Level) *v1alpha1.Finding {
		return builder.Finding("f-1").Severity(severity).Build()
	}
	tagOf := func(severity v1alpha1.Level) string {
		read := httptest.NewRequest(http.MethodGet, "/v2/findings/f-1", http.NoBody)
		return answerOf(serverOf(t, nothingStored{}, finding(severity)), read).Header().Get("ETag")
	}
	tag := tagOf("high")
	for reason, test := range map[string]struct {
		shown       []client.Object
		id, ifMatch string
		status      int
		basis       string
		calls       []string
	}{
		"about the state that it names":            {[]client.Object{finding("low")}, "f-1", tag, 200, "rated=high", []string{"GET", "PATCH"}},
		"about what the replica shows, by default": {[]client.Object{finding("low")}, "f-1", "", 200, "rated=low", []string{"PATCH", "GET", "PATCH"}},
		"about what the replica shows, by name":    {[]client.Object{finding("low")}, "f-1", tagOf("low"), 412, "", []string{"PATCH", "GET"}},
		"about any state":                          {[]client.Object{finding("low")}, "f-1", "*", 200, "rated=low", []string{"PATCH", "GET", "PATCH"}},
		"about a finding that is new to it":        {nil, "f-1", "", 200, "rated=high", []string{"GET", "PATCH"}},
		"about a new one in the state that it had": {nil, "f-1", tag, 200, "rated=high", []string{"GET", "PATCH"}},
		"about a new one in another state":         {nil, "f-1", `"other"`, 412, "", []string{"GET", "GET"}},
		"about none":                               {nil, "f-2", "", 404, "", []string{"GET"}},
	} {
		t.Run(reason, func(t *testing.T) {
			stored := finding("high")
			held(nil, stored) // for its metadata
			stored.ResourceVersion = "5"
			cluster := &storedFinding{Finding: *stored}
			request := httptest.NewRequest(http.MethodPatch, "/v2/findings/"+test.id, strings.NewReader(`{"user_status":"muted"}`))
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("If-Match", test.ifMatch)
			answer := answerOf(serverOf(t, cluster, test.shown...), request)
			if answer.Code != test.status {
				t.Errorf("got %d %s, want %d", answer.Code, answer.Body, test.status)
			}
			harness.Same(t, "the basis of the decision", test.basis, cluster.Spec.Triage.Basis)
			harness.Same(t, "the calls of the API server", test.calls, cluster.calls)
		})
	}
}

func TestAClockThatIsAheadLetsTheEndOfADecisionInForceBePutOff(t *testing.T) {
	testenv.SetServerTime(t, time.Now().Add(-4*time.Minute))
	finding := builder.Finding("f-1").Mutate(func(f *v1alpha1.Finding) {
		f.Spec.Triage.UserStatus = v1alpha1.UserStatusMuted
		f.Spec.Triage.ExpiresAt = new(v1alpha1.NewTime(time.Now().Add(-2 * time.Minute))) // only by the local clock it has come
	}).Build()
	held(nil, finding) // for its metadata
	cluster := &storedFinding{Finding: *finding}
	later := v1alpha1.NewTime(time.Now().Add(time.Hour).Truncate(time.Second))
	request := httptest.NewRequest(http.MethodPatch, "/v2/findings/f-1",
		strings.NewReader(fmt.Sprintf(`{"comments":"still so","expires_at":%q}`, later.UTC().Format(time.RFC3339))))
	request.Header.Set("Content-Type", "application/json")
	if answer := answerOf(serverOf(t, cluster, finding), request); answer.Code != http.StatusOK {
		t.Errorf("got %d %s", answer.Code, answer.Body)
	}
	if end := cluster.Spec.Triage.ExpiresAt; !later.Equal(end) {
		t.Errorf("it ends at %s, want %s", end, later)
	}
}
