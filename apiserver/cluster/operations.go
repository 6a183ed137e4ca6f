package cluster

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/internal/apitime"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/triageoperation"
)

const operationNoun = "triage operation"

// CreateOperation stores an operation under its name, which must be random, and returns it as it was stored.
func (c *Client) CreateOperation(ctx context.Context, operation *v1alpha1.TriageOperation) (*v1alpha1.TriageOperation,
	error) {
	created, err := create(ctx, c, operation, operationNoun, func(_, _ *v1alpha1.TriageOperation) bool {
		return true // the name is random, and the operation may have been committed meanwhile
	})
	if err != nil {
		return nil, explainOperation(err, "")
	}
	return created, nil
}

// Operation returns the operation as it is stored now.
func (c *Client) Operation(ctx context.Context, namespace, name string) (*v1alpha1.TriageOperation, error) {
	return read[*v1alpha1.TriageOperation](ctx, c.rest, namespace, name, operationNoun)
}

// Operations calls each with every operation of a namespace as they are stored now. Unreadable ones are left out.
func (c *Client) Operations(ctx context.Context, namespace string, each func(*v1alpha1.TriageOperation) error) error {
	return listOf(ctx, c, namespace, "triage operations", each)
}

// CommitOperation commits the operation and returns the result. An operation that has failed or is already committed
// stays unchanged. One whose decision would have ended already is refused, and so is one with another uid; empty: any.
func (c *Client) CommitOperation(ctx context.Context, namespace, name string, uid types.UID,
	by string) (*v1alpha1.TriageOperation, error) {
	members := func(operation *v1alpha1.TriageOperation) (map[string]any, error) {
		if err := checkUID(operation, uid, "operation"); err != nil {
			return nil, err
		}
		if operation.Status.Phase == v1alpha1.OperationFailed || operation.Spec.Commit {
			return nil, nil
		}
		if triageoperation.Ended(operation, apitime.Now()) {
			const member = "set.expires_at"
			return nil, problem.InvalidBody(member + " has passed: create another operation").In(member)
		}
		return map[string]any{"commit": true, "committedBy": by}, nil
	}
	committed, err := change(ctx, c, namespace, name, operationNoun, members)
	if err != nil {
		return nil, explainOperation(err, " of a new operation")
	}
	return committed, nil
}

// AwaitOperation returns the operation once done accepts it, or as it is after ten seconds. If the watch fails,
// it returns the operation as last seen. It returns a problem if the operation is deleted before done accepts it.
func (c *Client) AwaitOperation(ctx context.Context, operation *v1alpha1.TriageOperation,
	done func(*v1alpha1.TriageOperation) bool) (*v1alpha1.TriageOperation, error) {
	return await(ctx, c, operation, done, "the operation was deleted before its end: what it has decided stays")
}

// Part is a part of an operation's findings, with one letter in Outcomes for each finding that was processed.
type Part struct {
	Findings []v1alpha1.ResourceName
	Outcomes string
}

// OperationPart returns a part of an operation as it is stored now. It returns an error if the part no longer exists.
// One part at a time is read per namespace: it may take tens of megabytes.
func (c *Client) OperationPart(ctx context.Context, operation *v1alpha1.TriageOperation, index int) (Part, error) {
	const noun = "operation's findings"
	leave, err := enterList[*v1alpha1.TriageOperationPart](ctx, c, operation.Namespace, noun)
	if err != nil {
		return Part{}, err
	}
	defer leave()
	part := &v1alpha1.TriageOperationPart{}
	err = kube.Get(ctx, c.rest, operation.Namespace, triageoperation.PartName(operation.Name, index), part)
	if kube.IsNotFound(err) {
		return Part{}, problem.Internal("a part of the operation's findings has been removed", err)
	}
	if err != nil {
		return Part{}, problem.TryAgain("the "+noun+" could not be read", err)
	}
	findings, err := triageoperation.Findings(part)
	if err != nil {
		return Part{}, problem.Internal("a part of the operation's findings is damaged", err)
	}
	return Part{findings, part.Spec.Outcomes}, nil
}

// explainOperation translates an error of the API server for clients, which do not know the API server. whose follows
// the name of the member that must hold a reason, such as " of a new operation", because an existing one cannot get a
// reason.
func explainOperation(err error, whose string) error {
	switch {
	case kube.IsQuotaExceeded(err):
		return problem.Refused(errQuota)
	case kube.IsReasonRequired(err):
		return reasonRequired("finding", "set.reason", whose)
	default:
		return explain(operationNoun, err)
	}
}

var errQuota = errors.New("the organization has as many triage operations as its quota allows: " +
	"delete some, or raise spec.quotas.triageOperations of the Organization")
