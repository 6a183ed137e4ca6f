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
	testenv.SetServerTime(t, time.Now().Add(-4*time.Minute))
	for ago, want := range map[time.Duration]string{
		2 * time.Minute: "<nil>", // only by the local clock it has come
		6 * time.Minute: "Invalid request body: set.expires_at has passed: create another operation",
	} {
		operation := builder.TriageOperation("op-1", "R1").Spec(func(s *v1alpha1.TriageOperationSpec) {
			s.Set.ExpiresAt = new(v1alpha1.NewTime(time.Now().Add(-ago)))
		}).Build()
		operation.APIVersion, operation.Kind = v1alpha1.GroupVersion.String(), "TriageOperation"
		stored := harness.JSON(t, operation)
		client := answering(t, func(*http.Request) string { return string(stored) })
		_, err := client.CommitOperation(t.Context(), "org-acme", operation.Name, "", "key:k")
		harness.Same(t, "the answer "+ago.String()+" after the end", want, fmt.Sprint(err))
	}
}

// A client must not wait for the end of an operation that no longer exists.
func TestTheWaitForAnOperationEndsWithItsDeletion(t *testing.T) {
	operation := builder.TriageOperation("op-1", "R1").In("org-acme").Committed().Build()
	operation.APIVersion, operation.Kind = v1alpha1.GroupVersion.String(), "TriageOperation"
	deleted := string(harness.JSON(t, map[string]any{"type": "DELETED", "object": operation}))
	client := answering(t, func(*http.Request) string { return deleted })
	for ended, want := range map[bool]string{
		true: "<nil>", false: "Resource not found: the operation was deleted before its end: what it has decided stays",
	} {
		seen := 0
		_, err := client.AwaitOperation(t.Context(), operation, func(*v1alpha1.TriageOperation) bool {
			seen++
			return seen > 1 && ended
		})
		harness.Same(t, fmt.Sprintf("the error, if it has ended: %t", ended), want, fmt.Sprint(err))
		harness.Same(t, "how often it is looked at", 2, seen)
	}
}
