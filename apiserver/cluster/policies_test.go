package cluster

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestNoFurtherPolicyIsCreatedWhereThereAreTooMany(t *testing.T) {
	for remaining, want := range map[int]int{maxPolicies - 2: 1, maxPolicies - 1: 0} {
		created := 0
		client, err := NewClient(&rest.Config{Host: "http://nowhere.invalid", Transport: harness.RoundTripper(
			func(request *http.Request) (*http.Response, error) {
				const policy = `{"kind":"TriagePolicy","apiVersion":"appsec.dev/v1alpha1","metadata":{"name":"p"}}`
				answer := policy
				if request.Method == http.MethodPost {
					created++
				} else {
					answer = fmt.Sprintf(`{"kind":"TriagePolicyList","apiVersion":"appsec.dev/v1alpha1",
						"metadata":{"continue":"next","remainingItemCount":%d},"items":[%s]}`, remaining, policy)
				}
				return &http.Response{
					StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: request,
					Body: io.NopCloser(strings.NewReader(answer)),
				}, nil
			})})
		harness.Must(t, err)
		_, err = client.CreatePolicy(t.Context(), builder.TriagePolicy("p", "true").In("org-acme").Build())
		if refused := err != nil && problem.Of(err).Status == http.StatusConflict; refused == (want == 1) {
			t.Errorf("with %d and one more: %v", remaining, err)
		}
		harness.Same(t, "created", want, created)
	}
}
