package handlers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/internal/triageoperation"
)

// operationsPath is where triage operations are served.
const operationsPath = "/v2/triage-operations/"

// stopsCreatingAt returns how many operations may exist before this one is refused. The controllers keep fewer, and
// remove those that fail without a set, but only after an hour: without this bound a client could fill their memory.
// It is not exact: requests at the same time do not see one another's operations.
func stopsCreatingAt(operation *v1alpha1.TriageOperation) int {
	return 2 * triageoperation.Limit(operation, triageoperation.MaxOperations)
}

var errTooManyOperations = errors.New("the organization has twice as many triage operations as it may keep: " +
	"try again in an hour, or delete some with kubectl")

// CreateTriageOperation is an operation of the contract.
func (b *Backend) CreateTriageOperation(ctx context.Context, request Request) (Response, error) {
	var given openapi.TriageOperationRequest
	if err := request.Body.Into(&given); err != nil {
		return Response{}, err
	}
	operation := &v1alpha1.TriageOperation{}
	if err := addSubject(&operation.Spec, &given, request.Body); err != nil {
		return Response{}, err
	}
	if b.Model.CountOperations(request.Namespace) >= stopsCreatingAt(operation) {
		return Response{}, problem.Refused(errTooManyOperations)
	}
	operation.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "TriageOperation"}
	operation.Namespace, operation.Name = request.Namespace, operationName()
	operation.Spec.By = request.Author()
	if given.Commit != nil && *given.Commit {
		operation.Spec.Commit, operation.Spec.CommittedBy = true, operation.Spec.By
	}
	stored, err := b.Cluster.CreateOperation(ctx, operation)
	if err != nil {
		return Response{}, err
	}
	stored, err = b.Cluster.AwaitOperation(ctx, stored, settled)
	if err != nil {
		return Response{}, err
	}
	return operationOutcome(stored, http.StatusCreated, invalidOrRefused(stored))
}

// invalidOrRefused returns the error of a new operation if it has failed: a conflict if the organization currently has
// too many, which is not the fault of the request.
func invalidOrRefused(operation *v1alpha1.TriageOperation) func(detail string) *problem.Problem {
	stalled := v1alpha1.FindCondition(operation.Status.Conditions, v1alpha1.ConditionStalled)
	if stalled != nil && stalled.Reason == v1alpha1.ReasonTooManyOperations {
		return func(detail string) *problem.Problem { return problem.Refused(errors.New(detail)) }
	}
	return problem.InvalidBody
}

// settled reports whether an operation has nothing to do at present.
func settled(o *v1alpha1.TriageOperation) bool {
	switch o.Status.Phase {
	case v1alpha1.OperationCompleted, v1alpha1.OperationFailed:
		return true
	case v1alpha1.OperationPreview:
		return !o.Spec.Commit
	case v1alpha1.OperationSelecting, v1alpha1.OperationRunning:
	}
	return false
}

// operationName returns a random, unique name.
func operationName() string { return "op-" + strings.ToLower(rand.Text()[:16]) }

// addSubject reads the subject of the operation: findings and a decision, or another operation to undo.
func addSubject(spec *v1alpha1.TriageOperationSpec, given *openapi.TriageOperationRequest, body openapi.Body) error {
	filters, filtered := body.Parameters(memberFilters)
	subjects := 0
	for _, there := range []bool{given.Ids != nil, filtered, given.Undo != nil} {
		if there {
			subjects++
		}
	}
	switch {
	case subjects == 0:
		return problem.InvalidBody("exactly one of ids, filters and undo is needed").Coded(problem.CodeMissing)
	case subjects > 1:
		return problem.InvalidBody("only one of ids, filters and undo may be given")
	}
	var err error
	switch {
	case given.Undo != nil:
		spec.Undo, err = nameIn("undo", *given.Undo)
	case given.Ids != nil:
		spec.Select = &v1alpha1.FindingSelection{}
		spec.Select.IDs, err = idsOf(*given.Ids)
	default:
		spec.Select, err = selectionOf(filters)
	}
	if err != nil {
		return err
	}
	switch {
	case given.Undo != nil && given.Set != nil:
		return problem.InvalidBody("set must be absent with undo").In("set")
	case given.Undo != nil:
		return nil
	case given.Set == nil:
		return problem.InvalidBody("set is required with ids or filters").In("set").Coded(problem.CodeMissing)
	}
	spec.Set, err = decisionOf(given.Set)
	return err
}

// operationOutcome answers with an operation that a request has created or committed: with that status if it has
// nothing to do at present, else with 202. For a failed operation it returns the given error, so that clients that
// check only the status notice.
func operationOutcome(operation *v1alpha1.TriageOperation, status int,
	failed func(detail string) *problem.Problem) (Response, error) {
	switch {
	case operation.Status.Phase == v1alpha1.OperationFailed:
		return Response{}, failed(failureOf(operation)).At(operationsPath + operation.Name)
	case !settled(operation):
		status = http.StatusAccepted
	}
	return operationResponse(status, operation)
}

func failureOf(operation *v1alpha1.TriageOperation) (detail string) {
	status, after := &operation.Status, ""
	if status.Changed > 0 {
		after = fmt.Sprintf(" after it changed %d of %d findings", status.Changed, status.Matched)
	}
	return "the operation has failed" + after + ": " + v1alpha1.StalledMessage(operation.Status.Conditions)
}

func operationResponse(status int, operation *v1alpha1.TriageOperation) (Response, error) {
	shown, err := render.TriageOperationJSON(operation)
	return located(status, operationsPath+operation.Name, shown), err
}
