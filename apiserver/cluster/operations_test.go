package cluster

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestAnOperationIsRefusedAfterItsEndByTheClockOfTheServer(t *testing.T) {
	testenv.SetServerTime(t, time.Now().Add(-48*time.Hour))
	for ago, want := range map[time.Duration]string{
		24 * time.Hour: "<nil>", // only by the local clock it has come
		72 * time.Hour: "Invalid request body: set.expires_at has passed: create another operation",
	} {
		operation := builder.TriageOperation("op-1", "R1").Mutate(func(s *v1alpha1.TriageOperationSpec) {
			s.Set.ExpiresAt = new(v1alpha1.NewTime(time.Now().Add(-ago)))
		}).Build()
		operation.APIVersion, operation.Kind = v1alpha1.GroupVersion.String(), "TriageOperation"
		stored := harness.JSON(t, operation)
		client := answering(t, func(*http.Request) string { return string(stored) })
		_, err := client.CommitOperation(t.Context(), "org-acme", operation.Name, "key:k")
		harness.Same(t, "the answer "+ago.String()+" after the end", want, fmt.Sprint(err))
	}
}
