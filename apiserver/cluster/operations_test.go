package cluster

import (
	"net/http"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestAClockThatIsAheadRefusesNoOperation(t *testing.T) {
	testenv.SetServerTime(t, time.Now().Add(-48*time.Hour))
	operation := builder.TriageOperation("op-1", "R1").Mutate(func(s *v1alpha1.TriageOperationSpec) {
		s.Set.ExpiresAt = new(v1alpha1.NewTime(time.Now().Add(-24 * time.Hour))) // only by the local clock it has come
	}).Build()
	operation.APIVersion, operation.Kind = v1alpha1.GroupVersion.String(), "TriageOperation"
	stored := harness.JSON(t, operation)
	client := answering(t, func(*http.Request) string { return string(stored) })
	_, err := client.CommitOperation(t.Context(), "org-acme", operation.Name, "key:k")
	harness.Must(t, err)
}
