package cluster

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestNoFurtherPolicyIsCreatedWhereThereAreTooMany(t *testing.T) {
	for remaining, want := range map[int]int{maxPolicies - 2: 1, maxPolicies - 1: 0} {
		created := 0
		client := answering(t, func(request *http.Request) string {
			const policy = `{"kind":"TriagePolicy","apiVersion":"appsec.dev/v1alpha1","metadata":{"name":"p"}}`
			if request.Method == http.MethodPost {
				created++
				return policy
			}
			return fmt.Sprintf(`{"kind":"TriagePolicyList","apiVersion":"appsec.dev/v1alpha1",
				"metadata":{"continue":"next","remainingItemCount":%d},"items":[%s]}`, remaining, policy)
		})
		_, err := client.CreatePolicy(t.Context(), builder.TriagePolicy("p", "true").In("org-acme").Build())
		if refused := err != nil && problem.Of(err).Status == http.StatusConflict; refused == (want == 1) {
			t.Errorf("with %d and one more: %v", remaining, err)
		}
		harness.Same(t, "created", want, created)
	}
}
