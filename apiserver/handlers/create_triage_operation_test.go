package handlers

import (
	"net/http"
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// A client that looks only at the status learns whether the operation has failed, and one that reads more, where it is.
func TestTheStatusTellsWhetherAnOperationHasFailed(t *testing.T) {
	failed := func(reason string, changed int32) v1alpha1.TriageOperationStatus {
		stalled := v1alpha1.Condition{Type: v1alpha1.ConditionStalled, Status: "True", Reason: reason, Message: "Why."}
		return v1alpha1.TriageOperationStatus{
			Phase: v1alpha1.OperationFailed, Matched: 4, Changed: changed, Conditions: []v1alpha1.Condition{stalled},
		}
	}
	for reason, test := range map[string]struct {
		of     v1alpha1.TriageOperationStatus
		status int
		detail string
	}{
		"it has ended":        {v1alpha1.TriageOperationStatus{Phase: v1alpha1.OperationCompleted}, http.StatusCreated, ""},
		"it has more to do":   {v1alpha1.TriageOperationStatus{Phase: v1alpha1.OperationRunning}, http.StatusAccepted, ""},
		"it cannot be":        {failed(v1alpha1.ReasonNotUndoable, 0), http.StatusBadRequest, "the operation has failed: Why."},
		"there are too many":  {failed(v1alpha1.ReasonTooManyOperations, 0), http.StatusConflict, "the operation has failed: Why."},
		"it stopped half-way": {failed(v1alpha1.ReasonPartsLost, 3), http.StatusBadRequest, "the operation has failed after it changed 3 of 4 findings: Why."},
	} {
		operation := builder.TriageOperation("op-1", "R1").Committed().Build()
		operation.Status = test.of
		response, err := operationOutcome(operation, http.StatusCreated, invalidOrRefused(operation))
		status, location, detail := response.Status, response.Location, ""
		if err != nil {
			p := problem.Of(err)
			status, location, detail = p.Status, p.Location, p.Detail
		}
		harness.Same(t, reason, test.status, status)
		harness.Same(t, reason, test.detail, detail)
		harness.Same(t, reason, "/v2/triage-operations/op-1", location)
		if _, err := commitOutcome(operation); err != nil {
			want := "Invalid request body: " + test.detail
			harness.Same(t, reason+", before a commit", want, err.Error())
			harness.Same(t, reason+", before a commit", http.StatusBadRequest, problem.Of(err).Status)
		}
	}
}
