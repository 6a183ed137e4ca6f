package main

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// compareOperation patches half of the findings directly, then runs the operation, then patches the other half. The
// controllers run all the time.
func (m *many) compareOperation(ctx context.Context) error {
	return m.underControllers(ctx, func(ctx context.Context) error {
		half := len(m.ofPatches) / 2
		for _, step := range []func(context.Context) error{
			func(ctx context.Context) error { return m.patchDecisions(ctx, m.ofPatches[:half]) },
			m.operate,
			func(ctx context.Context) error { return m.patchDecisions(ctx, m.ofPatches[half:]) },
		} {
			if err := step(ctx); err != nil {
				return err
			}
		}
		return m.recordWrites(ctx, afterOperation, "", func(context.Context) error { return nil })
	})
}

// patchDecisions makes the operation's decisions with a plain client.
func (m *many) patchDecisions(ctx context.Context, findings []manyFinding) error {
	writer, err := newTriager(ctx, m.Plane, m.Organization.Namespace, "kubectl-patch")
	if err != nil {
		return err
	}
	return m.turn(ctx, bareDecisionTurn, len(findings), func(ctx context.Context) error {
		_, err := callAll(ctx, operationWriters, len(findings), func(ctx context.Context, i int) error {
			return writer.write(ctx, decision{finding: findings[i].name, status: v1alpha1.UserStatusMuted, comments: manyNote})
		})
		return err
	})
}

// operate creates an operation over its findings and waits until it has decided about all of them.
func (m *many) operate(ctx context.Context) error {
	since, note := v1alpha1.NewTime(m.operationSince), manyNote
	operation := &v1alpha1.TriageOperation{
		ObjectMeta: named(m.Organization.Namespace, "bench-many"),
		Spec: v1alpha1.TriageOperationSpec{
			Select: &v1alpha1.FindingSelection{CreatedSince: &since},
			Set:    &v1alpha1.OperationDecision{UserStatus: v1alpha1.UserStatusMuted, Comments: &note},
			Commit: true,
		},
	}
	return m.turn(ctx, operationTurn, len(m.ofOperation), func(ctx context.Context) error {
		if err := m.Client.Create(ctx, operation); err != nil {
			return err
		}
		if err := eventually(ctx, manyInterval, manyTimeout, func(ctx context.Context) error {
			err := m.Client.Get(ctx, client.ObjectKeyFromObject(operation), operation)
			if err == nil && operation.Status.CompletedAt == nil {
				err = fmt.Errorf("the operation has changed %d findings", operation.Status.Changed)
			}
			return err
		}); err != nil {
			return err
		}
		if status := operation.Status; int(status.Changed) != len(m.ofOperation) {
			return fmt.Errorf("of %d findings %d were changed: %+v", len(m.ofOperation), status.Changed, status)
		}
		return nil
	})
}
