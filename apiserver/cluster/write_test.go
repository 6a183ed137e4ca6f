package cluster

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

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
