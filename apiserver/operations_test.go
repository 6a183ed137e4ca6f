package apiserver

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/internal/triageoperation"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// The controllers hold all of an organization's operations, also those that they refuse.
func TestNoOperationIsMadeWhileFarMoreExistThanMayBeKept(t *testing.T) {
	for exist, want := range map[int]int{
		2*triageoperation.MaxOperations - 1: http.StatusNotFound, // by the API server, which has nothing
		2 * triageoperation.MaxOperations:   http.StatusConflict,
	} {
		operations := make([]client.Object, exist)
		for i := range operations {
			operations[i] = builder.TriageOperation(fmt.Sprint("op-", i), "G1").Build()
		}
		model := fuzzModel(t, builder.WebhookDelivery("d-1", time.Now()).Build(), operations...)
		body := strings.NewReader(`{"ids":["f-1"],"set":{"user_status":"active"}}`)
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v2/triage-operations", body)
		request.Header.Set("Content-Type", "application/json")
		answer := answerOf(routesOf(t, backendOf(t, model, nothingStored{})), request)
		harness.Same(t, fmt.Sprintf("the status with %d operations: %s", exist, answer.Body), want, answer.Code)
	}
}
